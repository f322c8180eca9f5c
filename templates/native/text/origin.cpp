#include "text/origin.h"

#include "text/characters.h"

namespace tokenweir::templates {

// `.name`, or `["any text"]`.
static std::string step_text(std::string_view key) {
  bool plain = !key.empty();
  for (size_t at = 0; plain && at < key.size();) {
    const bool first = at == 0;
    const uint32_t c = next_character(key, at);
    plain = first ? starts_identifier(c) : continues_identifier(c);
  }
  if (plain) return "." + std::string(key);
  std::string out = "[\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"]";
}

std::string Origins::path(uint32_t origin) const {
  if (origin == kFromTemplate) return "template";
  if (origin == kFromEngine) return "engine";
  std::vector<uint32_t> way;
  for (uint32_t next = origin; next >= kFirst; next = at(next).parent) way.push_back(next);
  std::string out;
  for (size_t i = way.size(); i-- > 0;) {
    const Origin& step = at(way[i]);
    switch (step.step) {
      case Origin::Step::Variable: out += step.key->text; break;
      case Origin::Step::Item: out += "[" + std::to_string(step.index) + "]"; break;
      case Origin::Step::Value: out += step_text(step.key->text); break;
      case Origin::Step::Place: break;  // goes by its part
      case Origin::Step::Key: out += step_text(step.key->text) + " (key)"; break;
    }
  }
  return out;
}

}  // namespace tokenweir::templates
