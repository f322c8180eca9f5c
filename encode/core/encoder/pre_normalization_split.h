// Splits a text before it is normalized, into spans that are normalized and pre-tokenized independently: mostly words.
// So a word that is in the cache skips the normalizer and the pre-tokenizer.
//
// This needs a pre-tokenizer that decides by single characters where pieces end, as BERT's and T5's do, and a
// normalizer that may be applied separately to both sides of a place between two ASCII characters. A text may then be
// split between two ASCII characters if one is white space, which the pre-tokenizer drops, or a piece by itself, as
// BERT's punctuation is. The kind of each ASCII character is found by running the pre-tokenizer. BERT's normalizer puts
// spaces around Chinese characters, so the text may be split beside those too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>
#if defined(__SSSE3__)
#include <tmmintrin.h>
#endif

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
      if (kinds_[c] == kUnsure) continue;
      by_low_half_[kUnsure][c & 15] |= static_cast<uint8_t>(1 << (c >> 4));
      by_low_half_[kinds_[c]][c & 15] |= static_cast<uint8_t>(1 << (c >> 4));
    }
  }

  // Calls `span(begin, end)` for each span of [p, end), in order. White space between spans is dropped.
  template <class Use>
  void each(const uint8_t* p, const uint8_t* end, Use&& span) const {
    const auto use = [&](const uint8_t* from, const uint8_t* to) {
      if (to - from > 1 || kinds_[*from] != kSpace) span(from, to);
    };
    const uint8_t* begin = p;  // of the span that no split has ended yet
    Split before;
    for (const uint8_t* at = p; at < end; at += 64) {
      const Split split = splits(at, end, before);
      const uint64_t places = at == p ? split.places & ~uint64_t{1} : split.places;
      if (places) {
        const int last = 63 - __builtin_clzll(places);
        use(begin, at + __builtin_ctzll(places));
        begin = at + last;
        // White space that a split follows is a span by itself, which is dropped.
        for (uint64_t from = places & ~(split.space & places >> 1) & ~(uint64_t{1} << last); from; from &= from - 1) {
          const int first = __builtin_ctzll(from);
          span(at + first, at + first + 1 + __builtin_ctzll(places >> first >> 1));
        }
      }
      before = split;
    }
    if (p < end) use(begin, end);
  }

 private:
  enum Kind : uint8_t {
    kUnsure,  // no split beside it
    kInner,   // part of a piece
    kAlone,   // a piece by itself
    kSpace,   // dropped
  };

  // Masks of 64 bytes: bit i is that of byte i.
  struct Split {
    uint64_t inner = 0, space = 0, sure = 0;  // by kind; `sure` has all kinds but kUnsure
    uint64_t places = 0;                      // the text may be split before these bytes
    uint64_t next_places = 0;                 // the same in the next 64 bytes, if Chinese characters decide it
  };

  // The splits of the 64 bytes at `at`, or of those before `end`. `before`: of the 64 bytes before them.
  Split splits(const uint8_t* at, const uint8_t* end, const Split& before) const {
    uint8_t padded[64];
    const size_t n = std::min<size_t>(64, static_cast<size_t>(end - at));
    const uint8_t* bytes = at;
    if (n < 64) {
      std::memset(padded, 0, sizeof padded);
      std::memcpy(padded, at, n);
      bytes = padded;
    }
    Split split;
    Chinese chinese;
    classify(bytes, split, chinese);
    split.places =
        split.sure & (split.sure << 1 | before.sure >> 63) & ~(split.inner & (split.inner << 1 | before.inner >> 63));
    split.places |= before.next_places;
    if (chinese_) {
      uint64_t of_three = chinese.certain, of_four = 0;  // where characters of so many bytes begin
      for (uint64_t left = chinese.perhaps & ~chinese.certain; left; left &= left - 1) {
        const int place = __builtin_ctzll(left);
        uint32_t length;
        if (is_bert_chinese(utf8_decode(at + place, length)))
          (length == 3 ? of_three : of_four) |= uint64_t{1} << place;
      }
      split.places |= of_three | of_four | of_three << 3 | of_four << 4;
      split.next_places = of_three >> 61 | of_four >> 60;
    }
    if (n < 64) split.places &= (uint64_t{1} << n) - 1;
    return split;
  }

  // The bytes with which Chinese characters begin: those of U+5000 to U+8FFF, and those that begin others as well.
  struct Chinese {
    uint64_t certain = 0, perhaps = 0;
  };

  // Fills in the kinds of 64 bytes.
  void classify(const uint8_t* bytes, Split& split, Chinese& chinese) const {
#if defined(__SSSE3__)
    const __m128i of_high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kOfHighHalf));
    const __m128i halves = _mm_set1_epi8(15);
    for (int i = 0; i < 64; i += 16) {
      const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
      const __m128i high = _mm_shuffle_epi8(of_high, _mm_and_si128(_mm_srli_epi16(chunk, 4), halves));
      const auto has = [&](const uint8_t (&by_low)[16]) {  // a byte above 127 has no bit, and its low half gives 0
        const __m128i low = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(by_low)), chunk);
        const __m128i lacks = _mm_cmpeq_epi8(_mm_and_si128(low, high), _mm_setzero_si128());
        return static_cast<uint64_t>(~static_cast<uint32_t>(_mm_movemask_epi8(lacks)) & 0xFFFF) << i;
      };
      split.inner |= has(by_low_half_[kInner]);
      split.space |= has(by_low_half_[kSpace]);
      split.sure |= has(by_low_half_[kUnsure]);
      const auto at_least = [&](uint8_t least) {
        const __m128i above = _mm_max_epu8(chunk, _mm_set1_epi8(static_cast<char>(least)));
        return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(above, chunk)))) << i;
      };
      chinese.certain |= at_least(0xE5) & ~at_least(0xE9);
      chinese.perhaps |= at_least(0xE3);
    }
#else
    for (int i = 0; i < 64; i++) {
      const Kind kind = kinds_[bytes[i]];
      split.inner |= static_cast<uint64_t>(kind == kInner) << i;
      split.space |= static_cast<uint64_t>(kind == kSpace) << i;
      split.sure |= static_cast<uint64_t>(kind != kUnsure) << i;
      chinese.certain |= static_cast<uint64_t>(bytes[i] >= 0xE5 && bytes[i] <= 0xE8) << i;
      chinese.perhaps |= static_cast<uint64_t>(bytes[i] >= 0xE3) << i;
    }
#endif
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

  static constexpr uint8_t kOfHighHalf[16] = {1, 2, 4, 8, 16, 32, 64, 128};

  Kind kinds_[256] = {};  // by byte
  // For each kind, the ASCII characters that have it: bit `high` of entry `low`, the halves of the byte. In place of
  // kUnsure, the characters of all other kinds.
  uint8_t by_low_half_[4][16] = {};
  const bool chinese_;
};

// Normalizer, pre-tokenizer and model in sequence, behind the interface of a model.
class PipelineModel : public Model {
 public:
  PipelineModel(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer, const Model& model, bool guarded,
                PreTokenizerScratch& scratch)
      : normalizer_(normalizer), pre_tokenizer_(pre_tokenizer), model_(model), guarded_(guarded), scratch_(scratch) {}

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
