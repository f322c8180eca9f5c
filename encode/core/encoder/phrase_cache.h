// Stretches of text and the ids they became, where these are many or the stretch is long: long names in code, runs of
// Chinese, rules of dashes, and passages of models without a pre-tokenizer.
//
// Bytes and ids lie in one buffer, a stretch behind the other. When it is full all is forgotten; so there is nothing to free
// and nothing to move. A look-up compares the bytes themselves. Two steps may come before it, each of which asks for the
// memory that the next one reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/id_buffer.h"
#include "base/table_memory.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class PhraseCache {
 public:
  static constexpr size_t kMaxBytes = 4095;

  static uint64_t hash(const uint8_t* p, size_t bytes) { return hash_bytes(p, bytes); }

  void prefetch(uint64_t hash) const {
    if (sets_.size() > 0) __builtin_prefetch(&set(hash));
  }

  void approach(uint64_t hash) const {
    const Slot* const slot = sets_.size() > 0 ? set(hash).find(hash) : nullptr;
    if (!slot) return;
    const int32_t* const ids = words_.data() + slot->at;
    __builtin_prefetch(ids);
    __builtin_prefetch(ids + 16);
  }

  // The ids, `n` of them, until the next insert; null if the stretch, which has that hash, is not there.
  const int32_t* find(const uint8_t* p, size_t bytes, uint64_t hash, size_t& n) const {
    const Slot* const slot = sets_.size() > 0 ? set(hash).find(hash) : nullptr;
    if (!slot || slot->bytes != bytes) return nullptr;
    const int32_t* const ids = words_.data() + slot->at;
    n = slot->ids;
    return std::memcmp(ids + n, p, bytes) == 0 ? ids : nullptr;
  }

  void insert(const uint8_t* p, size_t bytes, uint64_t hash, const int32_t* ids, size_t n) {
    if (n > kMaxIds) return;
    const size_t size = n + (bytes + 3) / 4;
    if (words_.size() + size > kWords || sets_.size() == 0) forget();
    if (++inserted_ > sets_.size() * kWays / 2 && sets_.size() < kMaxSets) grow();
    set(hash).insert({hash, static_cast<uint32_t>(words_.size()), static_cast<uint16_t>(bytes), static_cast<uint16_t>(n)});
    int32_t* const to = words_.room(size);
    std::copy(ids, ids + n, to);
    std::memcpy(to + n, p, bytes);
    words_.advance(size);
  }

  // Whether a stretch with that hash was met before, as far as is known; from now on it was. For what is worth keeping only
  // if it comes again, since to keep all takes fresh pages.
  bool meet(uint64_t hash) {
    if (met_.empty()) met_.resize(kMet);
    constexpr uint32_t kOnes = 0x01010101;
    const uint32_t tag = static_cast<uint32_t>(hash >> 56 | 1);
    uint32_t& tags = met_[hash >> 36 & (kMet - 1)];
    const uint32_t others = tags ^ tag * kOnes;
    tags = tags << 8 | tag;
    return (others - kOnes) & ~others & kOnes << 7;
  }

 private:
  static constexpr size_t kMaxIds = 4095, kWords = 1 << 20, kWays = 4, kFirstSets = 128, kMaxSets = 1 << 15, kMet = 1 << 15;

  struct Slot {
    uint64_t hash;
    uint32_t at;          // its ids, and its bytes behind them
    uint16_t bytes, ids;  // no bytes: empty
  };

  // The youngest first.
  struct alignas(64) Set {
    Slot slots[kWays];

    const Slot* find(uint64_t hash) const {
      for (const Slot& slot : slots)
        if (slot.hash == hash) return &slot;
      return nullptr;
    }

    void insert(const Slot& slot) {
      std::copy_backward(slots, slots + kWays - 1, slots + kWays);
      slots[0] = slot;
    }
  };

  Set& set(uint64_t hash) const { return sets_.at(hash >> 20); }

  void forget() {
    TableMemory<Set>(std::max(sets_.size(), kFirstSets)).swap(sets_);
    words_.clear();
    inserted_ = 0;
  }

  void grow() {
    TableMemory<Set> old(sets_.size() * 4);
    old.swap(sets_);
    for (const Set& set : old)
      for (size_t i = kWays; i-- > 0;)
        if (set.slots[i].bytes) this->set(set.slots[i].hash).insert(set.slots[i]);
  }

  TableMemory<Set> sets_;
  IdBuffer words_;
  std::vector<uint32_t> met_;  // by some bits of the hash: eight others of each of the last four that were met
  size_t inserted_ = 0;
};

}  // namespace tokenweir
