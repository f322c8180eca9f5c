// Pieces of up to 15 bytes as two 64-bit words, which are compared and hashed at once.
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
  static constexpr uint64_t kGuarded = uint64_t{16} << 56;  // guarded: its ids contain no control token
  static constexpr uint64_t kPart = uint64_t{32} << 56;     // a part of a piece: its ids are those of merging alone
  static constexpr uint64_t kTooLong = uint64_t{64} << 56;  // a sentinel that no table contains
  static constexpr uint64_t kText = uint64_t{128} << 56;    // a whole original text

  uint64_t low, high;  // the top byte of `high` is the length

  // `readable`: at least 16 bytes may be read from `p`.
  static WordKey of(const uint8_t* p, size_t n, bool readable) {
    if (readable) return from_16(p, n);
    WordKey key{0, uint64_t{n} << 56};
    if (n > 8) {  // the two reads overlap, to avoid a loop over bytes
      key.low = word(p);
      key.high |= word(p + n - 8) >> 8 * (16 - n);
    } else if (n >= 4) {
      key.low = half_word(p) | half_word(p + n - 4) << 8 * (n - 4);
    } else if (n > 0) {
      key.low = uint64_t{p[0]} | uint64_t{p[n / 2]} << 8 * (n / 2) | uint64_t{p[n - 1]} << 8 * (n - 1);
    }
    return key;
  }

  // Makes a key where 16 bytes may be read. For more than 15 bytes, returns the sentinel `too_long`.
  static WordKey from_16(const uint8_t* p, size_t n) {
    if (__builtin_expect(n > kMaxBytes, 0)) return too_long(n);
    const Form& form = kForms.of[n];
    return {word(p) & form.low, (word(p + 8) & form.high) | form.length};
  }

  static WordKey too_long(size_t n) { return {n, kTooLong}; }

  // The length of the piece in bytes.
  size_t bytes() const { return high & kTooLong ? low : high >> 56 & kMaxBytes; }

  bool operator==(const WordKey& other) const { return ((low ^ other.low) | (high ^ other.high)) == 0; }

  // A bit for each equal half, the low half first.
  unsigned equal_halves(const WordKey& other) const {
#ifdef __SSE4_1__
    const __m128i equal = _mm_cmpeq_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(this)),
                                          _mm_loadu_si128(reinterpret_cast<const __m128i*>(&other)));
    return static_cast<unsigned>(_mm_movemask_pd(_mm_castsi128_pd(equal)));
#else
    return unsigned{low == other.low} | unsigned{high == other.high} << 1;
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

  static uint64_t half_word(const uint8_t* p) {
    uint32_t word;
    std::memcpy(&word, p, 4);
    return word;
  }

  // The masks and the length bits of a key, by the length of the piece. A table, because computing them takes longer.
  struct Form {
    uint64_t low, high, length;
    uint64_t unused;  // makes the size a power of two
  };
  struct Forms {
    Form of[kMaxBytes + 1] = {};
    constexpr Forms() {
      for (uint64_t n = 1; n <= kMaxBytes; n++)
        of[n] = {n < 8 ? (uint64_t{1} << 8 * n) - 1 : ~uint64_t{0}, n > 8 ? (uint64_t{1} << 8 * (n - 8)) - 1 : 0,
                 n << 56, 0};
    }
  };
  static const Forms kForms;
};

inline constexpr WordKey::Forms WordKey::kForms{};

// Pieces that are looked up together, so that their cache lines are loaded in parallel. Only the first `size` are
// valid.
struct WordBatch {
  static constexpr size_t kSize = 512;
  static constexpr size_t kMaxIds = 4;

  size_t size = 0;
  alignas(64) WordKey keys[kSize];  // each in one cache line
  uint32_t places[kSize];           // `WordCache::place` of each
};

// A piece of a batch that is not in the cache, and the number of ids of all hits before it.
struct CacheMiss {
  uint16_t piece, ids_before;
};

}  // namespace tokenweir
