// The fast path of splitting by one of the commonest patterns: 64 bytes at a time (piece_starts.h), where the automaton
// goes character by character. It finds exactly the automaton's pieces.
//
// Each step begins at the start of a piece. Where the masks do not decide (rare characters, pieces of more than 64
// bytes, the end of the text), the automaton finds one piece. Pieces depend on nothing before them, so the masks
// continue after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"
#include "pattern/automaton.h"
#include "pretokenizers/piece_starts.h"

namespace tokenweir {

// The kind of a class of non-ASCII characters in the masks. `kDeferred`: left to the automaton.
enum class Kind : uint8_t { kOther, kLetter, kUpper, kLower, kDeferred };  // hard: the automaton decides

class Scanner {
 public:
  static constexpr size_t kMaxEnds = 256;  // the most ends that one call writes

  // `family`: a name of pattern/families.py. `kinds`: the `Kind` of each class of the automaton, beyond ASCII.
  Scanner(const std::string& family, const std::vector<uint8_t>& kinds, const Automaton& automaton, size_t n_pages)
      : automaton_(automaton), pages_(n_pages * 256), instructions_(best_instructions()), scan_(scan_function(family)) {
    for (size_t i = 0; i < pages_.size(); i++) {
      const uint8_t c = automaton.class_pages[i];
      if (c >= kinds.size() || kinds[c] > static_cast<uint8_t>(Kind::kDeferred))
        throw FileError("a scanner without a kind for class " + std::to_string(c));
      pages_[i] = kinds[c];
    }
    find_letters();
  }

  // Writes the ends of pieces of [p, end), relative to p, and returns their number; at least one if p < end.
  size_t scan(const uint8_t* p, const uint8_t* end, uint32_t* ends) const { return scan_(*this, p, end, ends); }

  const char* instructions() const {
    return instructions_ == Instructions::kAvx512 ? "avx512"
           : instructions_ == Instructions::kAvx2 ? "avx2"
           : instructions_ == Instructions::kNeon ? "neon"
                                                  : "portable";
  }

 private:
  using Scan = size_t (*)(const Scanner&, const uint8_t*, const uint8_t*, uint32_t*);

  static constexpr size_t kMinBytes = 16;          // fewer bytes are not worth the masks
  static constexpr ptrdiff_t kMaxBytes = 1 << 30;  // of one call
  static constexpr int kMinKana = 3;               // fewer are not worth a vector look-up

  Scan scan_function(const std::string& family) const {
    if (family == "gpt2") return scan_function_of<Gpt2Rules>();
    if (family == "cl100k") return scan_function_of<Cl100kRules>();
    if (family == "qwen") return scan_function_of<QwenRules>();
    if (family == "o200k") return scan_function_of<O200kRules>();
    if (family == "tekken") return scan_function_of<TekkenRules>();
    throw FileError("there is no scanner for " + family);
  }

  template <class Rules>
  Scan scan_function_of() const {
#ifdef TW_X86_TARGETS
    if (instructions_ == Instructions::kAvx512) return &run_avx512<Rules>;
    if (instructions_ == Instructions::kAvx2) return &run_avx2<Rules>;
#endif
#ifdef TW_NEON
    if (instructions_ == Instructions::kNeon) return &run_neon<Rules>;
#endif
    return &run_portable<Rules>;
  }

  // One loop per instruction set.
#ifdef TW_X86_TARGETS
  template <class Rules>
  TW_AVX512 static size_t run_avx512(const Scanner& self, const uint8_t* text, const uint8_t* end, uint32_t* ends) {
    return self.run<Rules, Avx512Bytes>(text, end, ends);
  }
  template <class Rules>
  TW_AVX2 static size_t run_avx2(const Scanner& self, const uint8_t* text, const uint8_t* end, uint32_t* ends) {
    return self.run<Rules, Avx2Bytes>(text, end, ends);
  }
#endif
#ifdef TW_NEON
  template <class Rules>
  static size_t run_neon(const Scanner& self, const uint8_t* text, const uint8_t* end, uint32_t* ends) {
    return self.run<Rules, NeonBytes>(text, end, ends);
  }
#endif
  template <class Rules>
  static size_t run_portable(const Scanner& self, const uint8_t* text, const uint8_t* end, uint32_t* ends) {
    return self.run<Rules, PortableBytes>(text, end, ends);
  }

