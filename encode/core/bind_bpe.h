// The models that merge pairs, as Python makes them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bpe.h"
#include "character_bpe.h"
#include "interop.h"
#include "merge_reader.h"
#include "sentencepiece_bpe.h"

namespace tokenweir {

// A list of "left right" or (left, right).
inline std::vector<std::array<uint32_t, 3>> read_merges(const Vocabulary& vocabulary, const nb::list& merges,
                                                        size_t prefix = 0) {
  MergeReader reader(vocabulary, prefix);
  for (nb::handle merge : merges) {
    if (PyUnicode_Check(merge.ptr())) {
      reader.add(utf8(merge, "a merge"));
    } else {
      const auto pair = nb::cast<nb::sequence>(merge);
      if (nb::len(pair) != 2) throw FileError("merge " + std::to_string(reader.size()) + " is not a pair");
      reader.add(utf8(nb::object(pair[0]), "a merge"), utf8(nb::object(pair[1]), "a merge"));
    }
  }
  return reader.merges();
}

inline void bind_bpe(nb::module_& m) {
  nb::class_<Bpe, Model>(m, "Bpe")
      .def_static(
          "merges",
          [](const Vocabulary& vocabulary, nb::list merges, bool whole_first, const std::vector<uint32_t>& control) {
            auto bpe = std::make_shared<Bpe>(vocabulary, whole_first);
            bpe->set_merges(read_merges(vocabulary, merges));
            bpe->set_control(control);
            return bpe;
          },
          "vocabulary"_a, "merges"_a, "whole_first"_a, "control"_a)
      .def_static(
          "ranks",
          [](const Vocabulary& vocabulary, const std::vector<uint32_t>& control) {
            auto bpe = std::make_shared<Bpe>(vocabulary, true);
            bpe->set_ranks();
            bpe->set_control(control);
            return bpe;
          },
          "vocabulary"_a, "control"_a);

  nb::class_<CharacterBpe, Model>(m, "CharacterBpe")
      .def(
          "__init__",
          [](CharacterBpe* self, const Vocabulary& vocabulary, nb::list merges, std::optional<std::string> unknown,
             std::string prefix, std::string suffix, bool fuse_unknown, bool byte_fallback, bool whole_first,
             const std::vector<uint32_t>& control) {
            const CharacterBpeOptions options{unknown, prefix, suffix, fuse_unknown, byte_fallback, whole_first};
            new (self) CharacterBpe(vocabulary, read_merges(vocabulary, merges, prefix.size()), options,
                                    control);
          },
          "vocabulary"_a, "merges"_a, nb::kw_only(), "unk_token"_a = nb::none(), "continuing_subword_prefix"_a = "",
          "end_of_word_suffix"_a = "", "fuse_unk"_a = false, "byte_fallback"_a = false, "ignore_merges"_a = false,
          "control"_a = std::vector<uint32_t>());

  nb::class_<SentencePieceBpe, Model>(m, "SentencePieceBpe")
      .def(
          "__init__",
          [](SentencePieceBpe* self, const nb::sequence& pieces, const ScoreArray& scores, nb::bytes types,
             int64_t unknown, bool byte_fallback, const std::vector<uint32_t>& control) {
            std::vector<std::string> names;
            for (nb::handle piece : pieces) names.emplace_back(utf8(piece, "a piece"));
            const std::vector<float> numbers = values<float>(scores);
            if (unknown < 0 || static_cast<size_t>(unknown) >= names.size())
              throw FileError("the unknown piece " + std::to_string(unknown) + " is none of " +
                              std::to_string(names.size()));
            new (self) SentencePieceBpe(names, numbers, {types.c_str(), types.size()},
                                        static_cast<uint32_t>(unknown), byte_fallback, control);
          },
          "pieces"_a, "scores"_a, "types"_a, "unk_id"_a, "byte_fallback"_a, "control"_a = std::vector<uint32_t>());
}

}  // namespace tokenweir
