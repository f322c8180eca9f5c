// Extended grapheme clusters (UAX #29) as Rust's unicode-segmentation inside HuggingFace's `tokenizers` 0.23 finds
// them, with the tables of Unicode 17.
//
// The only use of clusters there is Precompiled, to which a cluster of six bytes or more is its characters. Regional
// indicators have four bytes each, so whether two of them belong together is not asked.
#pragma once

#include <stdint.h>

#include <iterator>

#include "normalizers/grapheme_tables.h"
#include "base/utf8.h"

namespace tokenweir {

namespace graphemes {

using namespace grapheme_tables;
// kControl: nothing belongs to it, but a line feed to a carriage return. kPrepend: belongs to what follows.
// kPictographic: emoji, that a joiner may link. kConsonant: that a linker may link. kL to kLVT: Hangul, by type.
// From kSpacingMark on, all belong to what they follow. kConjunctExtend and kLinker extend, and a conjunct as well.

inline Class class_of(uint32_t c) {
  const uint32_t block = c / 64;
  return block < std::size(kBlockOf) ? static_cast<Class>(kClasses[kBlockOf[block] * 64u + c % 64]) : kOther;
}

// What the characters so far say about the next one.
struct Cluster {
  Class last;
  bool consonant = false;     // it ends in a consonant and what extends a conjunct ...
  bool linker = false;        // ... with a linker among it
  bool pictographic = false;  // it ends in emoji and what extends it ...
  bool joiner = false;        // ... or in that and one joiner

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

// Where the cluster that begins at `p` ends; p < end.
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
