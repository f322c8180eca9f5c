// Normalizers that look at one character at a time: Lowercase, StripAccents and the steps of BertNormalizer.
//
// The tables reproduce HuggingFace's `tokenizers` 0.23, with its versions of Unicode and its errors. A map is a set of
// rules in a two-level table; a later rule overrides an earlier one. Text is skipped 16 bytes at a time where the lead
// bytes prove that it stays unchanged. ASCII characters that map to ASCII are copied with the rest and translated in
// place, so that capitals and line feeds do not interrupt the copying.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/byte_set.h"
#include "base/text_writer.h"
#include "base/utf8.h"
#include "normalizers/normalization_tables.h"
#include "normalizers/normalizer.h"

namespace tokenweir {

class CharacterMap : public NormalizerStep {
 public:
  enum class Rule { Lowercase, StripAccents, BertCleanText, BertChineseChars, BertStripAccents };

  // Applies to each character the last rule that covers it.
  explicit CharacterMap(const std::vector<Rule>& rules) {
    page_.fill(uniform(kKept));
    for (const Rule rule : rules) add_rule(rule);
    const auto stays = [&](uint32_t c) { return value(c) == kKept; };
    kept_ = bytes_of(stays);
    copied_ = kept_;
    for (uint32_t b = 0; b < 256; b++) {
      translation_[b] = static_cast<char>(b);
      if (b >= 0x80 || stays(b) || results_[value(b)].size != 1) continue;
      copied_.add(static_cast<uint8_t>(b));
      translation_[b] = results_[value(b)].utf8[0];
      translates_ = true;
    }
  }

  bool splits_in_ascii() const override { return true; }
  bool splits_at_space() const override { return true; }
  bool isolates_chinese() const override { return isolates_chinese_; }

  bool is_unchanged(const uint8_t* text, size_t n) const override {
    const uint8_t *p = text, *const end = text + n;
    while ((p = kept_.skip(p, end)) < end) {
      do {  // such characters occur in runs
        uint32_t length;
        if (value(utf8_decode(p, length)) != kKept) return false;
        p += length;
      } while (p < end && !kept_.has(*p));
    }
    return true;
  }

  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin, Origin) const override {
    const uint8_t *p = text, *const end = text + n;
    TextWriter writer(out, n);
    while (p < end) {
      const uint8_t* const stop = copied_.skip(p, end);
      copy(p, stop, writer);
      if (origin) append_identity(p, stop, text, *origin);
      for (p = stop; p < end && !copied_.has(*p);) {
        uint32_t length;
        const uint16_t own = value(utf8_decode(p, length));
        size_t characters = 1;
        if (own == kKept) {
          writer.append(p, length);
        } else if (own == kSpaced) {
          writer.append(' ');
          writer.append(p, length);
          writer.append(' ');
          characters = 3;
        } else {
          writer.append(results_[own].utf8, results_[own].size);
          characters = results_[own].characters;
        }
        const size_t at = static_cast<size_t>(p - text);
        if (origin) origin->insert(origin->end(), characters, {at, at + length});
        p += length;
      }
    }
  }

 private:
  static constexpr size_t kCharacters = 0x110000, kPage = 256;
  static constexpr uint16_t kKept = 0, kSpaced = 1;  // values of characters; others are indices of `results_`

  struct Result {
    char utf8[6];
    uint8_t size, characters;
  };

  void add_rule(Rule rule) {
    using namespace normalization_tables;
    switch (rule) {
      case Rule::Lowercase:
        for (const LowerCase& run : kLowerCase)
          for (uint32_t c = run.first; c <= run.last; c += run.step)
            set(c, result({c + static_cast<uint32_t>(run.shift)}));
        set(0x130, result({'i', 0x307}));
        break;
      case Rule::StripAccents: set(kAccents, result({})); break;
      case Rule::BertCleanText:
        set(kBertControls, result({}));
        set(kBertSpaces, result({' '}));
        break;
      case Rule::BertChineseChars:
        set(kBertChinese, kSpaced);
        isolates_chinese_ = true;
        break;
      case Rule::BertStripAccents: set(kBertAccents, result({})); break;
    }
  }

  template <size_t N>
  void set(const normalization_tables::Range (&ranges)[N], uint16_t value) {
    for (const auto& range : ranges)
      for (uint32_t c = range.first; c <= range.last;) {
        if (c % kPage == 0 && range.last - c >= kPage - 1) {
          page_[c / kPage] = uniform(value);
          c += kPage;
        } else {
          set(c++, value);
        }
      }
  }

  // Sets the value of a character. Uniform pages are shared, so the first change copies the page.
  void set(uint32_t c, uint16_t value) {
    uint16_t& page = page_[c / kPage];
    const uint16_t first = values_[page * kPage];
    if (const auto shared = uniform_.find(first); shared != uniform_.end() && shared->second == page) {
      const auto own = static_cast<uint16_t>(values_.size() / kPage);
      values_.resize(values_.size() + kPage, first);
      page = own;
    }
    values_[page * kPage + c % kPage] = value;
  }

  // Returns the shared page that is filled with this value.
  uint16_t uniform(uint16_t value) {
    const auto [at, added] = uniform_.try_emplace(value, static_cast<uint16_t>(values_.size() / kPage));
    if (added) values_.resize(values_.size() + kPage, value);
    return at->second;
  }

  // Returns a value for characters that are replaced by these.
  uint16_t result(std::initializer_list<uint32_t> characters) {
    std::string text;
    for (const uint32_t c : characters) TextWriter(text, 4).append_character(c);
    Result made{{}, static_cast<uint8_t>(text.size()), static_cast<uint8_t>(characters.size())};
    text.copy(made.utf8, sizeof made.utf8);
    results_.push_back(made);
    return static_cast<uint16_t>(results_.size() - 1);
  }

  uint16_t value(uint32_t c) const { return values_[page_[c / kPage] * kPage + c % kPage]; }

  void copy(const uint8_t* p, const uint8_t* end, TextWriter& writer) const {
    const size_t n = static_cast<size_t>(end - p);
    writer.append(p, n);
    if (!translates_) return;
    for (char *q = writer.last(n), *last = q + n; q < last; q++) *q = translation_[static_cast<uint8_t>(*q)];
  }

  std::vector<Result> results_ = std::vector<Result>(2);  // kKept and kSpaced have no result
  std::array<uint16_t, kCharacters / kPage> page_;
  std::vector<uint16_t> values_;
  std::map<uint16_t, uint16_t> uniform_;  // value to its uniform page
  ByteSet kept_;                          // bytes that begin only unchanged characters
  ByteSet copied_;                        // these, and ASCII characters that map to ASCII
  std::array<char, 256> translation_;     // the result for each of `copied_`
  bool translates_ = false;
  bool isolates_chinese_ = false;
};

// Whether BertNormalizer puts spaces around a character.
inline bool is_bert_chinese(uint32_t c) {
  for (const auto& range : normalization_tables::kBertChinese)
    if (c <= range.last) return c >= range.first;
  return false;
}

}  // namespace tokenweir
