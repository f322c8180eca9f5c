// Unigram as Python sees it.
#pragma once

#include <nanobind/stl/optional.h>

#include "interop.h"
#include "json_number.h"
#include "unigram.h"

namespace tokenweir {

using ScoreArray = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Pieces as views of Python's strings, which a list of them keeps alive.
inline std::vector<std::string_view> piece_views(nb::list pieces) {
  std::vector<std::string_view> views;
  for (nb::handle piece : pieces) views.push_back(utf8(piece, "piece " + std::to_string(views.size())));
  return views;
}

// The ids of a text that is one piece, and the characters that each stands for.
template <class Score>
nb::tuple encode_piece(const Unigram<Score>& model, nb::handle source, bool guarded) {
  const std::string_view text = utf8(source);
  ModelScratch scratch;
  IdBuffer ids;
  std::vector<Span> spans;
  unlocked(text.size(), [&] {
    model.encode(reinterpret_cast<const uint8_t*>(text.data()), text.size(), guarded, scratch, ids, &spans);
  });
  return nb::make_tuple(to_numpy(ids.data(), ids.size()), character_offsets(text, spans));
}

inline void bind_unigram(nb::module_& m) {
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
      .def_prop_ro("trie_bytes", &Unigram<double>::trie_bytes)
      .def("encode", &encode_piece<double>, "text"_a, "guarded"_a = false);

  nb::class_<Unigram<float>, Model>(m, "SentencePieceUnigram")
      .def(
          "__init__",
          [](Unigram<float>* self, nb::list pieces, const ScoreArray& scores, nb::bytes types, size_t unk_id,
             bool byte_fallback, const std::vector<uint32_t>& control) {
            new (self) Unigram<float>(Unigram<float>::sentencepiece(piece_views(pieces), values<float>(scores),
                                                                    {types.c_str(), types.size()}, unk_id,
                                                                    byte_fallback, control));
          },
          "pieces"_a, "scores"_a, "types"_a, "unk_id"_a, "byte_fallback"_a, "control"_a)
      .def("encode", &encode_piece<float>, "text"_a, "guarded"_a = false);
}

}  // namespace tokenweir
