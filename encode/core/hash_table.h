// The two look-up tables of byte-pair encoding: token bytes -> id, and pair of ids -> priority of its merge.
//
// Both are open addressing with linear probing at most half full, built once and only read afterwards.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"

namespace tokenweir {

constexpr uint32_t kNone = 0xFFFFFFFF;

// Multiplication spreads the low bits upwards, so the slot is taken from the top.
inline uint64_t mix(uint64_t x) { return x * 0x9E3779B97F4A7C15ull; }

inline uint64_t hash_bytes(const uint8_t* p, size_t n) {
  uint64_t h = n;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = mix(h ^ word);
    h ^= h >> 32;
  }
  uint64_t word = 0;
  std::memcpy(&word, p, n);
  h = mix(h ^ word);
  return h ^ h >> 29;
}

inline int slot_bits(size_t entries) {
  int bits = 4;
  while ((size_t{1} << bits) < entries * 2) bits++;
  return bits;
}

// Token bytes to id. The bytes lie in a blob that the caller keeps.
class TokenTable {
 public:
  explicit TokenTable(size_t capacity) : shift_(64 - slot_bits(capacity)), slots_(size_t{1} << (64 - shift_)) {}

  // A token that is there already keeps its id; returns the id that holds now.
  uint32_t insert(const uint8_t* p, uint32_t n, uint32_t id) {
    const uint64_t h = hash_bytes(p, n);
    for (size_t i = mix(h) >> shift_;; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.id == kNone) {
        slot = {p, n, id};
        return id;
      }
      if (slot.length == n && std::memcmp(slot.bytes, p, n) == 0) return slot.id;
    }
  }

  uint32_t find(const uint8_t* p, size_t n) const {
    const uint64_t h = hash_bytes(p, n);
    for (size_t i = mix(h) >> shift_;; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[i];
      if (slot.id == kNone) return kNone;
      if (slot.length == n && std::memcmp(slot.bytes, p, n) == 0) return slot.id;
    }
  }

 private:
  struct Slot {
    const uint8_t* bytes = nullptr;
    uint32_t length = 0;
    uint32_t id = kNone;
  };
  int shift_;
  std::vector<Slot> slots_;
};

// Pair of ids to the priority of its merge (lower first), 8 bytes a slot: 20 bits each id, 24 bits priority.
class PairTable {
 public:
  static constexpr uint32_t kMaxId = (1u << 20) - 2;
  static constexpr uint32_t kMaxPriority = (1u << 24) - 2;

  explicit PairTable(size_t capacity)
      : shift_(64 - slot_bits(capacity)), slots_(size_t{1} << (64 - shift_), kEmpty) {}

  // A pair that is there already gets the new priority.
  void insert(uint32_t left, uint32_t right, uint32_t priority) {
    const uint64_t key = pair_key(left, right);
    for (size_t i = mix(key) >> shift_;; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i] == kEmpty || slots_[i] >> 24 == key) {
        slots_[i] = key << 24 | priority;
        return;
      }
  }

  uint32_t find(uint32_t left, uint32_t right) const {
    const uint64_t key = pair_key(left, right);
    for (size_t i = mix(key) >> shift_;; i = (i + 1) & (slots_.size() - 1)) {
      const uint64_t slot = slots_[i];
      if (slot >> 24 == key) return slot & 0xFFFFFF;
      if (slot == kEmpty) return kNone;
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static uint64_t pair_key(uint32_t left, uint32_t right) { return uint64_t{left} << 20 | right; }

  int shift_;
  std::vector<uint64_t> slots_;
};

}  // namespace tokenweir
