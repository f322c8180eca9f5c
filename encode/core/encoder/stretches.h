// Stretches of a text that are encoded apart from the beginning on, normalizer and pre-tokenizer included: words as they
// stand in the text. So of a word that was seen before, neither is asked.
//
// This needs a pre-tokenizer that looks at one character at a time to find where pieces end, as BERT's and T5's do, and a
// normalizer whose steps may be parted between two ASCII characters. Then text may be cut between two of these where one is
// white space, which the pre-tokenizer drops, or one that it has stand alone, as BERT's punctuation. How it takes each ASCII
// character is tried out. BERT's normalizer puts spaces around Chinese characters, so text may be cut there too.
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

class Stretches {
 public:
  // The places in text before `normalizer`, whose steps part in ASCII; `pre_tokenizer` looks at one character at a time.
  Stretches(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer) : chinese_(normalizer.parts_at_chinese()) {
    for (uint32_t c = 1; c < 0x80; c++) {
      const char normal = normalizer.ascii(static_cast<char>(c));
      if (normal != '\0' && c != '\r') kinds_[c] = kind(pre_tokenizer, normal);
    }
  }

  // Calls `stretch(begin, end)` for each stretch of [p, end), in order. What lies between them becomes nothing.
  template <class Stretch>
  void each(const uint8_t* p, const uint8_t* end, Stretch&& stretch) const {
    while (p < end) {
      if (kinds_[*p] == kSpace && (p + 1 == end || kinds_[p[1]] != kUnsure)) {
        p++;
      } else {
        const uint8_t* const begin = p;
        stretch(begin, p = next(p, end));
      }
    }
  }

 private:
  enum Kind : uint8_t {
    kUnsure,  // nothing is cut beside it
    kInner,   // part of a piece
    kAlone,   // a piece
    kSpace,   // part of none
  };

  // The end of the stretch that begins at `p`.
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
        void operator()(const uint8_t* b, const uint8_t* e, const Frame&) { found.emplace_back(b, e); }
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

// The whole way of a stretch to ids, as a model.
class WholeWay : public Model {
 public:
  WholeWay(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer, const Model& model, bool guarded,
           PreTokenizerScratch& scratch)
      : normalizer_(normalizer), pre_tokenizer_(pre_tokenizer), model_(model), guarded_(guarded), scratch_(scratch) {}

  bool guards() const override { return false; }  // what is guarded is so throughout

  size_t longest_kept() const override { return 1023; }  // of Chinese without a space

  void encode(const uint8_t* p, size_t n, bool, ModelScratch& scratch, IdBuffer& out, std::vector<Span>*) const override {
    std::string normal;
    if (!normalizer_.keeps(p, n)) {
      normalizer_.apply(p, n, normal, nullptr);
      p = reinterpret_cast<const uint8_t*>(normal.data());
      n = normal.size();
    }
    Pieces pieces{*this, scratch, out};
    pre_tokenizer_.split<false>(p, p + n, 0, scratch_, pieces);
  }

 private:
  struct Pieces {
    const WholeWay& way;
    ModelScratch& scratch;
    IdBuffer& out;

    void operator()(const uint8_t* b, const uint8_t* e, const Frame&) {
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
