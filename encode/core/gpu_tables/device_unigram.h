// A Unigram model's tables in the layout of kernels (gpu/kernels/unigram.cu). In its text a space represents U+2581.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/trie.h"
#include "gpu_tables/device_tables.h"
#include "models/unigram.h"

namespace tokenweir {

template <class Score>
struct DeviceUnigram {
  Trie trie;
  std::vector<Score> scores;       // by id, followed by that of an unknown character
  std::vector<uint32_t> byte_ids;  // kNone without byte fallback
  std::vector<uint32_t> control;   // bits by id
  uint32_t unknown;

  explicit DeviceUnigram(const Unigram<Score>& model)
      : scores(model.scores()),
        byte_ids(model.byte_ids().begin(), model.byte_ids().end()),
        control(model.scores().size() / 32 + 1),
        unknown(model.unknown()) {
    if (unknown == kNone) throw Unsupported("a Unigram model without unk_id");
    for (uint32_t id = 0; id < scores.size(); id++)
      if (model.is_control(id)) control[id / 32] |= 1u << id % 32;
    scores.push_back(model.unknown_score());
    std::vector<std::pair<std::string, uint32_t>> spelled;
    model.trie().for_each([&](std::string_view piece, uint32_t id) {
      if (piece.find(' ') == piece.npos) spelled.emplace_back(with_spaces(piece), id);  // no text has a space
    });
    std::vector<Trie::Key> keys;
    for (const auto& [piece, id] : spelled) keys.push_back({piece, id});
    trie = Trie(keys);
  }
};

}  // namespace tokenweir
