// Converts 64 bytes of text to bit masks, one for each kind of ASCII character: bit i is set if byte i is of the kind.
//
// `range` finds the bytes between two non-ASCII bytes, and `write_bits` converts a mask to numbers. Each instruction
// set has a class with the same results; one with `kHasLookup` also classifies the characters of one page. The class is
// chosen at run time.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define TW_X86_TARGETS 1
#define TW_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt")))
#define TW_AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt")))
#elif defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#define TW_NEON 1
#endif

// For functions that are compiled once per instruction set: they are inlined, and so get that of their caller.
#if defined(__GNUC__) || defined(__clang__)
#define TW_INLINE inline __attribute__((always_inline))
#else
#define TW_INLINE inline
#endif

namespace tokenweir {

struct ByteMasks {
  uint64_t upper, lower, letter, digit;  // A-Z, a-z, both, 0-9
  uint64_t space, blank;                 // U+0020; other white space except line ends
  uint64_t newline;                      // \n and \r
  uint64_t apostrophe, slash;
  uint64_t high;  // not ASCII
};

// The portable implementation: eight bytes at a time in a 64-bit word, on any little-endian machine.
struct PortableBytes {
  static constexpr bool kHasLookup = false;
  static constexpr uint64_t kOnes = 0x0101010101010101, kTops = kOnes << 7;

  // Sets the top bit of each byte of `word` that is at least `from`. All bytes are below 128, `from` is at most 128.
  static uint64_t at_least(uint64_t word, uint64_t from) { return (word + kOnes * (128 - from)) & kTops; }

  static uint64_t between(uint64_t word, uint64_t from, uint64_t to) {
    return at_least(word, from) & ~at_least(word, to + 1);
  }

  // Packs the top bits of eight bytes into one byte.
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
    m.letter = m.upper | m.lower;
    return m;
  }

  // Writes the indices of the set bits of `mask`, in order, plus `base`. May write garbage after them, up to 64 numbers
  // in all.
  static TW_INLINE void write_bits(uint64_t mask, uint32_t base, uint32_t* out) {
    for (; mask; out += 4)  // four at a time; the last ones may be garbage
      for (int k = 0; k < 4; k++) {
        out[k] = base + static_cast<uint32_t>(__builtin_ctzll(mask | uint64_t{1} << 63));
        mask &= mask - 1;
      }
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
  static constexpr bool kHasLookup = false;

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
    m.letter = m.upper | m.lower;
    return m;
  }

  TW_AVX2 static inline void write_bits(uint64_t mask, uint32_t base, uint32_t* out) {
    PortableBytes::write_bits(mask, base, out);
  }

  TW_AVX2 static inline uint64_t range(const uint8_t* p, uint8_t first, uint8_t last) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    const char from = static_cast<char>(first), to = static_cast<char>(last);
    return bits(between(a, from, to), between(b, from, to));
  }
};

// The kinds of each ASCII character, a bit each, from the top: newline, space, blank, letter, digit, apostrophe, slash,
// upper.
struct AsciiKinds {
  alignas(64) uint8_t of[128] = {};
  constexpr AsciiKinds() {
    for (int c = 'A'; c <= 'Z'; c++) of[c] = 0x11;
    for (int c = 'a'; c <= 'z'; c++) of[c] = 0x10;
    for (int c = '0'; c <= '9'; c++) of[c] = 0x08;
    for (int c = '\t'; c <= '\r'; c++) of[c] = c == '\n' || c == '\r' ? 0x80 : 0x20;
    of[int{' '}] = 0x40;
    of[int{'\''}] = 0x04;
    of[int{'/'}] = 0x02;
  }
};
inline constexpr AsciiKinds kAsciiKinds;

struct Numbers {
  alignas(64) uint8_t of[64] = {};
  constexpr Numbers() {
    for (uint8_t i = 0; i < 64; i++) of[i] = i;
  }
};
inline constexpr Numbers kNumbers;

