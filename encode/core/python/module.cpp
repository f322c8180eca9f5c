// The compiled module: bindings only. encode/_core.pyi documents them.

#include "python/arrays/id_array.h"
#include "python/bindings.h"
#include "python/interop.h"

using namespace tokenweir;

NB_MODULE(_core, m) {
  refuse_subinterpreter();
  nb::set_leak_warnings(false);  // objects that are alive at interpreter exit are not leaks
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    sleep_if_ending(thrown);
    const auto set = [](const char* name, const std::exception& error) {
      PyErr_SetString(error_class(name).ptr(), error.what());
    };
    try {
      std::rethrow_exception(thrown);
    } catch (const FileError& error) {
      set("TokenizerFileError", error);
    } catch (const Unsupported& error) {
      set("UnsupportedTokenizerError", error);
    } catch (const BadTokenId& error) {
      set("TokenIdError", error);
    }
  });

  load_numpy();
  bind_pattern(m);
  bind_normalizer(m);
  bind_charsmap(m);
  bind_pretokenizer(m);
  bind_vocabulary(m);
  bind_parts(m);
  bind_detokenizing(m);
  bind_wordpiece(m);
  bind_unigram(m);
  bind_bpe(m);
  bind_decoding(m);
  bind_decode_batch(m);
  bind_encoder(m);
  bind_tape(m);
  bind_fast_calls(m);
  bind_device(m);
  bind_gguf(m);
  bind_pack(m);
  bind_device_strings(m);
  bind_tables(m);
  bind_ragged(m);
}
