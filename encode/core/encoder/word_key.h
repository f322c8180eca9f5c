// Pieces of up to 15 bytes as two words, which are compared and hashed at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace tokenweir {

struct WordKey {
  static constexpr size_t kMaxBytes = 15;
  static constexpr uint64_t kGuarded = uint64_t{16} << 56;  // no control token is to be found
  static constexpr uint64_t kPart = uint64_t{32} << 56;     // part of a piece: merging alone decides
  static constexpr uint64_t kTooLong = uint64_t{64} << 56;  // no table has it

  uint64_t low, high;  // the top byte of `high` is the length

  // `readable`: at least 16 bytes may be read from `p`.
  static WordKey of(const uint8_t* p, size_t n, bool readable) {
    WordKey key{};
    if (readable) return from_16(p, n);
    std::memcpy(&key, p, n);
    key.high |= uint64_t{n} << 56;
    return key;
  }

  // The same where 16 bytes may be read; of more than 15 bytes, a key that equals no other.
  static WordKey from_16(const uint8_t* p, size_t n) {
    n = n < 16 ? n : kTooLong >> 56;
    const uint8_t* masks = kMasks + 16 - (n & 15);
    return {word(p) & word(masks), (word(p + 8) & word(masks + 8)) | uint64_t{n} << 56};
  }

  bool operator==(const WordKey& other) const {
#ifdef __SSE4_1__
    const __m128i differ = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(this)),
                                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(&other)));
    return _mm_testz_si128(differ, differ);
#else
    return ((low ^ other.low) | (high ^ other.high)) == 0;
#endif
  }

  uint32_t hash() const {
#ifdef __SSE4_2__
    return static_cast<uint32_t>(_mm_crc32_u64(_mm_crc32_u64(0, low), high));
#else
    const uint64_t h = (low ^ high * 0xC2B2AE3D27D4EB4Full) * 0x9E3779B97F4A7C15ull;
    return static_cast<uint32_t>(h ^ h >> 32);
#endif
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

// A few pieces that are looked up together, one after the other, so that the memory of all arrives at once. Nothing is
// cleared: only the first `size` are there.
struct WordBatch {
  static constexpr size_t kSize = 128;
  static constexpr size_t kMaxIds = 4;

  size_t size = 0;
  WordKey keys[kSize];
  uint32_t hashes[kSize];
};

// A piece of a batch that was not found, and how many ids the pieces before it have that were.
struct MissingWord {
  uint16_t piece, ids_before;
};

}  // namespace tokenweir
