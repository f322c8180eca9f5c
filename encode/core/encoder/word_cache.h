// Pieces of up to 15 bytes and the ids they became: text repeats its words.
//
// One cache belongs to one thread at a time, so it needs no locks. An entry is 32 bytes, a set is two entries in one
// cache line; the older of the two is replaced. It begins small, since a large empty table costs more in fresh pages than
// it saves on a short text, and grows to a huge page at once, which is one fresh page too.
#pragma once

#include <algorithm>
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
    const size_t count = set.entries[b].copy_ids(out);
    return (a | b) ? count : 0;
  }

  // Looks up a batch. Writes the ids of the pieces that are there to `out`, one behind the other, and to `missing` which are
  // not there, with the end of the batch behind them; returns how many these are. Both have room for one piece more than
  // the batch has.
  size_t find(const WordBatch& batch, int32_t* const out, MissingWord* missing) const {
    const TableView<Set> sets = sets_.view();
    const size_t size = batch.size;
    size_t n = 0, written = 0;
    for (size_t i = 0; i < size; i++) {
      const Set& set = sets.at(batch.hashes[i]);
      const bool a = set.entries[0].key == batch.keys[i], b = set.entries[1].key == batch.keys[i];
      const size_t count = set.entries[b].copy_ids(out + written);
      missing[n] = {static_cast<uint16_t>(i), static_cast<uint16_t>(written)};
      n += !(a | b);
      written += (a | b) ? count : 0;
    }
    missing[n] = {static_cast<uint16_t>(size), static_cast<uint16_t>(written)};
    return n;
  }

  // Keeps a piece, if it is not there.
  void insert(const WordKey& key, uint32_t hash, const int32_t* ids, size_t n) {
    const Set& there = sets_.at(hash);
    if (there.entries[0].key == key || there.entries[1].key == key) return;
    if (++inserted_ > sets_.size() && sets_.size() < (size_t{1} << kLastBits)) grow();
    Set& set = sets_.at(hash);
    set.entries[1] = set.entries[0];
    set.entries[0].key = key;
    for (size_t i = 0; i < kMaxIds; i++) set.entries[0].ids[i] = i < n ? ids[i] : -1;
  }

 private:
  static constexpr int kFirstBits = 9, kNextBits = 15, kLastBits = 17;  // 32 KiB, 2 MiB, 8 MiB

  struct Entry {
    WordKey key;  // a length of zero: empty
    int32_t ids[kMaxIds];

    // Writes them, and returns how many there are; those behind the last are -1.
    size_t copy_ids(int32_t* out) const {
      std::memcpy(out, ids, sizeof ids);
      return static_cast<size_t>(4 + (ids[1] >> 31) + (ids[2] >> 31) + (ids[3] >> 31));
    }
  };

  struct alignas(64) Set {
    Entry entries[2];
  };

  void grow() {
    TableMemory<Set> old(std::max(sets_.size() * 4, size_t{1} << kNextBits));
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
