// The binding functions of the units in this folder. A class must be bound before its subclasses and its users.
#pragma once

#include <nanobind/nanobind.h>

namespace tokenweir {

void bind_pattern(nanobind::module_& m);
void bind_normalizer(nanobind::module_& m);
void bind_charsmap(nanobind::module_& m);
void bind_pretokenizer(nanobind::module_& m);
void bind_vocabulary(nanobind::module_& m);
void bind_parts(nanobind::module_& m);
void bind_detokenizing(nanobind::module_& m);
void bind_wordpiece(nanobind::module_& m);
void bind_unigram(nanobind::module_& m);
void bind_bpe(nanobind::module_& m);
void bind_decoding(nanobind::module_& m);
void bind_decode_batch(nanobind::module_& m);
void bind_encoder(nanobind::module_& m);
void bind_tape(nanobind::module_& m);
void bind_fast_calls(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_gguf(nanobind::module_& m);
void bind_pack(nanobind::module_& m);
void bind_device_strings(nanobind::module_& m);
void bind_tables(nanobind::module_& m);
void bind_ragged(nanobind::module_& m);

}  // namespace tokenweir
