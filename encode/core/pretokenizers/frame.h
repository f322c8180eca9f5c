// The text that a pre-tokenizer's stages pass on: the original or a changed copy, and the way back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/span.h"

namespace tokenweir {

// The text that pieces are cut from: the original or, where a stage has changed it, a copy.
struct Frame {
  const uint8_t *start, *end;
  const Span* origins;       // for each byte of a copy, the bytes of the original; null: it is the original
  const uint8_t* first_end;  // what lies before it stands at the very beginning of the original

  // The bytes of the original, from its start, that [b, e) stands for.
  Span original(const uint8_t* b, const uint8_t* e) const {
    if (!origins) return {static_cast<size_t>(b - start), static_cast<size_t>(e - start)};
    return {origins[b - start].start, origins[e - start - 1].end};
  }
};

// Where one stage writes the text that it changes, piece behind piece. What has been written stays where it is until
// there is no room left, so that the pieces of many words can wait for the model together.
class ChangedText {
 public:
  // Begins a piece of at most `bytes` bytes. Earlier ones are given up if need be, after `before_loss()`.
  template <class BeforeLoss>
  void begin(size_t bytes, bool spans, BeforeLoss&& before_loss) {
    if (text_.capacity() < kRoom) text_.reserve(kRoom);
    if (bytes > text_.capacity() - text_.size()) {
      before_loss();
      clear();
      text_.reserve(bytes);
    }
    if (spans) origins_.reserve(text_.capacity());
    begin_ = first_end_ = text_.size();
  }

  // Appends `n` bytes; `first`: they stand at the beginning of the original.
  void put(const char* bytes, size_t n, bool first) {
    text_.append(bytes, n);
    if (first) first_end_ = text_.size();
  }

  // Says that the `n` bytes that come next stand for `origin`.
  void put_origin(size_t n, Span origin) { origins_.insert(origins_.end(), n, origin); }

  // The piece as far as it is written. Without `spans`, it has no origins.
  Frame frame(bool spans) const {
    const auto* base = reinterpret_cast<const uint8_t*>(text_.data());
    return {base + begin_, base + text_.size(), spans ? origins_.data() + begin_ : nullptr, base + first_end_};
  }

  void clear() {
    text_.clear();
    origins_.clear();
  }

  size_t capacity() const { return std::max(text_.capacity(), origins_.capacity()); }

 private:
  static constexpr size_t kRoom = 1 << 14;

  std::string text_;
  std::vector<Span> origins_;
  size_t begin_ = 0, first_end_ = 0;
};

// One step from text to pieces: it cuts a piece (`Split`) or changes it (`TextChange`).
class PreTokenizerStage {
 public:
  virtual ~PreTokenizerStage() = default;
};

}  // namespace tokenweir
