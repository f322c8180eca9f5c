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
  static constexpr uint64_t kText = uint64_t{128} << 56;    // a whole text, before anything is done with it

  uint64_t low, high;  // the top byte of `high` is the length

  // `readable`: at least 16 bytes may be read from `p`.
  static WordKey of(const uint8_t* p, size_t n, bool readable) {
    if (readable) return from_16(p, n);
    WordKey key{0, uint64_t{n} << 56};
    if (n > 8) {  // some of it twice, so that no loop goes byte by byte
      key.low = word(p);
      key.high |= word(p + n - 8) >> 8 * (16 - n);
    } else if (n >= 4) {
      key.low = half_word(p) | half_word(p + n - 4) << 8 * (n - 4);
    } else if (n > 0) {
      key.low = uint64_t{p[0]} | uint64_t{p[n / 2]} << 8 * (n / 2) | uint64_t{p[n - 1]} << 8 * (n - 1);
    }
    return key;
  }

  // The same where 16 bytes may be read; of more than 15 bytes, a key that no table has.
  static WordKey from_16(const uint8_t* p, size_t n) {
    if (__builtin_expect(n > kMaxBytes, 0)) return too_long(n);
    const Form& form = kForms.of[n];
    return {word(p) & form.low, (word(p + 8) & form.high) | form.length};
  }

  static WordKey too_long(size_t n) { return {n, kTooLong}; }

  // How many bytes the piece has.
  size_t bytes() const { return high & kTooLong ? low : high >> 56 & kMaxBytes; }

  bool operator==(const WordKey& other) const { return ((low ^ other.low) | (high ^ other.high)) == 0; }

  // A bit for each half that is equal: the low one first.
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

  // What a key of so many bytes has of the text, and its length. A table, since to reckon these takes longer.
  struct Form {
    uint64_t low, high, length;
    uint64_t unused;  // so that a shift finds a form
  };
  struct Forms {
    Form of[kMaxBytes + 1] = {};
    constexpr Forms() {
      for (uint64_t n = 1; n <= kMaxBytes; n++)
        of[n] = {n < 8 ? (uint64_t{1} << 8 * n) - 1 : ~uint64_t{0}, n > 8 ? (uint64_t{1} << 8 * (n - 8)) - 1 : 0, n << 56, 0};
    }
  };
  static const Forms kForms;
};

inline constexpr WordKey::Forms WordKey::kForms{};

// A few pieces that are looked up together, one after the other, so that the memory of all arrives at once. Nothing is
// cleared: only the first `size` are there.
struct WordBatch {
  static constexpr size_t kSize = 512;
  static constexpr size_t kMaxIds = 4;

  size_t size = 0;
  WordKey keys[kSize];
  uint32_t places[kSize];  // where in the cache they may be
};

// A piece of a batch that was not found, and how many ids the pieces before it have that were.
struct MissingWord {
  uint16_t piece, ids_before;
};

}  // namespace tokenweir
