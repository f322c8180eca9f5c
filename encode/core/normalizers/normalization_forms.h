// Unicode's normalization forms C, D, KC and KD as HuggingFace's `tokenizers` 0.23 performs them, offsets included.
//
// Most text is normalized already, so the fast path is the check. A character is *inert* if it does not change and
// affects no neighbour; most of these are skipped 16 bytes at a time (inert_text.h). A *segment* is an inert character
// with the following characters that are not inert: marks, Hangul jamo, characters that change. No composition and no reordering crosses a segment's edge. A segment that may change is decomposed, ordered
// and, for C and KC, composed again. Time is linear in the text, except for the stable sort of a run of marks. Memory
// is that of the longest run of marks or jamo. The text must be valid UTF-8.
#pragma once

#include <stddef.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/span.h"
#include "base/text_writer.h"
#include "base/utf8.h"
#include "normalizers/inert_text.h"
#include "normalizers/normalization_tables.h"
#include "normalizers/normalizer.h"

namespace tokenweir {

namespace normalization {

// The properties of a character, for the canonical or the compatibility forms: the rank of its combining class, which
// is 0 for a starter, and at most one of three states. A character of the state kDecomposes composes to itself again in
// form C (or KC); its decomposition begins with a starter that composes with no character before it.
constexpr uint8_t kRank = 0x3F;  // ranks are ordered like the classes
constexpr uint8_t kState = 0xC0;
constexpr uint8_t kComposes = 0x40;    // is the second part of a composition
constexpr uint8_t kDecomposes = 0x80;  // has a decomposition
constexpr uint8_t kChanges = 0xC0;     // has a decomposition, and does not occur in form C (or KC)

constexpr uint32_t kHangulSyllables = 0xAC00, kNSyllables = 11172;
constexpr uint32_t kHangulL = 0x1100, kHangulV = 0x1161, kHangulT = 0x11A7, kNL = 19, kNV = 21, kNT = 28;

// A character during normalization.
struct Element {
  uint32_t c;
  uint8_t rank;    // of its combining class
  uint8_t inputs;  // characters of the text that it counts for: 1 for the first of a decomposition, 0 for the others
  Span from{};     // its source in the text, if the caller asks for it
};

// The properties and decompositions of the canonical or of the compatibility forms.
template <bool Compatibility>
struct Tables {
  static uint8_t properties(uint32_t c) {
    using namespace normalization_tables;
    const uint32_t block = c / 64;
    if constexpr (Compatibility)
      return block < std::size(kCompatibilityBlockOf) ? kProperties[kCompatibilityBlockOf[block] * 64u + c % 64] : 0;
    else
      return block < std::size(kBlockOf) ? kProperties[kBlockOf[block] * 64u + c % 64] : 0;
  }

  static void decompose(uint32_t c, std::vector<Element>& elements) {
    using namespace normalization_tables;
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
    if constexpr (Compatibility)
      if (spell(kCompatibility, c, elements)) return;
    spell(kCanonical, c, elements);
  }

 private:
  // Appends the decomposition of `c` in the table; returns false if it is not there.
  template <size_t N>
  static bool spell(const normalization_tables::Decompositions (&table)[N], uint32_t c,
                    std::vector<Element>& elements) {
    const auto* after = std::upper_bound(
        table, table + N, c, [](uint32_t c, const normalization_tables::Decompositions& d) { return c < d.first; });
    if (after == table) return false;
    const auto& found = after[-1];
    const uint32_t i = c - found.first;
    if (i >= found.characters) return false;
    const uint32_t* part = normalization_tables::kPool + found.start + i * found.length;
    for (size_t k = 0; k < found.length; k++)
      elements.push_back({part[k], static_cast<uint8_t>(properties(part[k]) & kRank), k == 0});
    return true;
  }
};

// Returns the primary composite of a pair, or 0.
inline uint32_t composite(uint32_t first, uint32_t second) {
  if ((Tables<false>::properties(second) & kState) != kComposes) return 0;
  if (const uint32_t vowel = second - kHangulV; vowel < kNV) {
    const uint32_t lead = first - kHangulL;
    return lead < kNL ? kHangulSyllables + (lead * kNV + vowel) * kNT : 0;
  }
  if (const uint32_t tail = second - kHangulT; tail < kNT) {  // tail is not 0, because that character does not compose
    const uint32_t syllable = first - kHangulSyllables;
    return syllable < kNSyllables && syllable % kNT == 0 ? first + tail : 0;
  }
  using namespace normalization_tables;
  const auto* at = std::lower_bound(std::begin(kCompositions), std::end(kCompositions), Composition{first, second, 0},
                                    [](const Composition& a, const Composition& b) {
                                      return a.first != b.first ? a.first < b.first : a.second < b.second;
                                    });
  return at != std::end(kCompositions) && at->first == first && at->second == second ? at->composite : 0;
}

// -- a decomposed segment ---------------------------------------------------------------------------------------------

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

// Composes each starter with the following characters, unless a mark of the same or a higher class is between.
inline void compose(std::vector<Element>& elements) {
  size_t kept = 0, starter = SIZE_MAX;
  for (const Element element : elements) {
    if (starter < kept && (starter + 1 == kept || elements[kept - 1].rank < element.rank)) {
      if (const uint32_t c = composite(elements[starter].c, element.c)) {
        elements[starter].c = c;
        elements[starter].inputs = static_cast<uint8_t>(elements[starter].inputs + element.inputs);
        elements[starter].from.end = std::max(elements[starter].from.end, element.from.end);
        continue;
      }
    }
    if (element.rank == 0) starter = kept;
    elements[kept++] = element;
  }
  elements.resize(kept);
}

// -- the output -------------------------------------------------------------------------------------------------------

// Iterates over the characters of a text, as spans.
class Cursor {
 public:
  explicit Cursor(const uint8_t* text) : text_(text) {}

