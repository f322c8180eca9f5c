// 64 bytes of text to bit masks, one for each kind of ASCII character: bit i is set if byte i is of the kind.
//
// `range` tells which bytes lie between two that are not ASCII. Each instruction set has a class with the same answers. Which one a scanner takes is chosen when the program runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define TW_X86_TARGETS 1
#define TW_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define TW_AVX512 __attribute__((target("avx512f,avx512bw,bmi,bmi2")))
#endif

// For what is compiled anew for each instruction set: it has that of the function that calls it.
#if defined(__GNUC__) || defined(__clang__)
#define TW_INLINE inline __attribute__((always_inline))
#else
#define TW_INLINE inline
#endif

namespace tokenweir {

struct ByteMasks {
  uint64_t upper, lower, digit;  // A-Z, a-z, 0-9
  uint64_t space, blank;         // U+0020; other white space that ends no line
  uint64_t newline;              // \n and \r
  uint64_t apostrophe, slash;
  uint64_t high;  // not ASCII
};

// Eight bytes at a time in a plain 64-bit word; for any little-endian machine.
struct PortableBytes {
  static constexpr uint64_t kOnes = 0x0101010101010101, kTops = kOnes << 7;

  // The top bit of each byte of `word`, all below 128, that is at least `from`; `from` is at most 128.
  static uint64_t at_least(uint64_t word, uint64_t from) { return (word + kOnes * (128 - from)) & kTops; }

  static uint64_t between(uint64_t word, uint64_t from, uint64_t to) { return at_least(word, from) & ~at_least(word, to + 1); }

  // The eight top bits side by side.
  static uint64_t pack(uint64_t tops) { return (tops >> 7) * 0x0102040810204080 >> 56; }

  static inline ByteMasks masks(const uint8_t* p) {
    ByteMasks m{};
    for (int i = 0; i < 64; i += 8) {
      uint64_t word;
      std::memcpy(&word, p + i, 8);
      const uint64_t high = word & kTops, seven = word & ~kTops;
      const auto put = [&](uint64_t& mask, uint64_t tops) { mask |= pack(tops & ~high) << i; };
      const uint64_t newline = between(seven, '\n', '\n') | between(seven, '\r', '\r');
      put(m.upper, between(seven, 'A', 'Z'));
      put(m.lower, between(seven, 'a', 'z'));
      put(m.digit, between(seven, '0', '9'));
      put(m.space, between(seven, ' ', ' '));
      put(m.newline, newline);
      put(m.blank, between(seven, '\t', '\r') & ~newline);
      put(m.apostrophe, between(seven, '\'', '\''));
      put(m.slash, between(seven, '/', '/'));
      m.high |= pack(high) << i;
    }
    return m;
  }

  static inline uint64_t range(const uint8_t* p, uint8_t first, uint8_t last) {
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 8) {
      uint64_t word;
      std::memcpy(&word, p + i, 8);
      mask |= pack(between(word & ~kTops, first & 0x7F, last & 0x7F) & word) << i;
    }
    return mask;
  }
};

#ifdef TW_X86_TARGETS

struct Avx2Bytes {
  TW_AVX2 static TW_INLINE uint64_t bits(__m256i low, __m256i high) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
           static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32;
  }
  TW_AVX2 static TW_INLINE __m256i is(__m256i v, char c) { return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c)); }
  TW_AVX2 static TW_INLINE __m256i between(__m256i v, char from, char to) {
    const __m256i above = _mm256_sub_epi8(v, _mm256_set1_epi8(from));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(above, _mm256_set1_epi8(static_cast<char>(to - from))), above);
  }

  TW_AVX2 static inline ByteMasks masks(const uint8_t* p) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    ByteMasks m;
    m.upper = bits(between(a, 'A', 'Z'), between(b, 'A', 'Z'));
    m.lower = bits(between(a, 'a', 'z'), between(b, 'a', 'z'));
    m.digit = bits(between(a, '0', '9'), between(b, '0', '9'));
    m.space = bits(is(a, ' '), is(b, ' '));
    m.newline = bits(_mm256_or_si256(is(a, '\n'), is(a, '\r')), _mm256_or_si256(is(b, '\n'), is(b, '\r')));
    m.blank = bits(between(a, '\t', '\r'), between(b, '\t', '\r')) & ~m.newline;
    m.apostrophe = bits(is(a, '\''), is(b, '\''));
    m.slash = bits(is(a, '/'), is(b, '/'));
    m.high = bits(a, b);
    return m;
  }

  TW_AVX2 static inline uint64_t range(const uint8_t* p, uint8_t first, uint8_t last) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    const char from = static_cast<char>(first), to = static_cast<char>(last);
    return bits(between(a, from, to), between(b, from, to));
  }
};

struct Avx512Bytes {
  TW_AVX512 static TW_INLINE uint64_t is(__m512i v, char c) { return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(c)); }
  TW_AVX512 static TW_INLINE uint64_t between(__m512i v, char from, char to) {
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, _mm512_set1_epi8(from)),
                                  _mm512_set1_epi8(static_cast<char>(to - from)));
  }

  TW_AVX512 static inline ByteMasks masks(const uint8_t* p) {
    const __m512i v = _mm512_loadu_si512(p);
    ByteMasks m;
    m.upper = between(v, 'A', 'Z');
    m.lower = between(v, 'a', 'z');
    m.digit = between(v, '0', '9');
    m.space = is(v, ' ');
    m.newline = is(v, '\n') | is(v, '\r');
    m.blank = between(v, '\t', '\r') & ~m.newline;
    m.apostrophe = is(v, '\'');
    m.slash = is(v, '/');
    m.high = _mm512_movepi8_mask(v);
    return m;
  }

  TW_AVX512 static inline uint64_t range(const uint8_t* p, uint8_t first, uint8_t last) {
    return between(_mm512_loadu_si512(p), static_cast<char>(first), static_cast<char>(last));
  }
};

#endif

enum class Instructions : uint8_t { kPortable, kAvx2, kAvx512 };

// The best that this machine has, unless the environment variable TOKENWEIR_SCANNER names lesser ones (avx512, avx2,
// portable).
inline Instructions best_instructions() {
#ifdef TW_X86_TARGETS
  const char* asked = std::getenv("TOKENWEIR_SCANNER");
  const auto may_be = [&](const char* one) { return !asked || std::strcmp(asked, one) == 0 || std::strcmp(asked, "avx512") == 0; };
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")) return Instructions::kPortable;
  if (may_be("avx512") && __builtin_cpu_supports("avx512bw")) return Instructions::kAvx512;
  if (may_be("avx2") && __builtin_cpu_supports("avx2")) return Instructions::kAvx2;
#endif
  return Instructions::kPortable;
}

}  // namespace tokenweir
