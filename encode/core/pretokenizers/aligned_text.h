// The text that a pre-tokenizer's stages pass on, with its alignment to the original.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/span.h"

namespace tokenweir {

// The text that pieces are cut from: the original or, after a stage that changes text, a scratch copy.
struct AlignedText {
  const uint8_t *start, *end;
  const Span* origins;       // for each byte of a copy, its span in the original; null for the original itself
  const uint8_t* first_end;  // end of the bytes that are aligned to the original's first character

  // Returns the span of [b, e) in the original.
  Span original(const uint8_t* b, const uint8_t* e) const {
    if (!origins) return {static_cast<size_t>(b - start), static_cast<size_t>(e - start)};
    return {origins[b - start].start, origins[e - start - 1].end};
  }
};

// The scratch text of one stage: the changed pieces, one after the other. Earlier pieces stay valid until there is no
// room left, so that many of them can wait for the model together.
class ScratchText {
 public:
  // Begins a piece of at most `bytes` bytes. If there is no room, calls `before_loss()` and then drops the earlier
  // pieces.
  template <class BeforeLoss>
  void begin(size_t bytes, bool spans, BeforeLoss&& before_loss) {
    if (text_.capacity() < kMinCapacity) text_.reserve(kMinCapacity);
    if (bytes > text_.capacity() - text_.size()) {
      before_loss();
      clear();
      text_.reserve(bytes);
    }
    if (spans) origins_.reserve(text_.capacity());
    begin_ = first_end_ = text_.size();
  }

  // Appends `n` bytes. `first`: they are aligned to the original's first character.
  void put(const char* bytes, size_t n, bool first) {
    text_.append(bytes, n);
    if (first) first_end_ = text_.size();
  }

  // Aligns the next `n` bytes to `origin`.
  void put_origin(size_t n, Span origin) { origins_.insert(origins_.end(), n, origin); }

  // Returns the piece as written so far; with origins only if `spans`.
  AlignedText piece(bool spans) const {
    const auto* base = reinterpret_cast<const uint8_t*>(text_.data());
    return {base + begin_, base + text_.size(), spans ? origins_.data() + begin_ : nullptr, base + first_end_};
  }

  void clear() {
    text_.clear();
    origins_.clear();
  }

  size_t capacity() const { return std::max(text_.capacity(), origins_.capacity()); }

 private:
  static constexpr size_t kMinCapacity = 1 << 14;

  std::string text_;
  std::vector<Span> origins_;
  size_t begin_ = 0, first_end_ = 0;
};

// A stage from text to pieces: it splits a piece (`Split`) or changes it (`TextChange`).
class PreTokenizerStage {
 public:
  virtual ~PreTokenizerStage() = default;
};

}  // namespace tokenweir
