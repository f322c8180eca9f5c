// The pre-tokenizer and its stages as Python sees them.
#pragma once

#include <nanobind/stl/shared_ptr.h>

#include "interop.h"
#include "pretokenizer.h"

namespace tokenweir {

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

inline void bind_pretokenizer(nb::module_& m) {
  nb::class_<PreTokenizerStage>(m, "PreTokenizerStage");
  nb::class_<Cut, PreTokenizerStage>(m, "Cut").def(
      "__init__",
      [](Cut* self, const Table16& transitions, const Table16& class_index, const Table8& class_pages, size_t n_classes,
         const std::string& behavior, bool inverted) {
        const Behavior what = named<Behavior>(behavior, {{"Isolated", Behavior::kIsolated},
                                                         {"Removed", Behavior::kRemoved},
                                                         {"MergedWithPrevious", Behavior::kMergedWithPrevious},
                                                         {"MergedWithNext", Behavior::kMergedWithNext},
                                                         {"Contiguous", Behavior::kContiguous}});
        CompiledPattern pattern(values<uint16_t>(transitions), values<uint16_t>(class_index),
                                values<uint8_t>(class_pages), n_classes);
        new (self) Cut(std::move(pattern), what, inverted);
      },
      "transitions"_a, "class_index"_a, "class_pages"_a, "n_classes"_a, "behavior"_a = "Isolated", "inverted"_a = false);
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
               void operator()(const uint8_t* b, const uint8_t* e, const Frame& frame) {
                 found.push_back(frame.original(b, e));
               }
               void flush() {}
             } spans;
             pre_tokenize<true>(self, source, spans);
             return character_offsets(utf8(source), spans.found);
           })
      .def("pieces", [](const PreTokenizer& self, nb::handle source) {
        struct Pieces {
          std::vector<std::pair<const uint8_t*, const uint8_t*>> waiting;  // as in an encoder, until their text must go
          nb::list found;
          void operator()(const uint8_t* b, const uint8_t* e, const Frame&) { waiting.push_back({b, e}); }
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
