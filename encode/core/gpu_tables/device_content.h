// The content of an id, in the layout of the decoding kernels. Freestanding. device_contents.h fills the tables.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

// The position of an id's bytes in a table that all ids share.
struct Content {
  static constexpr uint32_t kSkipped = 0x80000000;     // decodes to nothing, and does not count as the first token
  static constexpr uint32_t kStaysFirst = 0x40000000;  // the next token counts as the first too
  static constexpr uint32_t kMaxSize = 1 << 20;

  uint32_t begin, size_and_flags;

  TW_FN uint32_t size() const { return size_and_flags & ~(kSkipped | kStaysFirst); }
  TW_FN bool skipped() const { return size_and_flags & kSkipped; }
  TW_FN bool stays_first() const { return size_and_flags & kStaysFirst; }
};

}  // namespace tokenweir
