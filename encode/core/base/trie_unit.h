// A unit of a trie's double array (trie.h). Freestanding: kernels walk it too.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

struct alignas(8) TrieUnit {
  static constexpr uint32_t kLabelBits = 9, kLabelMask = (1u << kLabelBits) - 1;
  static constexpr uint32_t kFree = kLabelMask;        // the label of an unused unit
  static constexpr uint32_t kAbsent = (1u << 23) - 1;  // the value of a node at which no key ends

  uint32_t base = 0;  // of the children; 0 for a leaf, because the first block stays unused
  uint32_t tag = kAbsent << kLabelBits | kFree;

  TW_FN uint32_t label() const { return tag & kLabelMask; }
  TW_FN uint32_t value() const { return tag >> kLabelBits; }
  TW_FN bool is_child_by(uint8_t byte) const { return label() == byte; }
  TW_FN void set(uint32_t value, uint32_t label) { tag = value << kLabelBits | label; }
};

// Returns the value of the longest key that begins at text[at] and ends at or before `limit`, or kAbsent; sets `end` to
// its end.
TW_FN uint32_t longest_key(const TrieUnit* units, uint32_t root, const uint8_t* text, size_t at, size_t limit,
                           size_t& end) {
  uint32_t found = TrieUnit::kAbsent;
  for (uint32_t base = root; at < limit; at++) {
    const TrieUnit unit = units[base ^ text[at]];
    if (!unit.is_child_by(text[at])) break;
    base = unit.base;
    if (unit.value() == TrieUnit::kAbsent) continue;
    found = unit.value();
    end = at + 1;
  }
  return found;
}

}  // namespace tokenweir