  template <class Rules, class Bytes>
  TW_INLINE size_t run(const uint8_t* const text, const uint8_t* end, uint32_t* ends) const {
    uint32_t* out = ends;
    const uint8_t* p = text;
    const uint32_t* const full = ends + kMaxEnds - 68;
    while (p < end && out <= full && p - text < kMaxBytes) {
      uint64_t starts = 1;
      if (static_cast<size_t>(end - p) >= kMinBytes) starts = starts_at<Rules, Bytes>(p, end);
      if (starts == 1) {
        p = piece_end(p, end);
        *out++ = static_cast<uint32_t>(p - text);
        continue;
      }
      const uint32_t base = static_cast<uint32_t>(p - text);
      const int count = __builtin_popcountll(starts) - 1;
      starts &= starts - 1;
      p += 63 - __builtin_clzll(starts);
      Bytes::write_bits(starts, base, out);
      out += count;
    }
    return static_cast<size_t>(out - ends);
  }

  template <class Rules, class Bytes>
  TW_INLINE uint64_t starts_at(const uint8_t* p, const uint8_t* end) const {
    uint8_t copy[64];
    uint32_t n = 64;
    const uint8_t* from = p;
    if (end - p < 64) {
      n = static_cast<uint32_t>(end - p);
      std::memset(copy, 0, 64);
      std::memcpy(copy, p, n);
      from = copy;
    }
    const ByteMasks bytes = Bytes::masks(from);
    KindMasks m{};
    m.letter = bytes.letter;
    if constexpr (Rules::kCases) {
      m.upper = bytes.upper;
      m.lower = bytes.lower;
    }
    m.digit = bytes.digit;
    m.space = bytes.space;
    m.blank = bytes.blank;
    m.newline = bytes.newline;
    m.apostrophe = bytes.apostrophe;
    m.slash = bytes.slash;
    m.other = ~(m.letter | m.digit | m.space | m.blank | m.newline | bytes.high);
    if (bytes.high) {
      KindMasks all = m;  // a copy, so that `m` stays in registers
      uint64_t high = bytes.high & ~add_letters<Bytes>(from, all);
      if constexpr (Bytes::kHasLookup) high &= ~add_kana<Bytes>(from, all);
      n = add_non_ascii<Rules::kCases>(p, high, all, n);
      m = all;
    }
    if (n < 64) {
      if (n == 0) return 1;
      m.keep(below(n));
    }
    return piece_starts<Rules>(p, m, n);
  }

  // Adds the characters of the letter range (Chinese) to the masks at once, and returns their bytes. The last character
  // of the 64 bytes may be cut off.
  template <class Bytes>
  TW_INLINE uint64_t add_letters(const uint8_t* p, KindMasks& m) const {
    const uint64_t first = Bytes::range(p, first_lead_, first_lead_) & Bytes::range(p, first_second_, 0xBF) >> 1;
    const uint64_t leads = first | Bytes::range(p, static_cast<uint8_t>(first_lead_ + 1), last_lead_);
    const uint64_t rest = leads << 1 | leads << 2;
    m.continuation |= rest;
    m.letter |= leads | rest;
    return leads | rest;
  }

