// A byte-level model's tables, laid out for kernels (device_bpe.h).
//
// A piece is taken whole if the model takes it so: where whole tokens come first, or where the token's own bytes merge to
// it. Control tokens are left out of all tables, so that kernels encode as `guarded` has it. For a text in which added
// tokens are matched that is the same: where a control token's bytes stood, the added token would have been found.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/bpe.h"
#include "device/device_bpe.h"
#include "base/errors.h"

namespace tokenweir {

struct DeviceTables {
  std::vector<PieceSlot> pieces;
  std::vector<uint8_t> rest;
  std::vector<PairBucket> pairs;
  std::vector<uint32_t> merged_ids;  // empty: the priority plus `merged_shift`
  uint64_t merged_shift = 0;
  std::vector<uint32_t> byte_ids, ascii_pairs, characters, lengths;

  // `searched`: the added tokens that are searched for in text, each with its id.
  DeviceTables(const Bpe& bpe, const std::vector<std::pair<uint32_t, std::string>>& searched)
      : byte_ids(bpe.byte_ids(), bpe.byte_ids() + 256), lengths(bpe.tokens().size()) {
    check_control(bpe, searched);
    for (uint32_t id = 0; id < lengths.size(); id++) lengths[id] = static_cast<uint32_t>(bpe.tokens()[id].size());
    put_pieces(bpe);
    put_pairs(bpe);
    put_merged(bpe);
    const uint32_t* entries = bpe.characters()->table().entries;
    characters.assign(entries, entries + CharacterTokens::kCharacters);
    if (controls_merge_) std::fill(characters.begin(), characters.end(), kNone);  // proven for all pairs
    for (uint32_t a = 0; a < 128; a++)
      for (uint32_t b = 0; b < 128; b++) ascii_pairs.push_back(bpe.priority(byte_ids[a], byte_ids[b], true));
  }

 private:
  static constexpr size_t kMaxProbes = 64;  // of slots that are looked at for a piece

  bool controls_merge_ = false;

  // Refuses a model that makes a control token of text which does not spell it. The guard would have to look at more
  // than added tokens there, and kernels look at these alone.
  void check_control(const Bpe& bpe, const std::vector<std::pair<uint32_t, std::string>>& searched) {
    std::vector<bool> reached(bpe.tokens().size());
    bpe.pairs().for_each([&](uint32_t, uint32_t, uint32_t priority) { reached[bpe.merged()[priority]] = true; });
    for (uint32_t id = 0; id < reached.size(); id++) {
      if (!bpe.is_control(id) || bpe.tokens()[id].size() == 1) continue;
      controls_merge_ |= reached[id];
      if (!reached[id] && !bpe.takes_whole(id)) continue;
      const bool found = std::any_of(searched.begin(), searched.end(), [&](const auto& token) {
        return token.first == id && token.second == bpe.tokens()[id];
      });
      if (!found) throw Unsupported("control token " + std::to_string(id) + " is made of text that does not spell it");
    }
  }

  void put_pieces(const Bpe& bpe) {
    std::vector<uint32_t> whole;
    for (uint32_t id = 0; id < lengths.size(); id++)
      if (bpe.takes_whole(id) && !bpe.is_control(id)) whole.push_back(id);
    pieces.assign(size_t{1} << slot_bits(whole.size()), {{0, 0}, kNone, 0, 0, 0});
    const uint64_t mask = pieces.size() - 1;
    for (const uint32_t id : whole) {
      const std::string_view token = bpe.tokens()[id];
      PieceSlot slot{{word(token, 0), word(token, 8)}, id, lengths[id], static_cast<uint32_t>(rest.size()), 0};
      if (token.size() > PieceTable::kHead) rest.insert(rest.end(), token.begin() + PieceTable::kHead, token.end());
      uint64_t i = PieceTable::hash(slot.head[0], slot.head[1], slot.length, static_cast<uint8_t>(token.back())) & mask;
      for (size_t probes = 0; pieces[i].id != kNone; i = (i + 1) & mask)
        if (++probes == kMaxProbes) throw Unsupported("tokens that a table cannot tell apart by their first 16 bytes");
      pieces[i] = slot;
    }
  }

  static uint64_t word(std::string_view token, size_t from) {
    uint64_t bytes = 0;
    if (from < token.size()) std::memcpy(&bytes, token.data() + from, std::min<size_t>(8, token.size() - from));
    return bytes;
  }

  void put_pairs(const Bpe& bpe) {
    size_t n = 0;
    bpe.pairs().for_each([&](uint32_t, uint32_t, uint32_t) { n++; });
    PairBucket empty;
    std::fill(std::begin(empty.slots), std::end(empty.slots), PairBucket::kEmpty);
    pairs.assign(size_t{1} << bucket_bits(n), empty);
    const int shift = 64 - bucket_bits(n);
    bpe.pairs().for_each([&](uint32_t left, uint32_t right, uint32_t priority) {
      if (bpe.is_control(bpe.merged()[priority])) return;
      const uint64_t key = pair_key(left, right);
      uint64_t i = mix(key) >> shift;
      uint64_t* slot = std::begin(pairs[i].slots);
      while (*slot != PairBucket::kEmpty)
        if (++slot == std::end(pairs[i].slots)) slot = std::begin(pairs[i = (i + 1) & (pairs.size() - 1)].slots);
      *slot = key << 24 | priority;
    });
  }

  // At most half of the slots are taken.
  static int bucket_bits(size_t pairs) { return std::max(1, slot_bits(pairs) - 2); }

  void put_merged(const Bpe& bpe) {
    const SharedArray<uint32_t>& merged = bpe.merged();
    merged_shift = merged.empty() ? 0 : uint64_t{merged[0]};
    for (size_t priority = 0; priority < merged.size(); priority++)
      if (merged[priority] != priority + merged_shift) {
        merged_ids.assign(merged.begin(), merged.end());
        return;
      }
  }
};

}  // namespace tokenweir
