// Characters as Python's `str` sees them: white space, line ends, classes and case mappings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/utf8.h"
#include "text/character_tables.h"

namespace tokenweir::templates {

inline const uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

// The character at `at`, which is moved behind it.
inline uint32_t next_character(std::string_view text, size_t& at) {
  uint32_t length;
  const uint32_t character = utf8_decode(bytes_of(text) + at, length);
  at += length;
  return character;
}

// The start of the character that ends at `end`.
inline size_t previous_character(std::string_view text, size_t end) {
  do end--;
  while (end > 0 && utf8_continues(static_cast<uint8_t>(text[end])));
  return end;
}

inline size_t count_characters(std::string_view text) {
  size_t continuing = 0, i = 0;
#if defined(__SSE2__)
  for (const __m128i first = _mm_set1_epi8(-64); i + 16 <= text.size(); i += 16) {  // as signed bytes, 0x80 to 0xBF
    const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + i));
    continuing += static_cast<size_t>(__builtin_popcount(_mm_movemask_epi8(_mm_cmplt_epi8(chunk, first))));
  }
#endif
  for (uint64_t word; i + 8 <= text.size(); i += 8) {
    __builtin_memcpy(&word, text.data() + i, 8);
    continuing += static_cast<size_t>(__builtin_popcountll(word >> 7 & ~(word >> 6) & 0x0101010101010101u));
  }
  for (; i < text.size(); i++) continuing += utf8_continues(static_cast<uint8_t>(text[i]));
  return text.size() - continuing;
}

// The byte at which character `index` begins; the size if there are fewer.
inline size_t byte_of_character(std::string_view text, size_t index) {
  size_t at = 0;
  while (index-- > 0 && at < text.size()) at += utf8_length(static_cast<uint8_t>(text[at]));
  return at;
}

inline void append_character(uint32_t c, std::string& out) {
  uint8_t bytes[4];
  out.append(reinterpret_cast<const char*>(bytes), utf8_encode(c, bytes));
}

inline bool is_ascii(std::string_view text) {
  uint64_t all = 0, word;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    __builtin_memcpy(&word, text.data() + i, 8);
    all |= word;
  }
  for (; i < text.size(); i++) all |= static_cast<uint8_t>(text[i]);
  return !(all & 0x8080808080808080u);
}