struct Avx512Bytes {
  static constexpr bool kHasLookup = true;
  static constexpr uint64_t kAll = ~uint64_t{0};

  TW_AVX512 static inline ByteMasks masks(const uint8_t* p) {
    const __m512i v = _mm512_loadu_si512(p);
    const __mmask64 high = _mm512_movepi8_mask(v);
    __m512i kinds = _mm512_maskz_permutex2var_epi8(~high, _mm512_load_si512(kAsciiKinds.of), v,
                                                   _mm512_load_si512(kAsciiKinds.of + 64));
    ByteMasks m;
    m.high = high;
    m.newline = next(kinds);
    m.space = next(kinds);
    m.blank = next(kinds);
    m.letter = next(kinds);
    m.digit = next(kinds);
    m.apostrophe = next(kinds);
    m.slash = next(kinds);
    m.upper = next(kinds);
    m.lower = m.letter & ~m.upper;
    return m;
  }

  // Returns the top bits of all bytes, and shifts the next bits to the top.
  TW_AVX512 static TW_INLINE uint64_t next(__m512i& kinds) {
    const uint64_t mask = _mm512_movepi8_mask(kinds);
    kinds = _mm512_add_epi8(kinds, kinds);
    return mask;
  }

  // Uses the masked intrinsics with full masks, because GCC warns about the unmasked ones.
  TW_AVX512 static inline void write_bits(uint64_t mask, uint32_t base, uint32_t* out) {
    const __m512i packed = _mm512_maskz_compress_epi8(mask, _mm512_load_si512(kNumbers.of));
    const __m512i bases = _mm512_set1_epi32(static_cast<int>(base));
    put(_mm512_maskz_extracti32x4_epi32(0xF, packed, 0), bases, out);
    put(_mm512_maskz_extracti32x4_epi32(0xF, packed, 1), bases, out + 16);
    if (__builtin_popcountll(mask) <= 32) return;
    put(_mm512_maskz_extracti32x4_epi32(0xF, packed, 2), bases, out + 32);
    put(_mm512_maskz_extracti32x4_epi32(0xF, packed, 3), bases, out + 48);
  }

  TW_AVX512 static TW_INLINE void put(__m128i numbers, __m512i bases, uint32_t* out) {
    _mm512_storeu_si512(out, _mm512_add_epi32(_mm512_maskz_cvtepu8_epi32(0xFFFF, numbers), bases));
  }

  TW_AVX512 static inline uint64_t range(const uint8_t* p, uint8_t first, uint8_t last) {
    const __m512i above = _mm512_sub_epi8(_mm512_loadu_si512(p), _mm512_set1_epi8(static_cast<char>(first)));
    return _mm512_cmple_epu8_mask(above, _mm512_set1_epi8(static_cast<char>(last - first)));
  }

  // Marks the bytes that end a character of `kind`. The page has 256 characters; the low two bits of the byte before,
  // and the low six bits of the last byte, are the index in `kinds`.
  TW_AVX512 static inline uint64_t last_bytes_of_kind(const uint8_t* p, const uint8_t* kinds, uint8_t kind) {
    const __m512i last = _mm512_loadu_si512(p);
    const __m512i places = _mm512_add_epi8(_mm512_load_si512(kNumbers.of), _mm512_set1_epi8(-1));
    const __m512i before = _mm512_maskz_slli_epi16(kAll >> 32, _mm512_maskz_permutexvar_epi8(kAll, places, last), 6);
    const __m512i number = _mm512_or_si512(_mm512_and_si512(before, _mm512_set1_epi8(static_cast<char>(0xC0))),
                                           _mm512_and_si512(last, _mm512_set1_epi8(0x3F)));
    const __m512i found =
        _mm512_mask_blend_epi8(_mm512_movepi8_mask(number), look_up(kinds, number), look_up(kinds + 128, number));
    return _mm512_cmpeq_epi8_mask(found, _mm512_set1_epi8(static_cast<char>(kind)));
  }

