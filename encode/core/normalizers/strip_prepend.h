// The normalizers Strip and Prepend, as in HuggingFace's `tokenizers` 0.23.
#pragma once

#include <string>
#include <vector>

#include "base/character_offsets.h"
#include "base/utf8.h"
#include "normalizers/normalizer.h"

namespace tokenweir {

// Removes white space at the left end, the right end, or both.
class Strip : public NormalizerStep {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  bool is_unchanged(const uint8_t* text, size_t n) const override {
    const Span middle = find(text, n);
    return middle.start == 0 && middle.end == n;
  }

  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin, Origin) const override {
    const Span middle = find(text, n);
    out.append(reinterpret_cast<const char*>(text) + middle.start, middle.end - middle.start);
    if (origin) append_identity(text + middle.start, text + middle.end, text, *origin);
  }

 private:
  Span find(const uint8_t* text, size_t n) const {
    Span middle{0, n};
    uint32_t length;
    while (left_ && middle.start < middle.end && is_white_space(utf8_decode(text + middle.start, length)))
      middle.start += length;
    while (right_ && middle.start < middle.end) {
      size_t last = middle.end - 1;
      while (utf8_continues(text[last])) last--;
      if (!is_white_space(utf8_decode(text + last, length))) break;
      middle.end = last;
    }
    return middle;
  }

  bool left_, right_;
};

// Prepends a string to a nonempty text, aligned to the text's first character; or to nothing, as Replace aligns it
// where its pattern matches the beginning of a text. An aligned string is not empty: `encode.components` refuses it.
class Prepend : public NormalizerStep {
 public:
  explicit Prepend(std::string content, bool aligned = true) : content_(std::move(content)), aligned_(aligned) {
    characters_ = count_characters(content_);
  }

  bool is_unchanged(const uint8_t*, size_t n) const override { return n == 0; }
  double growth() const override { return 1 + static_cast<double>(content_.size()); }

  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin, Origin kind) const override {
    if (n == 0) return;
    out.reserve(out.size() + content_.size() + n);
    out += content_;
    out.append(reinterpret_cast<const char*>(text), n);
    if (!origin) return;
    const uint32_t first = utf8_length(text[0]);
    if (kind == Origin::kAll || !aligned_) {
      origin->insert(origin->end(), characters_, Span{0, 0});
      return append_identity(text, text + n, text, *origin);
    }
    origin->insert(origin->end(), characters_ + 1, Span{0, first});
    append_identity(text + first, text + n, text, *origin);
  }

 private:
  std::string content_;
  bool aligned_;
  size_t characters_ = 0;
};

}  // namespace tokenweir
