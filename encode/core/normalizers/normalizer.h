// The normalizer: a sequence of steps.
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

// The kind of origin that a step reports for each character.
enum class Origin {
  kLibrary,  // the single source character of HuggingFace's alignment, or {0, 0} for one inserted before all others
             // (SentencePiece's own normalizer aligns differently: with several characters, or with none)
  kAll,      // all characters that it may have been made from, and perhaps neighbours; empty for an inserted one
};

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;

  // Whether `text` is known to stay unchanged. May return false for text that stays unchanged.
  virtual bool is_unchanged(const uint8_t* text, size_t n) const = 0;

  // Appends the normalized form of `text` (valid UTF-8, perhaps empty) to `out`. Unless `origin` is null, also appends
  // one span of `text`, of the requested kind, for each *character* appended.
  virtual void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin,
                     Origin kind = Origin::kLibrary) const = 0;

  // Whether text may be split between two ASCII characters, except carriage returns, and the parts normalized
  // separately.
  virtual bool splits_in_ascii() const { return false; }

  // Whether text may be split beside a space, likewise.
  virtual bool splits_at_space() const { return false; }

  // Whether each character of `is_bert_chinese` gets a space on both sides, in any context.
  virtual bool isolates_chinese() const { return false; }

  // An upper bound for the factor by which a file's rules let a text grow. (Unicode's tables add a factor of at most
  // 11.)
  virtual double growth() const { return 1; }
};

// Appends the span of each character of [p, end), which are unchanged bytes of `text`.
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
      throw Unsupported("a normalizer that may make a text more than " + std::to_string(kMaxGrowth) + " times as long");
  }

  // Whether there are no steps.
  bool is_identity() const { return steps_.empty(); }

  bool splits_in_ascii() const {
    return std::all_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->splits_in_ascii(); });
  }

  // Whether text may be split before and after each character of `is_bert_chinese`.
  bool splits_at_chinese() const {
    return !steps_.empty() && steps_[0]->isolates_chinese() &&
           std::all_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->splits_at_space(); });
  }

  // Returns the ASCII character that an ASCII character alone becomes, or '\0' if some step makes a non-ASCII character
  // or several characters of it.
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

  // Appends to `out` and `origin`, which must be empty, as a step does.
  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin,
             Origin kind = Origin::kLibrary) const {
    std::string next;
    std::vector<Span> from;
    const uint8_t* p = text;  // the result of the steps so far
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
  // Composes two alignments: maps the spans `from`, in `text`, to the original text, through the spans `origin`.
  static void compose_origins(const std::string& text, std::vector<Span>& from, const std::vector<Span>& origin,
                              Origin kind) {
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

  static constexpr int kMaxGrowth = 128;  // real normalizers have at most 33, by SentencePiece's NFKC rules

  std::vector<std::shared_ptr<const NormalizerStep>> steps_;
};

}  // namespace tokenweir
