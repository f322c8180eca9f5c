// A cache of pieces that do not fit into `WordCache`, because they are long or have many ids: long names in code, runs
// of Chinese, rules of dashes, and blocks of text under models without a pre-tokenizer.
//
// Bytes and ids lie in one buffer, one entry after the other. When the buffer is full, the whole cache is cleared; so
// nothing is freed or moved piece by piece. A look-up compares the bytes themselves. `prefetch` and `prefetch_entry`
// may come before it, each of which loads the memory that the next step reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "memory/id_buffer.h"
#include "memory/table_memory.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class LongPieceCache {
 public:
  static constexpr size_t kMaxBytes = 4095;

  static uint64_t hash(const uint8_t* p, size_t bytes) { return hash_bytes(p, bytes, 0); }

  void prefetch(uint64_t hash) const {
    if (sets_.size() > 0) __builtin_prefetch(&set(hash));
  }

  void prefetch_entry(uint64_t hash) const {
    const Slot* const slot = sets_.size() > 0 ? set(hash).find(hash) : nullptr;
    if (!slot) return;
    const int32_t* const ids = words_.data() + slot->at;
    __builtin_prefetch(ids);
    __builtin_prefetch(ids + 16);
  }

  // Returns the `n` ids of a piece with this hash, valid until the next insert; null on a cache miss.
  const int32_t* find(const uint8_t* p, size_t bytes, uint64_t hash, size_t& n) const {
    const Slot* const slot = sets_.size() > 0 ? set(hash).find(hash) : nullptr;
    if (!slot || slot->bytes != bytes) return nullptr;
    const int32_t* const ids = words_.data() + slot->at;
    n = slot->ids;
    return std::memcmp(ids + n, p, bytes) == 0 ? ids : nullptr;
  }

  // Inserts a piece unless one with its hash is there.
  void insert(const uint8_t* p, size_t bytes, uint64_t hash, const int32_t* ids, size_t n) {
    if (n > kMaxIds || (sets_.size() > 0 && set(hash).find(hash))) return;
    const size_t size = n + (bytes + 3) / 4;
    if (words_.size() + size > kWords || sets_.size() == 0) clear_all();
    if (++inserted_ > sets_.size() * kWays / 2 && sets_.size() < kMaxSets) grow();
    set(hash).insert(
        {hash, static_cast<uint32_t>(words_.size()), static_cast<uint16_t>(bytes), static_cast<uint16_t>(n)});
    int32_t* const to = words_.room(size);
    std::copy(ids, ids + n, to);
    std::memcpy(to + n, p, bytes);
    words_.advance(size);
  }

 private:
  static constexpr size_t kMaxIds = 4095, kWords = 1 << 21, kWays = 4, kFirstSets = 128, kMaxSets = 1 << 15;

  struct Slot {
    uint64_t hash;
    uint32_t at;          // its ids, followed by its bytes
    uint16_t bytes, ids;  // 0 bytes: an empty slot
  };

  // The slots of a hash, the most recent first.
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

  void clear_all() {
    if (sets_.size() == 0) TableMemory<Set>(kFirstSets).swap(sets_);
    std::memset(static_cast<void*>(sets_.begin()), 0, sets_.size() * sizeof(Set));
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
  size_t inserted_ = 0;
};

}  // namespace tokenweir
