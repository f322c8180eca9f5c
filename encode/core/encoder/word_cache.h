// Pieces of up to 15 bytes and the ids they became: text repeats its words.
//
// One cache belongs to one thread at a time, so it needs no locks. An entry is 32 bytes, a set is two entries in one
// cache line; the older of the two is replaced. It grows while it fills, since a large empty table costs more in fresh
// pages than it saves on a short text.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/table_memory.h"
#include "encoder/word_key.h"

namespace tokenweir {

class WordCache {
 public:
  static constexpr size_t kMaxIds = WordBatch::kMaxIds;

  WordCache() : sets_(size_t{1} << kFirstBits) {}

  void prefetch(uint32_t hash) const { __builtin_prefetch(&sets_.at(hash)); }

  // The number of ids, written to `out` (which has room for kMaxIds); 0 if the piece is not there.
  size_t find(const WordKey& key, uint32_t hash, int32_t* out) const {
    const Set& set = sets_.at(hash);
    const bool a = set.entries[0].key == key, b = set.entries[1].key == key;
    const Entry& entry = set.entries[b];
    std::memcpy(out, entry.ids, sizeof entry.ids);
    const int count = 4 + (entry.ids[1] >> 31) + (entry.ids[2] >> 31) + (entry.ids[3] >> 31);
    return (a | b) ? static_cast<size_t>(count) : 0;
  }

  void insert(const WordKey& key, uint32_t hash, const int32_t* ids, size_t n) {
    if (++inserted_ > sets_.size() && sets_.size() < (size_t{1} << kLastBits)) grow();
    Set& set = sets_.at(hash);
    set.entries[1] = set.entries[0];
    set.entries[0].key = key;
    for (size_t i = 0; i < kMaxIds; i++) set.entries[0].ids[i] = i < n ? ids[i] : -1;
  }

 private:
  static constexpr int kFirstBits = 9, kLastBits = 17;  // 32 KiB to 8 MiB

  struct Entry {
    WordKey key;  // a length of zero: empty
    int32_t ids[kMaxIds];
  };

  struct alignas(64) Set {
    Entry entries[2];
  };

  void grow() {
    TableMemory<Set> old(sets_.size() * 4);
    old.swap(sets_);
    for (const Set& set : old)
      for (int i = 1; i >= 0; i--)
        if (set.entries[i].key.high) {
          Set& to = sets_.at(set.entries[i].key.hash());
          to.entries[1] = to.entries[0];
          to.entries[0] = set.entries[i];
        }
  }

  TableMemory<Set> sets_;
  size_t inserted_ = 0;
};

}  // namespace tokenweir
