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
  // A class must be bound before its subclasses and its users.
  for (const auto bind :
       {bind_pattern,        bind_normalizer, bind_charsmap,   bind_pretokenizer, bind_vocabulary, bind_parts,
        bind_detokenizing,   bind_wordpiece,  bind_unigram,    bind_bpe,          bind_decoding,   bind_decode_batch,
        bind_encoder,        bind_tape,       bind_fast_calls, bind_device,       bind_gguf,       bind_pack,
        bind_device_strings, bind_tables,     bind_ragged})
    bind(m);
}
