// Pieces of up to 15 bytes as two words, which are compared and hashed at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tokenweir {

struct WordKey {
  static constexpr size_t kMaxBytes = 15;
  static constexpr uint64_t kGuarded = uint64_t{16} << 56;  // no control token is to be found
  static constexpr uint64_t kPart = uint64_t{32} << 56;     // part of a piece: merging alone decides

  uint64_t low, high;  // the top byte of `high` is the length

  // `readable`: at least 16 bytes may be read from `p`.
  static WordKey of(const uint8_t* p, size_t n, bool readable) {
    WordKey key{};
    if (readable) {
      key.low = word(p) & word(kMasks + 16 - n);
      key.high = word(p + 8) & word(kMasks + 24 - n);
    } else {
      std::memcpy(&key, p, n);
    }
    key.high |= uint64_t{n} << 56;
    return key;
  }

  bool operator==(const WordKey& other) const { return ((low ^ other.low) | (high ^ other.high)) == 0; }

  uint64_t hash() const {
    const uint64_t h = (low ^ high * 0xC2B2AE3D27D4EB4Full) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 32;
  }

 private:
  static uint64_t word(const uint8_t* p) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    return word;
  }

  static constexpr uint8_t kMasks[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                         255, 255, 255, 255, 255};
};

}  // namespace tokenweir
