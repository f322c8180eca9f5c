// Splits a text before it is normalized, into spans that are normalized and pre-tokenized independently: mostly words.
// So a word that is in the cache skips the normalizer and the pre-tokenizer.
//
// This needs a pre-tokenizer that decides by single characters where pieces end, as BERT's and T5's do, and a
// normalizer that may be applied separately to both sides of a place between two ASCII characters. A text may then be
// split between two ASCII characters if one is white space, which the pre-tokenizer drops, or a piece by itself, as
// BERT's punctuation is. The kind of each ASCII character is found by running the pre-tokenizer. BERT's normalizer puts
// spaces around Chinese characters, so the text may be split beside those too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "models/model.h"
#include "normalizers/character_map.h"
#include "normalizers/normalizer.h"
#include "pretokenizers/pretokenizer.h"

namespace tokenweir {

class PreNormalizationSplit {
 public:
  // Requires `normalizer.splits_in_ascii()`, and a pre-tokenizer that decides by single characters.
  PreNormalizationSplit(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer)
      : chinese_(normalizer.splits_at_chinese()) {
    for (uint32_t c = 1; c < 0x80; c++) {
      const char normal = normalizer.ascii(static_cast<char>(c));
      if (normal != '\0' && c != '\r') kinds_[c] = kind(pre_tokenizer, normal);
    }
  }

  // Calls `span(begin, end)` for each span of [p, end), in order. White space between spans is dropped.
  template <class Use>
  void each(const uint8_t* p, const uint8_t* end, Use&& span) const {
    while (p < end) {
      if (kinds_[*p] == kSpace && (p + 1 == end || kinds_[p[1]] != kUnsure)) {
        p++;
      } else {
        const uint8_t* const begin = p;
        span(begin, p = next(p, end));
      }
    }
  }

 private:
  enum Kind : uint8_t {
    kUnsure,  // no split beside it
    kInner,   // part of a piece
    kAlone,   // a piece by itself
    kSpace,   // dropped
  };

  // Returns the end of the span that begins at `p`.
  const uint8_t* next(const uint8_t* p, const uint8_t* end) const {
    if (is_chinese(p)) return p + utf8_length(*p);
    for (Kind left = kinds_[*p++]; p < end; p++) {
      const Kind right = kinds_[*p];
      if (left != kUnsure && right != kUnsure && (left | right) != kInner) return p;
      if (is_chinese(p)) return p;
      left = right;
    }
    return end;
  }

  bool is_chinese(const uint8_t* p) const {
    uint32_t length;
    return *p >= 0xE3 && chinese_ && is_bert_chinese(utf8_decode(p, length));
  }

  static Kind kind(const PreTokenizer& pre_tokenizer, char c) {
    const auto split = [&](std::string text) {
      struct Pieces {
        std::vector<std::string> found;
        void operator()(const uint8_t* b, const uint8_t* e, const AlignedText&) { found.emplace_back(b, e); }
        void flush() {}
      } pieces;
      PreTokenizerScratch scratch;
      const auto* p = reinterpret_cast<const uint8_t*>(text.data());
      pre_tokenizer.split<false>(p, p + text.size(), 0, scratch, pieces);
      return pieces.found;
    };
    const std::vector<std::string> letter = split("a"), alone = split({c}), between = split({'a', c, 'a'});
    std::vector<std::string> apart = letter;
    apart.insert(apart.end(), alone.begin(), alone.end());
    apart.insert(apart.end(), letter.begin(), letter.end());
    if (between == apart) return alone.empty() ? kSpace : kAlone;
    return between.size() == 1 ? kInner : kUnsure;
  }

  Kind kinds_[256] = {};  // by byte
  const bool chinese_;
};

// Normalizer, pre-tokenizer and model in sequence, behind the interface of a model.
class PipelineModel : public Model {
 public:
  PipelineModel(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer, const Model& model, bool guarded,
                PreTokenizerScratch& scratch)
      : normalizer_(normalizer), pre_tokenizer_(pre_tokenizer), model_(model), guarded_(guarded), scratch_(scratch) {}

  bool guards() const override { return false; }  // `guarded` is fixed by the constructor

  size_t max_cached_bytes() const override { return 1023; }  // of Chinese without a space

  void encode(const uint8_t* p, size_t n, bool, ModelScratch& scratch, IdBuffer& out,
              std::vector<Span>*) const override {
    std::string normal;
    if (!normalizer_.is_unchanged(p, n)) {
      normalizer_.apply(p, n, normal, nullptr);
      p = reinterpret_cast<const uint8_t*>(normal.data());
      n = normal.size();
    }
    Pieces pieces{*this, scratch, out};
    pre_tokenizer_.split<false>(p, p + n, 0, scratch_, pieces);
  }

 private:
  struct Pieces {
    const PipelineModel& way;
    ModelScratch& scratch;
    IdBuffer& out;

    void operator()(const uint8_t* b, const uint8_t* e, const AlignedText&) {
      way.model_.encode(b, static_cast<size_t>(e - b), way.guarded_, scratch, out, nullptr);
    }
    void flush() {}
  };

  const Normalizer& normalizer_;
  const PreTokenizer& pre_tokenizer_;
  const Model& model_;
  const bool guarded_;
  PreTokenizerScratch& scratch_;
};

}  // namespace tokenweir
