// Unicode normalization form C as HuggingFace's `tokenizers` 0.23 performs it, offsets included.
//
// Most text is in form C already, so the work is to see that quickly. Characters that neither change nor touch their
// neighbours are *inert*; they are skipped eight bytes at a time where the lead bytes alone tell. What remains are
// short *segments*: an inert character and those after it that are not (marks, Hangul jamo, characters that change).
// No composition and no reordering crosses a segment's edge. A segment that may change is decomposed, ordered and
// composed again; time is linear in the text but for the stable sort of a run of marks, and memory is that of the
// longest segment.
//
// The steps are those of every normalization form: another form is another choice of steps and decompositions.
// The text is valid UTF-8, the machine little-endian.
#pragma once

#include <stddef.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "nfc_tables.h"
#include "normalizer.h"
#include "span.h"
#include "utf8.h"

namespace tokenweir {

namespace normalization {

// A character's properties: the rank of its canonical combining class (0: a starter), and one of three states.
// A character that only decomposes is its own form C again and begins with a starter that composes with nothing before.
constexpr uint8_t kRank = 0x3F;  // ordered as the classes are
constexpr uint8_t kState = 0xC0;
constexpr uint8_t kComposes = 0x40;    // is the second part of a composition
constexpr uint8_t kDecomposes = 0x80;  // has a decomposition
constexpr uint8_t kChanges = 0xC0;     // has one, and never stands in form C

constexpr uint32_t kHangulSyllables = 0xAC00, kNSyllables = 11172;
constexpr uint32_t kHangulL = 0x1100, kHangulV = 0x1161, kHangulT = 0x11A7, kNL = 19, kNV = 21, kNT = 28;

constexpr uint8_t properties(uint32_t c) {
  const uint32_t block = c / 64;
  return block < std::size(nfc_tables::kBlockOf) ? nfc_tables::kProperties[nfc_tables::kBlockOf[block] * 64u + c % 64]
                                                 : 0;
}

constexpr bool is_inert(uint8_t own) { return (own & (kRank | kComposes)) == 0; }

// -- inert text -------------------------------------------------------------------------------------------------------

constexpr bool all_inert(uint32_t first, uint32_t last) {
  for (uint32_t c = first; c <= last; c++)
    if (!is_inert(properties(c))) return false;
  return true;
}

// The high bit of each byte of `word` that is `limit` (at least 0x80) or more; the other bits are noise.
constexpr uint64_t bytes_from(uint64_t word, uint8_t limit) {
  constexpr uint64_t kEach = 0x0101010101010101;
  return ((word & 0x7F * kEach) + (0x100u - limit) * kEach) & word;
}

// The high bit of each byte that leads a character whose properties must be looked up. All others lead inert ones.
constexpr uint64_t doubtful_leads(uint64_t word) {
  static_assert(all_inert(0, 0x2FF), "lead bytes up to 0xCB");
  static_assert(all_inert(0x4000, 0x9FFF), "lead bytes 0xE4 to 0xE9: Chinese characters");
  static_assert(all_inert(0xB000, 0xDFFF), "lead bytes 0xEB to 0xED: Hangul syllables");
  return (bytes_from(word, 0xCC) ^ bytes_from(word, 0xE4) ^ bytes_from(word, 0xEA) ^ bytes_from(word, 0xEB) ^
          bytes_from(word, 0xEE)) &
         0x8080808080808080;
}

// The first character of [p, end) that is not inert, or `end`.
inline const uint8_t* skip_inert(const uint8_t* p, const uint8_t* end) {
  while (p < end) {
    uint64_t word = 0;
    if (end - p >= 8)
      memcpy(&word, p, 8);
    else
      memcpy(&word, p, static_cast<size_t>(end - p));
    const uint64_t leads = word & 0x8080808080808080 ? doubtful_leads(word) : 0;
    if (!leads) {
      p += std::min<ptrdiff_t>(8, end - p);  // perhaps into the middle of a character, whose rest leads nothing
      continue;
    }
    p += __builtin_ctzll(leads) / 8;
    do {  // such characters come in runs
      uint32_t length;
      if (!is_inert(properties(utf8_decode_multibyte(p, length)))) return p;
      p += length;
    } while (p < end && *p >= 0xCC);
  }
  return end;
}

// -- one character, two characters ------------------------------------------------------------------------------------

// A character on its way to its normal form.
struct Element {
  uint32_t c;
  uint8_t rank;    // of its combining class
  uint8_t inputs;  // how many characters of the text it stands for: only the first of a decomposition counts one
};

inline void decompose(uint32_t c, std::vector<Element>& elements) {
  const uint8_t own = properties(c);
  if (!(own & kDecomposes)) {
    elements.push_back({c, static_cast<uint8_t>(own & kRank), 1});
    return;
  }
  if (const uint32_t syllable = c - kHangulSyllables; syllable < kNSyllables) {
    elements.push_back({kHangulL + syllable / (kNV * kNT), 0, 1});
    elements.push_back({kHangulV + syllable / kNT % kNV, 0, 0});
    if (syllable % kNT) elements.push_back({kHangulT + syllable % kNT, 0, 0});
    return;
  }
  using namespace nfc_tables;
  const size_t i = static_cast<size_t>(std::lower_bound(std::begin(kDecomposable), std::end(kDecomposable), c) -
                                       std::begin(kDecomposable));
  for (size_t k = kStart[i]; k < kStart[i + 1]; k++)
    elements.push_back({kPool[k], static_cast<uint8_t>(properties(kPool[k]) & kRank), k == kStart[i]});
}

// The primary composite of a pair, or 0.
inline uint32_t composite(uint32_t first, uint32_t second) {
  if ((properties(second) & kState) != kComposes) return 0;
  if (const uint32_t vowel = second - kHangulV; vowel < kNV) {
    const uint32_t lead = first - kHangulL;
    return lead < kNL ? kHangulSyllables + (lead * kNV + vowel) * kNT : 0;
  }
  if (const uint32_t tail = second - kHangulT; tail < kNT) {  // tail is not 0: that character does not compose
    const uint32_t syllable = first - kHangulSyllables;
    return syllable < kNSyllables && syllable % kNT == 0 ? first + tail : 0;
  }
  using namespace nfc_tables;
  const auto* at = std::lower_bound(std::begin(kCompositions), std::end(kCompositions), Composition{first, second, 0},
                                    [](const Composition& a, const Composition& b) {
                                      return a.first != b.first ? a.first < b.first : a.second < b.second;
                                    });
  return at != std::end(kCompositions) && at->first == first && at->second == second ? at->composite : 0;
}

// -- one segment ------------------------------------------------------------------------------------------------------

// Sorts each run of marks by combining class; marks of one class keep their order.
inline void order_marks(std::vector<Element>& elements) {
  const auto by_rank = [](const Element& a, const Element& b) { return a.rank < b.rank; };
  const auto is_mark = [](const Element& e) { return e.rank != 0; };
  for (auto p = elements.begin(); (p = std::find_if(p, elements.end(), is_mark)) != elements.end();) {
    const auto end = std::find_if_not(p, elements.end(), is_mark);
    if (!std::is_sorted(p, end, by_rank)) std::stable_sort(p, end, by_rank);
    p = end;
  }
}

// Composes each starter with what follows it, unless a mark of the same or a higher class stands between.
inline void compose(std::vector<Element>& elements) {
  size_t kept = 0, starter = SIZE_MAX;
  for (const Element element : elements) {
    if (starter < kept && (starter + 1 == kept || elements[kept - 1].rank < element.rank)) {
      if (const uint32_t c = composite(elements[starter].c, element.c)) {
        elements[starter].c = c;
        elements[starter].inputs = static_cast<uint8_t>(elements[starter].inputs + element.inputs);
        continue;
      }
    }
    if (element.rank == 0) starter = kept;
    elements[kept++] = element;
  }
  elements.resize(kept);
}

// Whether a segment is certainly in form C. It is not said of a composing mark after a character that decomposes,
// since the mark may come between that character's parts; such text is rare.
inline bool is_settled(const uint8_t* p, const uint8_t* end) {
  uint32_t starter = 0;  // the last one; U+0000 composes with nothing
  uint8_t starter_properties = 0, rank = 0;  // rank: of the character before
  for (uint32_t length; p < end; p += length) {
    const uint32_t c = utf8_decode(p, length);
    const uint8_t own = properties(c), own_rank = own & kRank;
    if ((own & kState) == kChanges || (own_rank && own_rank < rank)) return false;
    if ((own & kState) == kComposes && (rank == 0 || rank < own_rank) &&
        ((own_rank && starter_properties & kDecomposes) || composite(starter, c)))
      return false;
    if (own_rank == 0) {
      starter = c;
      starter_properties = own;
    }
    rank = own_rank;
  }
  return true;
}

struct Segment {
  const uint8_t *begin, *end;
};

// The first segment of [p, end) that may not be in form C, or an empty one at `end`. A segment begins at `p`.
inline Segment next_unsettled(const uint8_t* p, const uint8_t* end) {
  for (;;) {
    Segment segment;
    segment.end = skip_inert(p, end);
    if (segment.end == end) return {end, end};
    segment.begin = segment.end;
    if (segment.begin > p)
      do segment.begin--;
      while (utf8_continues(*segment.begin));
    for (uint32_t length; segment.end < end; segment.end += length)
      if (is_inert(properties(utf8_decode(segment.end, length)))) break;
    if (!is_settled(segment.begin, segment.end)) return segment;
    p = segment.end;
  }
}

// -- the output -------------------------------------------------------------------------------------------------------

inline void append_utf8(uint32_t c, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6), tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12), tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0);
  }
}

