// Bindings of the pre-tokenizer and its stages.

#include <nanobind/stl/shared_ptr.h>
#include "python/bindings.h"

#include "pretokenizers/pretokenizer.h"
#include "python/interop.h"

namespace tokenweir {

namespace {

template <class Value>
Value named(const std::string& name, std::initializer_list<std::pair<const char*, Value>> values) {
  for (const auto& [known, value] : values)
    if (name == known) return value;
  throw nb::value_error(("no such value: " + name).c_str());
}

template <bool Spans, class Visitor>
void pre_tokenize(const PreTokenizer& pre_tokenizer, nb::handle source, Visitor& visitor) {
  const std::string_view text = utf8(source);
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  PreTokenizerScratch scratch;
  pre_tokenizer.split<Spans>(p, p + text.size(), 1, scratch, visitor);
  visitor.flush();
}

}  // namespace

void bind_pretokenizer(nb::module_& m) {
  nb::class_<PreTokenizerStage>(m, "PreTokenizerStage");
  nb::class_<Split, PreTokenizerStage>(m, "Split")
      .def(
          "__init__",
          [](Split* self, std::shared_ptr<CompiledPattern> pattern, const std::string& behavior, bool inverted,
             const std::optional<std::pair<std::string, std::vector<uint8_t>>>& family) {
            const Behavior what = named<Behavior>(behavior, {{"Isolated", Behavior::kIsolated},
                                                             {"Removed", Behavior::kRemoved},
                                                             {"MergedWithPrevious", Behavior::kMergedWithPrevious},
                                                             {"MergedWithNext", Behavior::kMergedWithNext},
                                                             {"Contiguous", Behavior::kContiguous}});
            std::unique_ptr<const Scanner> scanner;
            if (family)
              scanner = std::make_unique<Scanner>(family->first, family->second, pattern->tables(), pattern->n_pages());
            new (self) Split(std::move(pattern), what, inverted, std::move(scanner));
          },
          "pattern"_a, "behavior"_a = "Isolated", "inverted"_a = false, "family"_a = nb::none())
      .def_prop_ro("instructions",
                   [](const Split& self) { return self.scanner() ? self.scanner()->instructions() : nullptr; });
  nb::class_<Spaces, PreTokenizerStage>(m, "Spaces")
      .def(
          "__init__",
          [](Spaces* self, std::string sign, const std::string& prefix) {
            new (self) Spaces(std::move(sign), named<Prefix>(prefix, {{"always", Prefix::kAlways},
                                                                      {"first", Prefix::kFirst},
                                                                      {"never", Prefix::kNever}}));
          },
          "sign"_a, "prefix"_a);
  nb::class_<Spell, PreTokenizerStage>(m, "Spell").def(nb::init<>());
  nb::class_<Unspell, PreTokenizerStage>(m, "Unspell").def(nb::init<>());

  nb::class_<PreTokenizer>(m, "PreTokenizer")
      .def(
          "__init__",
          [](PreTokenizer* self, const std::vector<std::shared_ptr<PreTokenizerStage>>& stages) {
            new (self) PreTokenizer({stages.begin(), stages.end()});
          },
          "stages"_a)
      .def("split",
           [](const PreTokenizer& self, nb::handle source) {
             struct Spans {
               std::vector<Span> found;
               void operator()(const uint8_t* b, const uint8_t* e, const AlignedText& source) {
                 found.push_back(source.original(b, e));
               }
               void flush() {}
             } spans;
             pre_tokenize<true>(self, source, spans);
             return character_offsets(utf8(source), spans.found);
           })
      .def("pieces", [](const PreTokenizer& self, nb::handle source) {
        struct Pieces {
          std::vector<std::pair<const uint8_t*, const uint8_t*>> waiting;  // valid until `flush`, as in an encoder
          nb::list found;
          void operator()(const uint8_t* b, const uint8_t* e, const AlignedText&) { waiting.push_back({b, e}); }
          void flush() {
            for (const auto& [b, e] : waiting) found.append(nb::bytes(b, static_cast<size_t>(e - b)));
            waiting.clear();
          }
        } pieces;
        pre_tokenize<false>(self, source, pieces);
        return pieces.found;
      });
}

}  // namespace tokenweir
