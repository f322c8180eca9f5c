// Bytes of a JSON string, looked at together.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tokenweir::templates {

inline constexpr uint64_t kHighBits = 0x8080808080808080u;

class Chunk {
 public:
#if defined(__SSE2__)
  static constexpr size_t kSize = 16;
  explicit Chunk(const char* bytes) : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes))) {}
  void store(char* to) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes_); }
  // Not 0 if one of the first `size` bytes is not ASCII.
  uint64_t high_bits(size_t size) const { return bits(bytes_) & ((uint64_t{1} << size) - 1) ? kHighBits : 0; }
  // A bit for each byte that is a quote, a backslash or a control character; `index` tells the first of them.
  uint64_t special() const { return bits(special_bytes()); }
  // The same with the bytes that are not printable ASCII.
  uint64_t special_or_other() const {
    const __m128i others = _mm_or_si128(bytes_, _mm_cmpeq_epi8(bytes_, _mm_set1_epi8(0x7F)));  // their high bits
    return bits(_mm_or_si128(special_bytes(), others));
  }
  static size_t index(uint64_t special) { return static_cast<size_t>(__builtin_ctzll(special)); }

 private:
  static uint64_t bits(__m128i bytes) { return static_cast<uint32_t>(_mm_movemask_epi8(bytes)); }
  __m128i special_bytes() const {
    const __m128i quotes = _mm_cmpeq_epi8(bytes_, _mm_set1_epi8('"'));
    const __m128i escapes = _mm_cmpeq_epi8(bytes_, _mm_set1_epi8('\\'));
    const __m128i controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes_, _mm_set1_epi8(0x1F)), bytes_);
    return _mm_or_si128(_mm_or_si128(quotes, escapes), controls);
  }

  __m128i bytes_;
#else
  static constexpr size_t kSize = 8;
  explicit Chunk(const char* bytes) { std::memcpy(&bytes_, bytes, kSize); }
  void store(char* to) const { std::memcpy(to, &bytes_, kSize); }
  // Not 0 if one of the first `size` bytes is not ASCII.
  uint64_t high_bits(size_t size) const { return size ? bytes_ << (kSize - size) * 8 & kHighBits : 0; }
  // A bit for each byte that is a quote, a backslash or a control character; `index` tells the first of them.
  uint64_t special() const {
    const uint64_t from_space =
        (bytes_ & kLowBits) + kOnes * (0x80 - ' ');  // high bits of ASCII that is no control character
    return equal_to('"') | equal_to('\\') | (~from_space & ~bytes_ & kHighBits);
  }
  // The same with the bytes that are not printable ASCII.
  uint64_t special_or_other() const { return special() | equal_to(0x7F) | (bytes_ & kHighBits); }
  static size_t index(uint64_t special) { return static_cast<size_t>(__builtin_ctzll(special)) / 8; }

 private:
  static constexpr uint64_t kLowBits = ~kHighBits, kOnes = kHighBits >> 7;
  uint64_t equal_to(uint64_t byte) const {
    const uint64_t different = bytes_ ^ kOnes * byte;
    return ~(((different & kLowBits) + kLowBits) | different) & kHighBits;
  }

  uint64_t bytes_;
#endif
};

}  // namespace tokenweir::templates
