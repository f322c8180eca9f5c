// Which tokens merging makes of their bytes, told by the merges instead of by merging each.
//
// Let the pair (L, R) of priority p become T, let merging make L and R of their bytes, and let each of their merges have a
// higher priority than those whose results it joins, and p a higher one still. Then merging the bytes of T does what merging
// those of L and of R does, in order of priority, and joins the two at last, unless a pair across the border between them
// comes earlier. The symbols that stand at the border are known, and so is which merge takes each away. If no two that meet
// there have a priority as low as the merge that parts them, merging makes T.
//
// What cannot be told so (merges that are not in order, say) is found by merging when it is first asked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/shared_array.h"
#include "encoder/word_key.h"
#include "vocabulary/hash_table.h"
#include "vocabulary/token_list.h"

namespace tokenweir {

class MadeTokens {
 public:
  // Of the tokens that a key holds. A pair of `priority` becomes merged[priority].
  MadeTokens(const PairTable& pairs, const SharedArray<uint32_t>& merged, const uint32_t (&byte_ids)[256],
             const TokenList& tokens)
      : pairs_(pairs), made_(tokens.size()) {
    for (const uint32_t id : byte_ids)
      if (id != kNone) made_[id].time = 0;
    const auto each = [&](auto&& use) {
      pairs.for_each([&](uint32_t left, uint32_t right, uint32_t priority) {
        if (tokens[merged[priority]].size() <= WordKey::kMaxBytes) use(left, right, priority);
      });
    };
    std::vector<uint32_t> places(merged.size() + 1);  // of the first pair of each priority, when all are in order
    each([&](uint32_t, uint32_t, uint32_t priority) { places[priority + 1]++; });
    for (size_t i = 1; i < places.size(); i++) places[i] += places[i - 1];
    std::vector<Made> in_order(places.back());
    each([&](uint32_t left, uint32_t right, uint32_t priority) {
      in_order[places[priority]++] = {left, right, priority + 1};
    });
    for (const Made& pair : in_order)
      if (Made& token = made_[merged[pair.time - 1]]; token.time == kNone && is_undisturbed(pair)) token = pair;
  }

  bool operator[](uint32_t id) const { return made_[id].time != kNone; }

 private:
  struct Made {
    uint32_t left = kNone, right = kNone;
    uint32_t time = kNone;  // the priority of the last merge plus one; 0: a byte, kNone: not known to be made
  };

  // Whether merging the bytes of both sides ends with that pair.
  bool is_undisturbed(const Made& pair) const {
    if (made_[pair.left].time >= pair.time || made_[pair.right].time >= pair.time) return false;
    Side before, after;  // the border
    for (uint32_t id = pair.left; before.add(id, made_[id].time); id = made_[id].right) {}
    for (uint32_t id = pair.right; after.add(id, made_[id].time); id = made_[id].left) {}
    while (before.symbols + after.symbols > 2) {
      const uint32_t parted = std::min(before.end(pair.time), after.end(pair.time));
      const uint32_t priority = pairs_.find(before.id(), after.id());
      if (priority != kNone && priority < parted) return false;
      (before.end(pair.time) == parted ? before : after).symbols--;
    }
    return true;
  }

  // The symbols that stand at one side of a border one after the other, the last one first.
  struct Side {
    uint32_t ids[WordKey::kMaxBytes], times[WordKey::kMaxBytes];
    size_t symbols = 0;  // that are still to come, the one that stands there included

    // Returns whether there was one before it.
    bool add(uint32_t id, uint32_t time) {
      ids[symbols] = id;
      times[symbols++] = time;
      return time > 0;
    }

    uint32_t id() const { return ids[symbols - 1]; }
    // When the symbol that stands there merges with another of its side; the last one merges with the other side.
    uint32_t end(uint32_t last) const { return symbols > 1 ? times[symbols - 2] : last; }
  };

  const PairTable& pairs_;
  std::vector<Made> made_;  // by token
};

}  // namespace tokenweir
