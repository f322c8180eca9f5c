// Extended grapheme clusters (UAX #29) as Rust's unicode-segmentation inside HuggingFace's `tokenizers` 0.23 finds
// them, with the tables of Unicode 17.
//
// Only Precompiled uses clusters, and it treats a cluster of six bytes or more as its characters. Regional indicators
// have four bytes each, so pairs of them need not be recognized.
#pragma once

#include <stdint.h>

#include <iterator>

#include "base/utf8.h"
#include "normalizers/grapheme_tables.h"

namespace tokenweir {

namespace graphemes {

using namespace grapheme_tables;
// kControl: always a cluster by itself, except CR LF. kPrepend: joins the character after it. kPictographic: emoji,
// which a joiner may link. kConsonant: linked by a linker. kL to kLVT: Hangul syllable types. From kSpacingMark on, all
// join the character before them. kConjunctExtend and kLinker extend a cluster, and a conjunct as well.

inline Class class_of(uint32_t c) {
  const uint32_t block = c / 64;
  return block < std::size(kBlockOf) ? static_cast<Class>(kClasses[kBlockOf[block] * 64u + c % 64]) : kOther;
}

// The state of a cluster, which decides whether the next character joins it.
struct Cluster {
  Class last;
  bool consonant = false;     // ends in a consonant and characters that extend a conjunct ...
  bool linker = false;        // ... with a linker among them
  bool pictographic = false;  // ends in an emoji and characters that extend it ...
  bool joiner = false;        // ... and one joiner

  explicit Cluster(Class first) { take(first); }

  bool takes(Class next) const {
    if (last == kControl || next == kControl) return false;
    if (next >= kSpacingMark || last == kPrepend) return true;
    switch (next) {
      case kL:
      case kLV:
      case kLVT: return last == kL;
      case kV: return last == kL || last == kV || last == kLV;
      case kT: return last >= kV && last <= kLVT;
      case kConsonant: return linker;
      case kPictographic: return joiner;
      default: return false;
    }
  }

  void take(Class next) {
    const bool extends = next >= kExtend && next != kZwj;
    joiner = next == kZwj && pictographic;
    pictographic = next == kPictographic || (pictographic && extends);
    consonant = next == kConsonant || (consonant && next >= kConjunctExtend);
    linker = consonant && (next == kLinker || (linker && next != kConsonant));
    last = next;
  }
};

}  // namespace graphemes

// Returns the end of the cluster that begins at `p`; p < end.
inline const uint8_t* grapheme_end(const uint8_t* p, const uint8_t* end) {
  using namespace graphemes;
  uint32_t length;
  const uint32_t first = utf8_decode(p, length);
  p += length;
  if (first == '\r') return p < end && *p == '\n' ? p + 1 : p;
  for (Cluster cluster(class_of(first)); p < end; p += length) {
    if (*p < 0x80 && cluster.last != kPrepend) break;
    const Class next = class_of(utf8_decode(p, length));
    if (!cluster.takes(next)) break;
    cluster.take(next);
  }
  return p;
}

}  // namespace tokenweir
