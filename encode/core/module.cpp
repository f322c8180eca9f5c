// The compiled module: bindings and nothing else. encode/_core.pyi documents what is here.

#include "bind_decoding.h"
#include "bind_encoding.h"

using namespace tokenweir;

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // objects alive when the interpreter ends are not leaks
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
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

  m.def("nfc", [](nb::handle source) {
    const std::string_view text = utf8(source);
    std::string out;
    nfc(reinterpret_cast<const uint8_t*>(text.data()), text.size(), out, nullptr);
    return out;
  });
  m.def("nfc_with_origin", [](nb::handle source) {
    const std::string_view text = utf8(source);
    std::string out;
    std::vector<Span> origin;
    nfc(reinterpret_cast<const uint8_t*>(text.data()), text.size(), out, &origin);
    return nb::make_tuple(out, character_offsets(text, origin));
  });

  bind_parts(m);
  bind_decoding(m);
  bind_encoder(m);
}
