// Bindings of Unigram.

#include <nanobind/stl/optional.h>
#include "python/bindings.h"

#include "base/json_number.h"
#include "base/json_text.h"
#include "models/unigram.h"
#include "python/interop.h"

namespace tokenweir {

namespace {

// Parses a tokenizer.json's list of [piece, score]; returns None if it contains anything else.
std::optional<nb::tuple> scored_pieces(std::string_view json) {
  JsonText text(json);
  nb::list pieces;
  std::string piece;
  if (!text.take('[')) return {};
  do {
    piece.clear();
    if (!text.take('[') || !text.string(piece) || !text.take(',')) return {};
    const auto score = JsonNumber::read(text.number());
    if (!score || !text.take(']')) return {};
    pieces.append(nb::make_tuple(text_object(piece), *score));
  } while (text.take(','));
  if (!text.take(']') || !text.ended()) return {};
  return nb::tuple(pieces);
}

}  // namespace

void bind_unigram(nb::module_& m) {
  m.def(
      "scored_pieces",
      [](const Table8& json) { return scored_pieces({reinterpret_cast<const char*>(json.data()), json.size()}); },
      "json"_a);
  m.def(
      "json_numbers",
      [](nb::list literals) {
        const size_t n = nb::len(literals);
        std::unique_ptr<double[]> numbers(new double[n]);
        for (size_t i = 0; i < n; i++) {
          const auto literal = nb::cast<nb::bytes>(nb::handle(literals[i]));
          const auto number = JsonNumber::read({literal.c_str(), literal.size()});
          if (!number) throw FileError("the score of piece " + std::to_string(i) + " is not a number within range");
          numbers[i] = *number;
        }
        return to_numpy(std::move(numbers), {n});
      },
      "literals"_a);

  nb::class_<Unigram<double>, Model>(m, "HuggingFaceUnigram")
      .def(
          "__init__",
          [](Unigram<double>* self, nb::list pieces, const ScoreArray& scores, std::optional<size_t> unk_id,
             bool byte_fallback, const std::vector<uint32_t>& control) {
            new (self) Unigram<double>(Unigram<double>::huggingface(piece_views(pieces), values<double>(scores), unk_id,
                                                                    byte_fallback, control));
          },
          "pieces"_a, "scores"_a, "unk_id"_a.none(), "byte_fallback"_a, "control"_a)
      .def_prop_ro("trie_bytes", &Unigram<double>::trie_bytes);

  nb::class_<Unigram<float>, Model>(m, "SentencePieceUnigram")
      .def(
          "__init__",
          [](Unigram<float>* self, nb::list pieces, const ScoreArray& scores, nb::bytes types, size_t unk_id,
             bool byte_fallback, const std::vector<uint32_t>& control) {
            new (self) Unigram<float>(Unigram<float>::sentencepiece(piece_views(pieces), values<float>(scores),
                                                                    {types.c_str(), types.size()}, unk_id,
                                                                    byte_fallback, control));
          },
          "pieces"_a, "scores"_a, "types"_a, "unk_id"_a, "byte_fallback"_a, "control"_a);
}

}  // namespace tokenweir
