// The binding functions of the units in this folder.
#pragma once

#include <nanobind/nanobind.h>

namespace tokenweir {

using Bind = void(nanobind::module_&);

Bind bind_pattern, bind_normalizer, bind_charsmap, bind_pretokenizer, bind_vocabulary, bind_parts, bind_detokenizing,
    bind_wordpiece, bind_unigram, bind_bpe, bind_decoding, bind_decode_batch, bind_encoder, bind_tape, bind_fast_calls,
    bind_device, bind_gguf, bind_pack, bind_device_strings, bind_tables, bind_ragged;

}  // namespace tokenweir
