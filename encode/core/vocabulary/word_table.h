// The tokens of up to 15 bytes by their bytes: most pieces that a thread sees for the first time are one token.
//
// One table serves all threads. A line of the processor's cache holds three tokens; the rare fourth is left out, and the
// model finds it. Whether merging a token's bytes gives that token is told when the table is made
// (models/live_pairs.h), or else found when it is first asked; threads that find it at the same time write the same.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "base/shared_array.h"
#include "base/table_memory.h"
#include "vocabulary/word_key.h"

namespace tokenweir {

class WordTable {
 public:
  static constexpr uint32_t kId = (1u << 20) - 1;
  static constexpr uint32_t kMade = 1u << 30;    // merging makes the token of its bytes
  static constexpr uint32_t kUnmade = 1u << 29;  // it does not; neither: not tried yet

  WordTable() = default;

  // For about `tokens` tokens.
  explicit WordTable(size_t tokens) {
    size_t lines = 16;
    while (lines * 2 < tokens) lines *= 2;
    lines_ = {lines, Line{}};
  }

  // Asks for the memory that `insert` writes, unless the token is too long.
  void expect(std::string_view token) const {
    if (token.size() <= WordKey::kMaxBytes) prefetch(key_of(token).hash());
  }

  // The first of equal tokens holds.
  void insert(std::string_view token, uint32_t id) {
    const WordKey key = key_of(token);
    Line& line = lines().at(key.hash());
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

  // Whether all tokens with that hash are here.
  bool is_complete(uint32_t hash) const { return lines().at(hash).ids[3] != kLeftOut; }

  void prefetch(uint32_t hash) const { __builtin_prefetch(&lines().at(hash)); }

  // The token with its flags, or kNone.
  uint32_t find(const WordKey& key, uint32_t hash) const {
    const Line& line = lines().at(hash);
    const size_t at = line.place(key);
    return at < 3 ? __atomic_load_n(&line.ids[at], __ATOMIC_RELAXED) : kNone;
  }

  // Keeps what was found out about the token of `key`, which is there.
  void settle(const WordKey& key, bool made) const {
    Line& line = lines().at(key.hash());
    for (size_t i = 0; i < 3; i++)
      if (line.keys[i] == key)
        __atomic_store_n(&line.ids[i], (line.ids[i] & kId) | (made ? kMade : kUnmade), __ATOMIC_RELAXED);
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(lines_);
  }

 private:
  struct alignas(64) Line {
    WordKey keys[3];
    uint32_t ids[4] = {};  // the last is none: kLeftOut, if there was no place for a token

    // Which of the keys it is; 3: none. No branch, since none could be foretold.
    size_t place(const WordKey& key) const {
      const unsigned equal = keys[0].equal_halves(key) | keys[1].equal_halves(key) << 2 | keys[2].equal_halves(key) << 4;
      return static_cast<size_t>(__builtin_ctz((equal & equal >> 1 & 0x15) | 0x40)) / 2;
    }
  };

  static constexpr uint32_t kLeftOut = 1;

  static WordKey key_of(std::string_view token) {
    return WordKey::of(reinterpret_cast<const uint8_t*>(token.data()), token.size(), false);
  }

  TableView<Line> lines() const { return {lines_.data(), lines_.size() - 1}; }

  SharedArray<Line> lines_;  // a power of two of them; only flags change
};

}  // namespace tokenweir
