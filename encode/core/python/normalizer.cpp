// Bindings of the normalizer and its steps.

#include <nanobind/stl/shared_ptr.h>
#include "python/bindings.h"

#include <map>

#include "normalizers/character_map.h"
#include "normalizers/normalization_forms.h"
#include "normalizers/normalizer.h"
#include "normalizers/replace.h"
#include "normalizers/strip_prepend.h"
#include "python/interop.h"

namespace tokenweir {

namespace {

std::string text_of(nb::handle source) { return std::string(utf8(source)); }

std::shared_ptr<NormalizerStep> normal_form(const std::string& name) {
  if (name == "NFC") return std::make_shared<NormalForm<true, false>>();
  if (name == "NFD") return std::make_shared<NormalForm<false, false>>();
  if (name == "NFKC") return std::make_shared<NormalForm<true, true>>();
  if (name == "NFKD") return std::make_shared<NormalForm<false, true>>();
  throw nb::value_error(("no normalization form: " + name).c_str());
}

std::shared_ptr<NormalizerStep> character_map(const std::vector<std::string>& names) {
  using Rule = CharacterMap::Rule;
  static const std::map<std::string, Rule> known = {{"lowercase", Rule::Lowercase},
                                                    {"strip_accents", Rule::StripAccents},
                                                    {"bert_clean_text", Rule::BertCleanText},
                                                    {"bert_chinese_chars", Rule::BertChineseChars},
                                                    {"bert_strip_accents", Rule::BertStripAccents}};
  std::vector<Rule> rules;
  for (const std::string& name : names) {
    const auto found = known.find(name);
    if (found == known.end()) throw nb::value_error(("no rule for characters: " + name).c_str());
    rules.push_back(found->second);
  }
  return std::make_shared<CharacterMap>(rules);
}

}  // namespace

void bind_normalizer(nb::module_& m) {
  using Step = std::shared_ptr<NormalizerStep>;
  nb::class_<NormalizerStep>(m, "NormalizerStep")
      .def_static("normal_form", normal_form, "name"_a)
      .def_static("character_map", character_map, "rules"_a)
      .def_static(
          "strip", [](bool left, bool right) -> Step { return std::make_shared<Strip>(left, right); }, "left"_a,
          "right"_a)
      .def_static(
          "prepend",
          [](nb::handle content, bool aligned) -> Step { return std::make_shared<Prepend>(text_of(content), aligned); },
          "content"_a, "aligned"_a = true)
      .def_static(
          "replace_string",
          [](nb::handle string, nb::handle content) -> Step {
            return std::make_shared<Replace<StringSearch>>(StringSearch(text_of(string)), text_of(content));
          },
          "string"_a, "content"_a)
      .def_static(
          "replace_pattern",
          [](std::shared_ptr<CompiledPattern> pattern, nb::handle content) -> Step {
            return std::make_shared<Replace<PatternSearch>>(PatternSearch(std::move(pattern)), text_of(content));
          },
          "pattern"_a, "content"_a);

  nb::class_<Normalizer>(m, "Normalizer")
      .def(
          "__init__",
          [](Normalizer* self, const std::vector<std::shared_ptr<NormalizerStep>>& steps) {
            new (self) Normalizer({steps.begin(), steps.end()});
          },
          "steps"_a)
      .def("normalize",
           [](const Normalizer& self, nb::handle source) {
             const std::string_view text = utf8(source);
             std::string out;
             self.apply(reinterpret_cast<const uint8_t*>(text.data()), text.size(), out, nullptr);
             return out;
           })
      .def(
          "normalize_with_origin",
          [](const Normalizer& self, nb::handle source, bool all) {
            const std::string_view text = utf8(source);
            std::string out;
            std::vector<Span> origin;
            self.apply(reinterpret_cast<const uint8_t*>(text.data()), text.size(), out, &origin,
                       all ? Origin::kAll : Origin::kLibrary);
            return nb::make_tuple(out, character_offsets(text, origin));
          },
          "text"_a, "all"_a = false);
}

}  // namespace tokenweir
