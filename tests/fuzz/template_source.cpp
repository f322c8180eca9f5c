// Sources of templates: bytes that parse are rendered, over variables of every kind.
#include "template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  static const std::string variables =
      R"({"a": "b\u00e9 <", "n": 3, "l": [1, "x", null, [2.5]], "d": {"k": "v", "items": {}}, "t": true,
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f"}}]}]})";
  const std::string_view source = view(data, size);
  if (!is_utf8(source)) return 0;  // a str of Python always is
  if (const auto parsed = templates::parsed(source)) templates::render_twice(parsed, variables);
  return 0;
}
