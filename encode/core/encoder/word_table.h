// The tokens of up to 15 bytes by their bytes: most pieces of a text are one token, which is asked for here first.
//
// One table serves all threads. A line of the processor's cache holds three tokens; the rare fourth is left out, and then
// found like a piece that is no token. Whether merging a token's bytes gives that token is found when it is first asked;
// threads that find it at the same time write the same.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "base/table_memory.h"
#include "encoder/word_key.h"

namespace tokenweir {

class WordTable {
 public:
  static constexpr uint32_t kId = (1u << 20) - 1;
  static constexpr uint32_t kMade = 1u << 30;    // merging makes the token of its bytes
  static constexpr uint32_t kUnmade = 1u << 29;  // it does not; neither: not tried yet

  // For about `tokens` tokens.
  explicit WordTable(size_t tokens) {
    size_t lines = 16;
    while (lines * 2 < tokens) lines *= 2;
    lines_ = TableMemory<Line>(lines);
  }

  // The first of equal tokens holds.
  void insert(std::string_view token, uint32_t id) {
    const WordKey key = WordKey::of(reinterpret_cast<const uint8_t*>(token.data()), token.size(), false);
    Line& line = lines_.at(key.hash());
    for (size_t i = 0; i < 3; i++) {
      if (line.keys[i] == key) return;
      if (line.keys[i].high == 0) {
        line.keys[i] = key;
        line.ids[i] = id;
        return;
      }
    }
  }

  void prefetch(uint64_t hash) const { __builtin_prefetch(&lines_.at(hash)); }

  // The token with its flags, or kNone.
  uint32_t find(const WordKey& key, uint64_t hash) const {
    const Line& line = lines_.at(hash);
    const bool a = line.keys[0] == key, b = line.keys[1] == key, c = line.keys[2] == key;
    return (a | b | c) ? __atomic_load_n(&line.ids[b + 2 * c], __ATOMIC_RELAXED) : kNone;
  }

  // Keeps what was found out about the token of `key`, which is there.
  void settle(const WordKey& key, bool made) const {
    Line& line = lines_.at(key.hash());
    for (size_t i = 0; i < 3; i++)
      if (line.keys[i] == key)
        __atomic_store_n(&line.ids[i], (line.ids[i] & kId) | (made ? kMade : kUnmade), __ATOMIC_RELAXED);
  }

 private:
  struct alignas(64) Line {
    WordKey keys[3];
    uint32_t ids[3] = {};
  };

  TableMemory<Line> lines_;  // only flags change
};

}  // namespace tokenweir
