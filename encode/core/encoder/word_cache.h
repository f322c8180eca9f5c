// A cache of pieces of up to 15 bytes and up to 4 ids: text repeats its words.
//
// One cache belongs to one thread at a time, so it needs no locks. An entry is 32 bytes, a set is two entries in one
// cache line; the older of the two is replaced. It begins small, because a large table costs more page faults than it
// saves on a short text. When it grows, it takes over the tokens of the table of all tokens, so that a token is found
// here at first sight, like any other word. Both tables are ordered by the same bits of the hash, so this reads and
// writes memory in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "memory/table_memory.h"
#include "vocabulary/word_key.h"
#include "vocabulary/word_table.h"

namespace tokenweir {

class WordCache {
 public:
  static constexpr size_t kMaxIds = WordBatch::kMaxIds;

  WordCache() : sets_(kFirstSets) {}

  // The byte offset of the set for a hash, valid until the next insert. Bytes, so that a look-up need not multiply.
  uint32_t place(uint32_t hash) const { return hash & static_cast<uint32_t>((sets_.size() - 1) * sizeof(Set)); }

  void prefetch(uint32_t place) const { __builtin_prefetch(&at(place)); }

  // Writes the ids of a piece to `out`, which has room for kMaxIds, and returns their number; 0 on a cache miss.
  size_t find(const WordKey& key, uint32_t hash, int32_t* out) const {
    const Ids* const found = at(place(hash)).find(key);
    return found ? found->copy(out) : 0;
  }

  // Looks up a batch. Writes the ids of the hits to `out`, one after the other, and the cache misses to `missing`,
  // followed by an entry for the end of the batch. Returns the number of misses. Both have room for one piece more than
  // the batch.
  size_t find(const WordBatch& batch, int32_t* const out, CacheMiss* missing) const {
    Set* const sets = sets_.begin();  // a local copy, so that the compiler knows that writes do not change it
    const size_t size = batch.size;
    size_t n = 0, written = 0;
    for (size_t i = 0; i < size; i++)
      if (const Ids* const found = at(sets, batch.places[i]).find(batch.keys[i]); __builtin_expect(found != nullptr, 1))
        written += found->copy(out + written);
      else
        missing[n++] = {static_cast<uint16_t>(i), static_cast<uint16_t>(written)};
    missing[n] = {static_cast<uint16_t>(size), static_cast<uint16_t>(written)};
    return n;
  }

  // Inserts a piece unless it is there.
  void insert(const WordKey& key, uint32_t hash, const int32_t* ids, size_t n) {
    if (at(place(hash)).find(key)) return;
    if (++inserted_ > sets_.size() && sets_.size() < kMaxSets) grow();
    at(place(hash)).insert(key, Ids::of(ids, n));
  }

  // Sets the tokens to take over: those with these flags. `words` may be null.
  void grow_with(const WordTable* words, uint32_t flags) {
    tokens_ = words;
    flags_ = flags;
  }

  // Takes over the tokens at once, if they are many.
  void fill() {
    if (tokens_ && tokens_->size() > sets_.size()) grow();
  }

 private:
  static constexpr size_t kFirstSets = 1 << 9, kNextSets = 1 << 15, kMaxSets = 1 << 17;  // 32 KiB, 2 MiB, 8 MiB

  struct alignas(16) Ids {
    int32_t ids[kMaxIds];  // padded with -1

    static Ids of(const int32_t* ids, size_t n) {
      Ids made;
      for (size_t i = 0; i < kMaxIds; i++) made.ids[i] = i < n ? ids[i] : -1;
      return made;
    }

    // Writes all kMaxIds and returns how many of them are valid.
    size_t copy(int32_t* out) const {
#ifdef __SSE4_2__
      const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(ids));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), all);
      return static_cast<size_t>(4 - __builtin_popcount(static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(all)))));
#else
      std::memcpy(out, ids, sizeof ids);
      return static_cast<size_t>(4 + (ids[1] >> 31) + (ids[2] >> 31) + (ids[3] >> 31));
#endif
    }
  };

  struct alignas(64) Set {
    WordKey keys[2];  // length 0: empty
    Ids ids[2];

    // Returns the ids of a piece, or null. Branch-free in the position, which a branch predictor could not guess.
    const Ids* find(const WordKey& key) const {
      const size_t which = kWhich[key.equal_halves(keys[0]) | key.equal_halves(keys[1]) << 2];
      return which ? &ids[which - 1] : nullptr;
    }

    // Inserts an entry in place of the older one.
    void insert(const WordKey& key, const Ids& its) {
      keys[1] = keys[0];
      ids[1] = ids[0];
      keys[0] = key;
      ids[0] = its;
    }

    // Indexed by a bit for each equal half of the two keys: 1 if the first key is equal, 2 if the second is, else 0.
    static constexpr uint8_t kWhich[16] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 2, 2, 2};
  };

  static Set& at(Set* sets, uint32_t place) {
    return *reinterpret_cast<Set*>(reinterpret_cast<uint8_t*>(sets) + place);
  }
  Set& at(uint32_t place) const { return at(sets_.begin(), place); }

  void grow() {
    TableMemory<Set> old(std::min(std::max({sets_.size() * 4, kNextSets, tokens_ ? tokens_->size() : 0}), kMaxSets));
    old.swap(sets_);
    if (tokens_)
      tokens_->for_each([&](const WordKey& key, uint32_t token) {
        const int32_t id = static_cast<int32_t>(token & WordTable::kId);
        if ((token & flags_) == flags_) at(place(key.hash())).insert(key, Ids::of(&id, 1));
      });
    for (const Set& set : old)
      for (int i = 1; i >= 0; i--)
        if (set.keys[i].high) at(place(set.keys[i].hash())).insert(set.keys[i], set.ids[i]);
  }

  TableMemory<Set> sets_;
  size_t inserted_ = 0;
  const WordTable* tokens_ = nullptr;
  uint32_t flags_ = 0;
};

}  // namespace tokenweir
