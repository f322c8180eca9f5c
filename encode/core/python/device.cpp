// Bindings of the GPU's tables.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include "python/bindings.h"

#include "encoder/added_tokens.h"
#include "gpu_tables/device_characters.h"
#include "gpu_tables/device_contents.h"
#include "gpu_tables/device_nfc.h"
#include "gpu_tables/device_tables.h"
#include "gpu_tables/device_unigram.h"
#include "models/wordpiece.h"
#include "normalizers/normalization_forms.h"
#include "python/decoders/decoding.h"
#include "python/interop.h"

namespace tokenweir {

namespace {

template <class Score>
nb::tuple unigram_tables(const Unigram<Score>& model) {
  const DeviceUnigram<Score> tables(model);
  return nb::make_tuple(rows<uint32_t>(tables.trie.units()), tables.trie.root(), to_numpy(tables.scores),
                        to_numpy(tables.byte_ids), to_numpy(tables.control), tables.unknown);
}

}  // namespace

void bind_device(nb::module_& m) {
  nb::class_<DeviceTables>(m, "DeviceTables")
      .def(
          "__init__",
          [](DeviceTables* self, const Bpe& model, const std::vector<std::pair<uint32_t, nb::bytes>>& searched) {
            std::vector<std::pair<uint32_t, std::string>> contents;
            for (const auto& [id, content] : searched)
              contents.emplace_back(id, std::string(content.c_str(), content.size()));
            new (self) DeviceTables(model, contents);
          },
          "model"_a, "searched"_a)
      .def(nb::init<const CharacterBpe&, bool>(), "model"_a, "spaces"_a)
      .def(
          "__init__",
          [](DeviceTables* self, const SentencePieceBpe& model, nb::list pieces, bool spaces) {
            new (self) DeviceTables(model, piece_views(pieces), spaces);
          },
          "model"_a, "pieces"_a, "spaces"_a)
      .def_prop_ro("pieces", rows_of<uint64_t>(&DeviceTables::pieces), nb::rv_policy::move)
      .def_prop_ro("rest", copy_of(&DeviceTables::rest), nb::rv_policy::move)
      .def_prop_ro("pairs", rows_of<uint64_t>(&DeviceTables::pairs), nb::rv_policy::move)
      .def_prop_ro("merged_ids", copy_of(&DeviceTables::merged_ids), nb::rv_policy::move)
      .def_ro("merged_shift", &DeviceTables::merged_shift)
      .def_prop_ro("ranks", copy_of(&DeviceTables::ranks), nb::rv_policy::move)
      .def_prop_ro("byte_ids", copy_of(&DeviceTables::byte_ids), nb::rv_policy::move)
      .def_prop_ro("ascii_pairs", copy_of(&DeviceTables::ascii_pairs), nb::rv_policy::move)
      .def_prop_ro("characters", copy_of(&DeviceTables::characters), nb::rv_policy::move)
      .def_prop_ro("lone", copy_of(&DeviceTables::lone), nb::rv_policy::move)
      .def_prop_ro("lengths", copy_of(&DeviceTables::lengths), nb::rv_policy::move);

  nb::class_<DeviceContents>(m, "DeviceContents")
      .def(
          "__init__",
          [](DeviceContents* self, const PyTokenBytes& tokens, bool skip_special) {
            new (self) DeviceContents(tokens.table, skip_special);
          },
          "tokens"_a, "skip_special"_a)
      .def_prop_ro("bytes", copy_of(&DeviceContents::bytes), nb::rv_policy::move)
      .def_prop_ro("contents", rows_of<uint32_t>(&DeviceContents::contents), nb::rv_policy::move)
      .def_prop_ro("first", rows_of<uint32_t>(&DeviceContents::first), nb::rv_policy::move)
      .def_prop_ro("stripped", [](const DeviceContents& self) {
        return std::pair(static_cast<uint8_t>(self.stripped.character), self.stripped.count);
      });

  m.def(
      "split_point_table",
      [](const Model& model) {
        if (!model.split_points()) throw Unsupported("a model without split points");
        const SplitPointTable table = model.split_points()->view();
        const std::vector<uint64_t> common(table.common, table.common + SplitPointTable::kCommon * 3);
        return nb::make_tuple(to_numpy(common), to_numpy(model.split_points()->others()), table.others_shift);
      },
      "model"_a);

  m.def(
      "byte_cut_table",
      [](const Bpe& model) -> nb::object {
        if (!model.byte_cuts()) return nb::none();
        const ByteCuts& cuts = *model.byte_cuts();
        std::vector<uint8_t> followers(ByteCuts::kCharacters);
        for (size_t id = 0; id < model.tokens().size(); id++)
          ByteCuts::add_followers(model.tokens()[id], followers.data());
        return nb::make_tuple(to_numpy(cuts.left_classes()), to_numpy(cuts.right_classes()), to_numpy(cuts.joined()),
                              cuts.view().n_right_classes, to_numpy(cuts.pairs()), cuts.view().pairs_shift,
                              to_numpy(followers));
      },
      "model"_a);

  m.def(
      "device_trie",
      [](const WordPiece& model) {
        return nb::make_tuple(rows<uint32_t>(model.trie().units()), model.trie().root(), model.below_prefix());
      },
      "model"_a);

  m.def(
      "device_characters",
      [](nb::bytes charsmap, bool huggingface) {
        const Charsmap map = charsmap.size() ? Charsmap({charsmap.c_str(), charsmap.size()}) : Charsmap();
        return to_numpy(DeviceCharacters(map, huggingface).entries);
      },
      "charsmap"_a, "huggingface"_a);

  m.def("device_unigram", [](const Unigram<double>& model) { return unigram_tables(model); }, "model"_a);
  m.def("device_unigram", [](const Unigram<float>& model) { return unigram_tables(model); }, "model"_a);

  m.def("combining_ranks", [] {
    using namespace normalization;
    std::unique_ptr<uint8_t[]> ranks(new uint8_t[0x110000]);
    for (uint32_t c = 0; c < 0x110000; c++) ranks[c] = Tables<false>::properties(c) & kRank;
    return to_numpy(std::move(ranks), {0x110000});
  });

  m.def("nfc_ranks", [] {
    using namespace normalization;
    std::unique_ptr<uint8_t[]> ranks(new uint8_t[0x110000]);
    for (uint32_t c = 0; c < 0x110000; c++) {
      const uint8_t own = Tables<false>::properties(c), state = own & kState;
      const bool is_jamo = c >= kHangulV && c < kHangulT + kNT;  // it composes by arithmetic
      if (state == kComposes)
        ranks[c] = is_jamo ? kOnlyHostKnows : kMayCompose;
      else if (state == kDecomposes)
        ranks[c] = kComposed;
      else
        ranks[c] = state == kChanges ? kOnlyHostKnows : own & kRank;
    }
    return to_numpy(std::move(ranks), {0x110000});
  });

  m.def("nfc_pairs", [] {
    std::vector<uint64_t> pairs;
    for (const auto& [first, second, composite] : normalization_tables::kCompositions)
      pairs.push_back(uint64_t{first} << 32 | second);
    return to_numpy(pairs);
  });
}

}  // namespace tokenweir
