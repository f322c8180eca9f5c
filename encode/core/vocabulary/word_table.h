// The tokens of up to 15 bytes, by their bytes: most pieces that miss the cache are one token.
//
// All threads share one table. A cache line holds three tokens; a rare fourth is left out, and the model finds it.
// Whether merging a token's bytes yields that token is known when the table is built (models/live_pairs.h), or recorded
// at the first question. Threads that record it at the same time write the same value.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "memory/shared_array.h"
#include "memory/table_memory.h"
#include "vocabulary/word_key.h"

namespace tokenweir {

class WordTable {
 public:
  static constexpr uint32_t kId = (1u << 20) - 1;
  static constexpr uint32_t kMergeable = 1u << 30;    // merging the token's bytes yields the token
  static constexpr uint32_t kUnmergeable = 1u << 29;  // it does not; neither flag: not known yet

  WordTable() = default;

  // Makes room for about `tokens` tokens.
  explicit WordTable(size_t tokens) {
    size_t lines = 16;
    while (lines * 2 < tokens) lines *= 2;
    lines_ = {lines, Line{}};
  }

  // Prefetches the memory that `insert` writes, unless the token is too long.
  void prefetch_insert(std::string_view token) const {
    if (token.size() <= WordKey::kMaxBytes) prefetch(key_of(token).hash());
  }

  // Inserts a token. The first of equal tokens wins.
  void insert(std::string_view token, uint32_t id) {
    const WordKey key = key_of(token);
    Line& line = this->line(key.hash());
    for (size_t i = 0; i < 3; i++) {
      if (line.keys[i] == key) return;
      if (line.keys[i].high == 0) {
        line.keys[i] = key;
        line.ids[i] = id;
        return;
      }
    }
    line.ids[3] = kLeftOut;
  }

  // Whether the table has all tokens with this hash.
  bool is_complete(uint32_t hash) const { return line(hash).ids[3] != kLeftOut; }

  void prefetch(uint32_t hash) const { __builtin_prefetch(&line(hash)); }

  // Returns the token with its flags, or kNone.
  uint32_t find(const WordKey& key, uint32_t hash) const {
    const Line& line = this->line(hash);
    const size_t at = line.place(key);
    return at < 3 ? __atomic_load_n(&line.ids[at], __ATOMIC_RELAXED) : kNone;
  }

  // Records whether merging yields the token of `key`, which is in the table.
  void record_merge(const WordKey& key, bool mergeable) const {
    Line& line = this->line(key.hash());
    for (size_t i = 0; i < 3; i++)
      if (line.keys[i] == key) {
        const uint32_t id = __atomic_load_n(&line.ids[i], __ATOMIC_RELAXED) & kId;
        __atomic_store_n(&line.ids[i], id | (mergeable ? kMergeable : kUnmergeable), __ATOMIC_RELAXED);
      }
  }

  // About how many tokens there are, at least half of them.
  size_t size() const { return lines_.size() * 2; }

  // Calls `use(key, token)` for every token, with its flags, in the order of the lines.
  template <class Use>
  void for_each(Use&& use) const {
    for (const Line& line : lines_)
      for (size_t i = 0; i < 3 && line.keys[i].high != 0; i++)
        use(line.keys[i], __atomic_load_n(&line.ids[i], __ATOMIC_RELAXED));
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(lines_);
  }

 private:
  struct alignas(64) Line {
    WordKey keys[3];
    uint32_t ids[4] = {};  // the last is a flag: kLeftOut if a token did not fit

    // Returns the index of the key, or 3. Branch-free, because a branch predictor could not guess the position.
    size_t place(const WordKey& key) const {
      const unsigned equal =
          keys[0].equal_halves(key) | keys[1].equal_halves(key) << 2 | keys[2].equal_halves(key) << 4;
      return static_cast<size_t>(__builtin_ctz((equal & equal >> 1 & 0x15) | 0x40)) / 2;
    }
  };

  static constexpr uint32_t kLeftOut = 1;

  static WordKey key_of(std::string_view token) {
    return WordKey::of(reinterpret_cast<const uint8_t*>(token.data()), token.size(), false);
  }

  // `WordCache::place` takes the same bits of a hash, so that the order of the lines is that of its sets.
  Line& line(uint32_t hash) const { return lines_[hash / sizeof(Line) & (lines_.size() - 1)]; }

  SharedArray<Line> lines_;  // their number is a power of two; only flags change later
};

}  // namespace tokenweir
