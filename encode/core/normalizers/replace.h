// Replace: substitutes the matches of a string or a pattern, from left to right, as HuggingFace's `tokenizers` 0.23
// does. The library aligns the replacement to the last character of the match.
//
// Strings are searched for by the algorithm of Knuth, Morris and Pratt (1977), which is linear for any input; the first
// byte is found 16 bytes at a time. The search for a pattern is as linear as its automaton's walk (see encode/pattern).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/byte_set.h"
#include "base/character_offsets.h"
#include "base/common_prefix.h"
#include "base/errors.h"
#include "base/text_writer.h"
#include "base/utf8.h"
#include "normalizers/normalizer.h"
#include "pattern/compiled_pattern.h"

namespace tokenweir {

// Finds the occurrences of a string.
class StringSearch {
 public:
  explicit StringSearch(std::string text) : text_(std::move(text)), border_(borders(text_)) {
    if (text_.empty()) throw Unsupported("a Replace of the empty string");
    for (int byte = 0; byte < 256; byte++)
      if (byte != static_cast<uint8_t>(text_[0])) others_.add(static_cast<uint8_t>(byte));
  }

  size_t shortest() const { return text_.size(); }

  // Calls `match(begin, end)` for each nonoverlapping occurrence in [p, end), until it returns false.
  template <class Match>
  void each(const uint8_t* p, const uint8_t* end, Match&& match) const {
    const auto* text = reinterpret_cast<const uint8_t*>(text_.data());
    const size_t size = text_.size();
    for (size_t k = 0; p < end;) {  // the `k` bytes before `p` are the first ones of the string
      if (*p != text[k]) {
        if (k > 0)
          k = border_[k];
        else
          p = others_.skip(p, end);
        continue;
      }
      p++;
      if (++k < size) continue;
      if (!match(p - size, p)) return;
      k = 0;
    }
  }

 private:
  std::string text_;
  ByteSet others_;  // all bytes except the string's first
  std::vector<size_t> border_;
};

// Finds the matches of a compiled pattern.
class PatternSearch {
 public:
  explicit PatternSearch(std::shared_ptr<const CompiledPattern> pattern)
      : pattern_(std::move(pattern)),
        skippable_(bytes_of([&](uint32_t c) { return pattern_->cannot_start_match(c); })) {}

  size_t shortest() const { return 1; }

  // Calls `match(begin, end)` for each match in [p, end), until it returns false.
  template <class Match>
  void each(const uint8_t* p, const uint8_t* end, Match&& match) const {
    pattern_->walk(p, end, [&](auto&& walk) {
      while ((p = skippable_.skip(p, end)) < end) {
        bool gap;
        const uint8_t* next = walk(p, gap);
        if (!gap && !match(p, next)) return;
        p = next;
      }
    });
  }

 private:
  std::shared_ptr<const CompiledPattern> pattern_;
  ByteSet skippable_;
};

template <class Search>
class Replace : public NormalizerStep {
 public:
  Replace(Search search, std::string content) : search_(std::move(search)), content_(std::move(content)) {
    characters_ = count_characters(content_);
  }

  bool is_unchanged(const uint8_t* text, size_t n) const override {
    bool found = false;
    search_.each(text, text + n, [&](const uint8_t*, const uint8_t*) {
      found = true;
      return false;
    });
    return !found;
  }

  double growth() const override {
    return std::max(1.0, static_cast<double>(content_.size()) / static_cast<double>(search_.shortest()));
  }

  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin, Origin kind) const override {
    const uint8_t* done = text;
    TextWriter writer(out, n);
    const auto copy = [&](const uint8_t* until) {
      writer.append(done, static_cast<size_t>(until - done));
      if (origin) append_identity(done, until, text, *origin);
    };
    search_.each(text, text + n, [&](const uint8_t* begin, const uint8_t* end) {
      copy(begin);
      writer.append(content_.data(), content_.size());
      if (origin) {
        const uint8_t* from = begin;
        if (kind == Origin::kLibrary)
          for (from = end - 1; utf8_continues(*from);) from--;
        origin->insert(origin->end(), characters_, {static_cast<size_t>(from - text), static_cast<size_t>(end - text)});
      }
      done = end;
      return true;
    });
    copy(text + n);
  }

 private:
  Search search_;
  std::string content_;
  size_t characters_ = 0;
};

}  // namespace tokenweir