  // Looks up 64 indices in a table of 128 bytes.
  TW_AVX512 static TW_INLINE __m512i look_up(const uint8_t* table, __m512i numbers) {
    return _mm512_maskz_permutex2var_epi8(kAll, _mm512_loadu_si512(table), numbers, _mm512_loadu_si512(table + 64));
  }
};

#endif

#ifdef TW_NEON

struct NeonBytes {
  static constexpr bool kHasLookup = false;

  // Returns a mask of the bytes that `test` maps to 0xFF; it maps all others to 0.
  template <class Test>
  static TW_INLINE uint64_t where(const uint8_t* p, Test&& test) {
    const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const auto bits = [&](int at) { return vandq_u8(test(vld1q_u8(p + at)), bit); };
    const uint8x16_t low = vpaddq_u8(bits(0), bits(16)), high = vpaddq_u8(bits(32), bits(48));
    const uint8x16_t all = vpaddq_u8(low, high);  // a byte for four; the next sum has one for eight
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
  }
  static TW_INLINE uint8x16_t is(uint8x16_t v, char c) { return vceqq_u8(v, vdupq_n_u8(static_cast<uint8_t>(c))); }
  static TW_INLINE uint8x16_t between(uint8x16_t v, uint8_t from, uint8_t to) {
    return vcleq_u8(vsubq_u8(v, vdupq_n_u8(from)), vdupq_n_u8(static_cast<uint8_t>(to - from)));
  }

  static inline ByteMasks masks(const uint8_t* p) {
    ByteMasks m;
    m.upper = where(p, [](uint8x16_t v) { return between(v, 'A', 'Z'); });
    m.lower = where(p, [](uint8x16_t v) { return between(v, 'a', 'z'); });
    m.digit = where(p, [](uint8x16_t v) { return between(v, '0', '9'); });
    m.space = where(p, [](uint8x16_t v) { return is(v, ' '); });
    m.newline = where(p, [](uint8x16_t v) { return vorrq_u8(is(v, '\n'), is(v, '\r')); });
    m.blank = where(p, [](uint8x16_t v) { return between(v, '\t', '\r'); }) & ~m.newline;
    m.apostrophe = where(p, [](uint8x16_t v) { return is(v, '\''); });
    m.slash = where(p, [](uint8x16_t v) { return is(v, '/'); });
    m.high = where(p, [](uint8x16_t v) { return vcltzq_s8(vreinterpretq_s8_u8(v)); });
    m.letter = m.upper | m.lower;
    return m;
  }

  static inline void write_bits(uint64_t mask, uint32_t base, uint32_t* out) {
    PortableBytes::write_bits(mask, base, out);
  }

  static inline uint64_t range(const uint8_t* p, uint8_t first, uint8_t last) {
    return where(p, [=](uint8x16_t v) { return between(v, first, last); });
  }
};

#endif

enum class Instructions : uint8_t { kPortable, kNeon, kAvx2, kAvx512 };

// Returns the best instruction set of this machine. The environment variable TOKENWEIR_SCANNER (avx512, avx2 or
// portable) caps it; on arm64, whose processors all have NEON, every value but `portable` means NEON.
inline Instructions best_instructions() {
#if defined(TW_X86_TARGETS) || defined(TW_NEON)
  const char* asked = std::getenv("TOKENWEIR_SCANNER");
#endif
#ifdef TW_NEON
  if (!asked || std::strcmp(asked, "portable") != 0) return Instructions::kNeon;
#endif
#ifdef TW_X86_TARGETS
  const auto may_be = [&](const char* one) {
    return !asked || std::strcmp(asked, one) == 0 || std::strcmp(asked, "avx512") == 0;
  };
  __builtin_cpu_init();
  // Processors with these have LZCNT too, for which not every compiler has a check.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
    return Instructions::kPortable;
  if (may_be("avx512") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512vbmi2"))
    return Instructions::kAvx512;
  if (may_be("avx2")) return Instructions::kAvx2;
#endif
  return Instructions::kPortable;
}

}  // namespace tokenweir
