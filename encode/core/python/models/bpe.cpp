// Bindings of the BPE models.

#include <optional>
#include <string>
#include <vector>
#include "python/bindings.h"

#include "models/bpe.h"
#include "models/character_bpe.h"
#include "models/sentencepiece_bpe.h"
#include "python/interop.h"
#include "vocabulary/merges.h"

namespace tokenweir {

namespace {

// Converts merges from "left right" or (left, right).
Merges read_merges(const nb::sequence& list) {
  Merges::Builder merges;
  for (nb::handle merge : list) {
    if (PyUnicode_Check(merge.ptr())) {
      merges.add(utf8(merge, "a merge"));
    } else {
      const auto pair = nb::cast<nb::sequence>(merge);
      if (nb::len(pair) != 2) throw FileError("merge " + std::to_string(merges.size()) + " is not a pair");
      merges.add(utf8(nb::object(pair[0]), "a merge"), utf8(nb::object(pair[1]), "a merge"));
    }
  }
  return std::move(merges).build();
}

// The merges that `list` is, or those made of it in `made`.
const Merges& merges_of(nb::handle list, Merges& made) {
  if (nb::isinstance<Merges>(list)) return nb::cast<const Merges&>(list);
  return made = read_merges(nb::cast<nb::sequence>(list));
}

}  // namespace

void bind_bpe(nb::module_& m) {
  nb::class_<Merges>(m, "Merges")
      .def(
          "__init__", [](Merges* self, const nb::sequence& merges) { new (self) Merges(read_merges(merges)); },
          "merges"_a)
      .def_static(
          "from_json",
          [](const Table8& json) {
            return Merges::from_json({reinterpret_cast<const char*>(json.data()), json.size()});
          },
          "json"_a)
      .def("__len__", &Merges::size)
      .def("__getitem__",
           [](const Merges& self, Py_ssize_t at) {
             const auto size = static_cast<Py_ssize_t>(self.size());
             if (at < -size || at >= size) throw nb::index_error();
             const auto [left, right] = self[static_cast<size_t>(at < 0 ? at + size : at)];
             return std::make_pair(std::string(left), std::string(right));
           })
      .def("__eq__", [](nb::handle self, nb::handle other) { return nb::list(self).equal(nb::list(other)); })
      .def("__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(nb::list(self))); });

  nb::class_<Bpe, Model>(m, "Bpe")
      .def_prop_ro("longest_probe", [](const Bpe& self) { return self.pairs().longest_probe(); })
      .def_static(
          "merges",
          [](const Vocabulary& vocabulary, nb::handle merges, bool ignore_merges,
             const std::vector<uint32_t>& control) {
            Merges made;
            auto bpe = std::make_shared<Bpe>(vocabulary, ignore_merges);
            bpe->set_control(control);
            bpe->set_merges(vocabulary, merges_of(merges, made));
            return bpe;
          },
          "vocabulary"_a, "merges"_a, "ignore_merges"_a, "control"_a)
      .def_static(
          "ranks",
          [](const Vocabulary& vocabulary, bool ignore_merges, const std::vector<uint32_t>& control) {
            auto bpe = std::make_shared<Bpe>(vocabulary, ignore_merges);
            bpe->set_control(control);
            bpe->set_ranks(vocabulary);
            return bpe;
          },
          "vocabulary"_a, "ignore_merges"_a, "control"_a)
      .def_prop_ro(
          "pairs", [](const Bpe& self) { return to_numpy(self.pairs().slots()); }, nb::rv_policy::move)
      .def_prop_ro("merged", copy_of(&Bpe::merged), nb::rv_policy::move)
      .def_prop_ro(
          "byte_ids",
          [](const Bpe& self) { return to_numpy(std::vector<uint32_t>(self.byte_ids(), self.byte_ids() + 256)); },
          nb::rv_policy::move);

  nb::class_<CharacterBpe, Model>(m, "CharacterBpe")
      .def(
          "__init__",
          [](CharacterBpe* self, const Vocabulary& vocabulary, nb::handle merges, std::optional<std::string> unknown,
             std::string prefix, std::string suffix, bool fuse_unknown, bool byte_fallback, bool ignore_merges,
             const std::vector<uint32_t>& control) {
            const CharacterBpeOptions options{unknown, prefix, suffix, fuse_unknown, byte_fallback, ignore_merges};
            Merges made;
            new (self) CharacterBpe(vocabulary, merges_of(merges, made), options, control);
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
            new (self) SentencePieceBpe(names, numbers, {types.c_str(), types.size()}, static_cast<uint32_t>(unknown),
                                        byte_fallback, control);
          },
          "pieces"_a, "scores"_a, "types"_a, "unk_id"_a, "byte_fallback"_a, "control"_a = std::vector<uint32_t>());
}

}  // namespace tokenweir