// Hands out the characters of a text in order, as spans.
class Cursor {
 public:
  explicit Cursor(const uint8_t* text) : text_(text) {}

  // Passes `n` characters and returns the first of them; for none, the last one passed.
  Span pass(size_t n) {
    if (n == 0) return last_;
    const Span first = step();
    while (--n) step();
    return first;
  }

  void pass_until(size_t end, std::vector<Span>& spans) {
    while (last_.end < end) spans.push_back(step());
  }

 private:
  Span step() { return last_ = {last_.end, last_.end + utf8_length(text_[last_.end])}; }

  const uint8_t* text_;
  Span last_{0, 0};
};

}  // namespace normalization

// Whether `text` certainly is in form C; where this is false, `nfc` gives the answer. Reads only, allocates nothing.
inline bool is_nfc(const uint8_t* text, size_t n) {
  const auto segment = normalization::next_unsettled(text, text + n);
  return segment.begin == segment.end;
}

// Appends form C of `text` to `out` and, unless `origin` is null, one span of `text` to it for each character appended.
//
// The spans are HuggingFace's, which aligns by position: characters pass through decomposition and ordering in a row,
// and each result stands where the first character that it used up stood *in the text's order*, even where a mark has
// been moved. So a composed character covers its base only, and what a decomposition adds points at the character
// before it. For text in form C, each character has its own span.
inline void nfc(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin) {
  using namespace normalization;
  const uint8_t* const end = text + n;
  std::vector<Element> elements;
  Cursor cursor(text);
  for (const uint8_t* p = text;;) {
    const Segment segment = next_unsettled(p, end);
    out.append(reinterpret_cast<const char*>(p), static_cast<size_t>(segment.begin - p));
    if (origin) cursor.pass_until(static_cast<size_t>(segment.begin - text), *origin);
    if (segment.begin == segment.end) return;
    elements.clear();
    uint32_t length;
    for (p = segment.begin; p < segment.end; p += length) decompose(utf8_decode(p, length), elements);
    order_marks(elements);
    compose(elements);
    for (const Element& element : elements) {
      append_utf8(element.c, out);
      if (origin) origin->push_back(cursor.pass(element.inputs));
    }
  }
}

class NormalForm : public NormalizerStep {
 public:
  bool keeps(const uint8_t* text, size_t n) const override { return is_nfc(text, n); }
  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin) const override {
    nfc(text, n, out, origin);
  }
};

}  // namespace tokenweir