  // Advances by `n` characters and returns the first of them; for n = 0, returns the last character of the step before.
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
  Span step() {
    last_ = {last_.end, last_.end + utf8_length(text_[last_.end])};
    return last_;
  }

  const uint8_t* text_;
  Span last_{0, 0};
};

}  // namespace normalization

// A normalization form. Spans are HuggingFace's, which counts characters instead of tracking them: each result consumes
// as many characters of the text as it counts for, in order. Its span is the first character that it consumes, or the
// last one consumed before if it consumes none. So a composed character covers its base only, and a reordered mark may
// have the span of another. In normalized text each character has its own span.
template <bool Composed, bool Compatibility>
class NormalForm : public NormalizerStep {
 public:
  NormalForm() : inert_([](uint32_t c) { return is_inert(Tables::properties(c)); }) {}

  bool splits_in_ascii() const override { return true; }
  bool splits_at_space() const override { return true; }

  bool is_unchanged(const uint8_t* text, size_t n) const override {
    const Segment segment = next_unnormalized(text, text + n);
    return segment.begin == segment.end;
  }

  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin, Origin kind) const override {
    using namespace normalization;
    const uint8_t* const end = text + n;
    std::vector<Element> elements, next;
    Cursor cursor(text);
    TextWriter writer(out, n);
    const auto finish = [&] {
      order_marks(elements);
      if constexpr (Composed) compose(elements);
      for (const Element& element : elements) {
        writer.append_character(element.c);
        if (!origin) continue;
        const Span library = cursor.pass(element.inputs);
        origin->push_back(kind == Origin::kAll ? element.from : library);
      }
      elements.clear();
    };
    for (const uint8_t* p = text;;) {
      const Segment segment = next_unnormalized(p, end);
      writer.append(p, static_cast<size_t>(segment.begin - p));
      if (origin) cursor.pass_until(static_cast<size_t>(segment.begin - text), *origin);
      if (segment.begin == segment.end) return;
      uint32_t length;
      for (p = segment.begin; p < segment.end; p += length) {
        const size_t first = elements.size();
        Tables::decompose(utf8_decode(p, length), elements);
        for (size_t i = first; kind == Origin::kAll && i < elements.size(); i++)
          elements[i].from = {static_cast<size_t>(p - text), static_cast<size_t>(p - text) + length};
        if (first < kMaxElements || Tables::properties(elements[first].c) & (kRank | kComposes)) continue;
        next.assign(elements.begin() + static_cast<ptrdiff_t>(first), elements.end());
        elements.resize(first);
        finish();
        elements.swap(next);
      }
      finish();
    }
  }

 private:
  using Tables = normalization::Tables<Compatibility>;

  static constexpr size_t kMaxElements = 256;  // longer segments are cut at an element that neither moves nor composes

  struct Segment {
    const uint8_t *begin, *end;
  };

  static constexpr bool is_inert(uint8_t own) {
    using namespace normalization;
    return (own & (kRank | (Composed ? kComposes : kDecomposes))) == 0;
  }

  // Returns the first character of [p, end) that is not inert, or `end`.
  const uint8_t* skip_inert(const uint8_t* p, const uint8_t* end) const {
    while ((p = inert_.skip(p, end)) < end) {
      do {  // such characters occur in runs
        uint32_t length;
        if (!is_inert(Tables::properties(utf8_decode(p, length)))) return p;
        p += length;
      } while (p < end && !inert_.may_skip(*p));
    }
    return end;
  }

  // Returns the first segment of [p, end) that may not be normalized, or an empty one at `end`. A segment begins at
  // `p`.
  Segment next_unnormalized(const uint8_t* p, const uint8_t* end) const {
    for (;;) {
      Segment segment;
      segment.end = skip_inert(p, end);
      if (segment.end == end) return {end, end};
      segment.begin = segment.end;
      if (segment.begin > p) {
        do segment.begin--;
        while (utf8_continues(*segment.begin));
      }
      for (uint32_t length; segment.end < end; segment.end += length)
        if (is_inert(Tables::properties(utf8_decode(segment.end, length)))) break;
      if (!is_normalized(segment.begin, segment.end)) return segment;
      p = segment.end;
    }
  }

  // Whether a segment is known to be normalized. Returns false for a mark that composes after a character that
  // decomposes, because the mark may belong between the parts of that character; such text is rare.
  static bool is_normalized(const uint8_t* p, const uint8_t* end) {
    using namespace normalization;
    uint32_t starter = 0;                      // the last starter; U+0000 composes with nothing
    uint8_t starter_properties = 0, rank = 0;  // rank: of the character before
    for (uint32_t length; p < end; p += length) {
      const uint32_t c = utf8_decode(p, length);
      const uint8_t own = Tables::properties(c), own_rank = own & kRank;
      if ((Composed ? (own & kState) == kChanges : own & kDecomposes) || (own_rank && own_rank < rank)) return false;
      if (Composed && (own & kState) == kComposes && (rank == 0 || rank < own_rank) &&
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

  InertText inert_;
};

}  // namespace tokenweir
