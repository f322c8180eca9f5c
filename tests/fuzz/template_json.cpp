// The variables of a render as JSON: any bytes are read or refused.
#include "template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  static const auto source = templates::parsed(
      "{% for k, v in (all or {}).items() %}{{ k }}={{ v }};{{ v|tojson }}{{ v|tojson(indent=2, ensure_ascii=true) "
      "}}{% endfor %}{{ a }}{{ a|tojson|from_json == a }}");
  templates::render_twice(source, std::string(view(data, size)));
  templates::render_twice(source, "{\"all\": " + std::string(view(data, size)) + "}");
  return 0;
}
