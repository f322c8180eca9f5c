// The normalizer: steps, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/span.h"
#include "base/utf8.h"

namespace tokenweir {

// What a step says of where a character comes from.
enum class Origin {
  kLibrary,  // the bytes of the one character of the text at which HuggingFace's alignment has it stand, or {0, 0} for one
             // inserted before all others (SentencePiece's own normalizer aligns differently: with several, or with none)
  kAll,      // the bytes of every character of the text that it may have been made from, and perhaps of neighbours;
             // an empty span for one that is inserted
};

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;

  // True only if `text` certainly stays as it is; false where this is not known. It changes nothing.
  virtual bool is_unchanged(const uint8_t* text, size_t n) const = 0;

  // Appends what becomes of `text` (valid UTF-8, perhaps empty) to `out`, also valid UTF-8, and, unless `origin` is
  // null, one span of `text` to it for each *character* appended, of the kind that is asked for.
  virtual void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin,
                     Origin kind = Origin::kLibrary) const = 0;

  // Whether text may be parted between two ASCII characters, none of them a carriage return, and the parts changed by
  // themselves.
  virtual bool splits_in_ascii() const { return false; }

  // The same between a space and any other character.
  virtual bool splits_at_space() const { return false; }

  // Whether each character that `is_bert_chinese` tells gets a space on both sides, whatever stands beside it.
  virtual bool isolates_chinese() const { return false; }

  // How many times as long a text may become by what a file says. (By Unicode's tables it is 11 at most.)
  virtual double growth() const { return 1; }
};

// Appends the span of each character of [p, end), which are bytes of `text` that stay as they are.
inline void append_identity(const uint8_t* p, const uint8_t* end, const uint8_t* text, std::vector<Span>& origin) {
  for (uint32_t length; p < end; p += length) {
    length = utf8_length(*p);
    origin.push_back({static_cast<size_t>(p - text), static_cast<size_t>(p - text) + length});
  }
}

class Normalizer {
 public:
  explicit Normalizer(std::vector<std::shared_ptr<const NormalizerStep>> steps) : steps_(std::move(steps)) {
    double growth = 1;
    for (const auto& step : steps_) growth *= step->growth();
    if (growth > kMaxGrowth)
      throw Unsupported("a normalizer that may make a text more than " + std::to_string(kMaxGrowth) +
                        " times as long");
  }

  bool splits_in_ascii() const {
    return std::all_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->splits_in_ascii(); });
  }

  // Whether text may be parted before and behind each character that `is_bert_chinese` tells.
  bool splits_at_chinese() const {
    return !steps_.empty() && steps_[0]->isolates_chinese() &&
           std::all_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->splits_at_space(); });
  }

  // The ASCII character that an ASCII character becomes in every step by itself, or '\0' if in one it becomes another or
  // several.
  char ascii(char c) const {
    for (const auto& step : steps_) {
      std::string out;
      step->apply(reinterpret_cast<const uint8_t*>(&c), 1, out, nullptr);
      if (out.size() != 1 || static_cast<uint8_t>(out[0]) >= 0x80) return '\0';
      c = out[0];
    }
    return c;
  }

  bool is_unchanged(const uint8_t* text, size_t n) const {
    for (const auto& step : steps_)
      if (!step->is_unchanged(text, n)) return false;
    return true;
  }

  // Appends to `out` and `origin` as a step does; `out` and `origin` are empty.
  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin,
             Origin kind = Origin::kLibrary) const {
    std::string next;
    std::vector<Span> from;
    const uint8_t* p = text;  // what it is by now
    size_t size = n;
    bool unchanged = true;
    for (const auto& step : steps_) {
      if (step->is_unchanged(p, size)) continue;
      next.clear();
      from.clear();
      step->apply(p, size, next, origin ? &from : nullptr, kind);
      if (origin && !unchanged) compose_origins(out, from, *origin, kind);
      if (origin) origin->swap(from);
      out.swap(next);
      p = reinterpret_cast<const uint8_t*>(out.data());
      size = out.size();
      unchanged = false;
    }
    if (!unchanged) return;
    out.assign(reinterpret_cast<const char*>(text), n);
    if (origin) append_identity(text, text + n, text, *origin);
  }

 private:
  // From spans of `text`, whose characters have the spans `origin`, to spans of what `text` was made from.
  static void compose_origins(const std::string& text, std::vector<Span>& from, const std::vector<Span>& origin, Origin kind) {
    std::vector<size_t> character(text.size());
    for (size_t i = 0, c = 0; i < text.size(); i++)
      character[i] = utf8_continues(static_cast<uint8_t>(text[i])) ? c - 1 : c++;
    for (Span& span : from) {
      if (span.start == span.end) continue;
      size_t c = character[span.start];
      const size_t last = character[span.end - 1];
      span = {origin[c].start, origin[last].end};
      if (kind == Origin::kLibrary) continue;
      for (bool found = false; c <= last; c++) {  // spans may overlap, and inserted characters have none
        const Span& own = origin[c];
        if (own.start == own.end) continue;
        span = found ? Span{std::min(span.start, own.start), std::max(span.end, own.end)} : own;
        found = true;
      }
    }
  }

  static constexpr int kMaxGrowth = 128;  // real ones have 33: SentencePiece's rules of NFKC

  std::vector<std::shared_ptr<const NormalizerStep>> steps_;
};

}  // namespace tokenweir