// str.isspace, and what a regular expression's \s matches.
inline bool is_space(uint32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

inline bool ends_line(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

template <size_t N>
bool in_ranges(const CharacterRange (&ranges)[N], uint32_t c) {
  const auto* range = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                       [](uint32_t value, const CharacterRange& r) { return value < r.first; });
  return range != std::begin(ranges) && c <= range[-1].last;
}

inline bool is_ascii_upper(uint32_t c) { return c - 'A' < 26; }
inline bool is_ascii_lower(uint32_t c) { return c - 'a' < 26; }
inline bool is_ascii_digit(uint32_t c) { return c - '0' < 10; }
inline bool is_ascii_letter(uint32_t c) { return (c | 0x20) - 'a' < 26; }

// The value of an ASCII digit or letter as a digit of a number; 36 for other characters.
inline uint32_t digit_value(char c) {
  const uint32_t digit = static_cast<uint8_t>(c) - uint32_t{'0'}, letter = (static_cast<uint8_t>(c) | 0x20u) - 'a';
  return digit < 10 ? digit : letter < 26 ? letter + 10 : 36;
}

inline bool is_alphabetic(uint32_t c) { return c < 0x80 ? is_ascii_letter(c) : in_ranges(kAlphabetic, c); }
inline bool is_decimal(uint32_t c) { return c < 0x80 ? is_ascii_digit(c) : in_ranges(kDecimal, c); }
// The value of a decimal digit: the ranges of Unicode's begin with a zero, and have whole tens.
inline uint32_t decimal_value(uint32_t c) {
  if (c < 0x80) return c - '0';
  const auto* range = std::upper_bound(std::begin(kDecimal), std::end(kDecimal), c,
                                       [](uint32_t value, const CharacterRange& r) { return value < r.first; });
  return (c - range[-1].first) % 10;
}
inline bool is_digit(uint32_t c) { return c < 0x80 ? is_ascii_digit(c) : in_ranges(kDigit, c); }
inline bool is_numeric(uint32_t c) { return c < 0x80 ? is_ascii_digit(c) : in_ranges(kNumeric, c); }
inline bool is_printable(uint32_t c) { return c < 0x80 ? c >= 0x20 && c < 0x7F : !in_ranges(kUnprintable, c); }
inline bool is_upper(uint32_t c) { return c < 0x80 ? is_ascii_upper(c) : in_ranges(kUpperCase, c); }
inline bool is_lower(uint32_t c) { return c < 0x80 ? is_ascii_lower(c) : in_ranges(kLowerCase, c); }
inline bool is_title(uint32_t c) { return c >= 0x80 && in_ranges(kTitleCase, c); }
inline bool is_cased(uint32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }
inline bool is_word(uint32_t c) {
  return c == '_' || is_alphabetic(c) || is_decimal(c) || is_digit(c) || is_numeric(c);
}
inline bool starts_identifier(uint32_t c) {
  return c < 0x80 ? c == '_' || is_ascii_letter(c) : in_ranges(kIdentifierStart, c);
}
inline bool continues_identifier(uint32_t c) {
  return c < 0x80 ? c == '_' || is_ascii_letter(c) || is_ascii_digit(c) : in_ranges(kIdentifierPart, c);
}

// For a final sigma: a letter, or what stands between letters without counting.
inline bool is_cased_for_sigma(uint32_t c) { return c < 0x80 ? is_ascii_letter(c) : in_ranges(kCasedNotIgnorable, c); }
inline bool is_case_ignorable(uint32_t c) {
  if (c < 0x80) return c == '\'' || c == '.' || c == ':' || c == '^' || c == '`';
  return in_ranges(kCaseIgnorable, c);
}

template <size_t M, size_t E>
void append_mapped(const CaseMove (&moves)[M], const CaseExpansion (&expansions)[E], uint32_t c, std::string& out) {
  const auto* expansion = std::lower_bound(std::begin(expansions), std::end(expansions), c,
                                           [](const CaseExpansion& e, uint32_t value) { return e.character < value; });
  if (expansion != std::end(expansions) && expansion->character == c) {
    for (const uint32_t part : expansion->result)
      if (part) append_character(part, out);
    return;
  }
  const auto* move = std::upper_bound(std::begin(moves), std::end(moves), c,
                                      [](uint32_t value, const CaseMove& m) { return value < m.first; });
  if (move != std::begin(moves) && c <= move[-1].last && (c - move[-1].first) % move[-1].step == 0)
    c = static_cast<uint32_t>(static_cast<int32_t>(c) + move[-1].delta);
  append_character(c, out);
}

inline void append_upper(uint32_t c, std::string& out) {
  if (c < 0x80)
    out += static_cast<char>(is_ascii_lower(c) ? c - 32 : c);
  else
    append_mapped(kUpperMoves, kUpperExpansions, c, out);
}

inline void append_title(uint32_t c, std::string& out) {
  if (c < 0x80)
    out += static_cast<char>(is_ascii_lower(c) ? c - 32 : c);
  else
    append_mapped(kTitleMoves, kTitleExpansions, c, out);
}

inline void append_folded(uint32_t c, std::string& out) {
  if (c < 0x80)
    out += static_cast<char>(is_ascii_upper(c) ? c + 32 : c);
  else
    append_mapped(kFoldedMoves, kFoldedExpansions, c, out);
}

// The character of `text` that begins at `at`, in lower case: a capital sigma at the end of a word is a final one.
inline void append_lower(uint32_t c, std::string_view text, size_t at, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(is_ascii_upper(c) ? c + 32 : c);
    return;
  }
  if (c == 0x3A3) {
    bool after_letter = false, before_letter = false;
    for (size_t end = at; end > 0;) {
      size_t start = end = previous_character(text, end);
      const uint32_t other = next_character(text, start);
      if (is_case_ignorable(other)) continue;
      after_letter = is_cased_for_sigma(other);
      break;
    }
    for (size_t next = at + 2; after_letter && next < text.size();) {
      const uint32_t other = next_character(text, next);
      if (is_case_ignorable(other)) continue;
      before_letter = is_cased_for_sigma(other);
      break;
    }
    append_character(after_letter && !before_letter ? 0x3C2 : 0x3C3, out);
    return;
  }
  append_mapped(kLowerMoves, kLowerExpansions, c, out);
}

}  // namespace tokenweir::templates