  // Adds the whole characters from U+3000 to U+30FF that are letters or of the kind `kOther`: kana, and Chinese and
  // Japanese punctuation. Returns their bytes.
  template <class Bytes>
  TW_INLINE uint64_t add_kana(const uint8_t* p, KindMasks& m) const {
    const uint64_t leads = Bytes::range(p, 0xE3, 0xE3) & Bytes::range(p, 0x80, 0x83) >> 1 & ~uint64_t{0} >> 2;
    if (__builtin_popcountll(leads) < kMinKana) return 0;
    const uint8_t* const kinds = pages_.data() + automaton_.class_index[0x30] * 256u;
    const uint64_t letters = Bytes::last_bytes_of_kind(p, kinds, static_cast<uint8_t>(Kind::kLetter)) >> 2 & leads;
    const uint64_t others = Bytes::last_bytes_of_kind(p, kinds, static_cast<uint8_t>(Kind::kOther)) >> 2 & leads;
    const uint64_t rest = (letters | others) << 1 | (letters | others) << 2;
    m.continuation |= rest;
    m.letter |= letters | letters << 1 | letters << 2;
    m.other |= others | others << 1 | others << 2;
    return letters | others | rest;
  }

  // Adds the remaining non-ASCII characters to the masks. Returns how many bytes the masks are valid for.
  template <bool Cases>
  uint32_t add_non_ascii(const uint8_t* p, uint64_t high, KindMasks& m, uint32_t n) const {
    while (high) {
      const uint32_t i = lowest(high);
      uint32_t length;
      const uint32_t c = utf8_decode_multibyte(p + i, length);
      const uint64_t bytes = below(length) << i;
      const Kind kind = kind_of(c);
      if (kind == Kind::kDeferred) {
        n = std::min(n, i);
        break;
      }
      m.continuation |= bytes & (bytes - 1);
      if (kind == Kind::kOther) {
        m.other |= bytes;
      } else {
        m.letter |= bytes;
        if (kind == Kind::kUpper) m.upper |= bytes;
        if (kind == Kind::kLower) m.lower |= bytes;
      }
      high &= ~bytes;
    }
    if constexpr (Cases) {  // letters without case join those after them, so an upper-case letter there is deferred
      const uint64_t either = m.letter & ~(m.upper | m.lower);
      if (const uint64_t deferred = m.upper & either << 1) n = std::min(n, lowest(deferred));
    }
    return n;
  }

  Kind kind_of(uint32_t c) const {
    return static_cast<Kind>(pages_[automaton_.class_index[c >> 8] * 256u + (c & 0xFF)]);
  }

  // Finds the longest range of three-byte characters that are all letters. It begins at a multiple of 64 characters,
  // which share two bytes, and ends with the last character of some lead byte. In Unicode it is Chinese.
  void find_letters() {
    uint32_t longest = 0, start = 0x1000;
    for (uint32_t c = start; c <= 0x10000; c += 64) {
      bool letters = c < 0x10000;
      for (uint32_t i = 0; i < 64 && letters; i++) letters = kind_of(c + i) == Kind::kLetter;
      if (letters) continue;
      const uint32_t end = c & ~0xFFFu;
      if (end > (start | 0xFFF) + 1 && end - start > longest) {
        longest = end - start;
        first_lead_ = static_cast<uint8_t>(0xE0 | start >> 12);
        first_second_ = static_cast<uint8_t>(0x80 | (start >> 6 & 0x3F));
        last_lead_ = static_cast<uint8_t>(0xE0 | (end - 1) >> 12);
      }
      start = c + 64;
    }
  }

  const uint8_t* piece_end(const uint8_t* p, const uint8_t* end) const {
    bool gap;
    return automaton_.token_end(p, end, gap);
  }

  Automaton automaton_;
  std::vector<uint8_t> pages_;  // the Kind by page and low byte of a code point, like the automaton's classes
  uint8_t first_lead_ = 0xFD, first_second_ = 0x80,
          last_lead_ = 0xFF;  // the letter range; by default one that no text has
  Instructions instructions_;
  Scan scan_;
};

}  // namespace tokenweir
