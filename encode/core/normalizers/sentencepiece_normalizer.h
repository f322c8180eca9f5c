// SentencePiece's own normalizer (sentencepiece 0.2.3, normalizer.cc): user-defined pieces, the character map, spaces.
//
// At each place of the text, the longest user-defined piece is copied; else the longest rule of the character map is
// applied; else one character is copied. The results are concatenated under the rules for spaces. Most bytes begin
// neither a piece nor a rule; runs of those are copied at once.
//
// Alignment: the span of a result begins at its source and ends at the source of the next result. So removed text
// belongs to the character before it. If a rule yields several characters, all except the last have empty spans, as an
// inserted space has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_set.h"
#include "base/span.h"
#include "base/text_writer.h"
#include "base/utf8.h"
#include "normalizers/charsmap.h"
#include "normalizers/normalizer.h"

namespace tokenweir {

struct SentencePieceRules {
  bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
  bool suffix;  // the dummy space goes to the end
};

class SentencePieceText : public NormalizerStep {
 public:
  // `user_defined` pieces must not be empty.
  SentencePieceText(Charsmap charsmap, std::vector<std::string> user_defined, SentencePieceRules rules)
      : charsmap_(std::move(charsmap)), user_defined_(std::move(user_defined)), rules_(rules) {
    std::sort(user_defined_.begin(), user_defined_.end());
    user_defined_.erase(std::unique(user_defined_.begin(), user_defined_.end()), user_defined_.end());
    for (const std::string& piece : user_defined_) begins_piece_[static_cast<uint8_t>(piece[0])] = true;
    for (int byte = 0; byte < 256; byte++) {
      const auto b = static_cast<uint8_t>(byte);
      if (begins_piece_[byte]) continue;
      if (b != ' ' && b < 0x80 && !charsmap_.starts_in_ascii(b)) plain_ascii_.add(b);
      if (utf8_continues(b) || (b >= 0x80 && !charsmap_.starts(b))) plain_others_.add(b);
      if (b == ' ') plain_space_ = !charsmap_.starts_in_ascii(b);
    }
  }

  bool is_unchanged(const uint8_t*, size_t) const override { return false; }
  double growth() const override { return charsmap_.growth(); }  // spaces may also become three bytes

  void apply(const uint8_t* text, size_t n, std::string& out, std::vector<Span>* origin, Origin kind) const override {
    TextWriter writer(out, n + n / 2);
    Output output{writer, origin, rules_.escape_whitespaces ? std::string_view("\u2581") : std::string_view(" "),
                  writer.size(), origin ? origin->size() : 0};
    size_t at = 0;
    if (rules_.remove_extra_whitespaces)
      for (Step step; at < n && (step = next(text + at, n - at)).text == " ";) at += step.length;
    if (at == n) return;
    if (rules_.add_dummy_prefix && !rules_.suffix) output.space(at);
    bool after_space = rules_.remove_extra_whitespaces;
    while (at < n) {
      if (plain_space_ && text[at] == ' ' && stands_alone(text, at, n)) {
        if (!after_space) output.space(at);
        after_space = rules_.remove_extra_whitespaces;
        at++;
        continue;
      }
      if (const size_t end = plain_end(text, at, n); at < end) {
        output.copy(text, at, end);
        after_space = false;
        at = end;
        continue;
      }
      auto [result, length] = next(text + at, n - at);
      while (after_space && !result.empty() && result[0] == ' ') result.remove_prefix(1);
      if (!result.empty()) {
        const size_t before = origin ? origin->size() : 0;
        output.add(result, at);
        for (size_t i = before; origin && kind == Origin::kAll && i < origin->size(); i++)
          (*origin)[i].end = at + length;
        after_space = rules_.remove_extra_whitespaces && result.back() == ' ';
      }
      at += length;
    }
    if (rules_.remove_extra_whitespaces) at = output.strip(at);
    if (rules_.add_dummy_prefix && rules_.suffix) output.space(at);
    output.end(at);
  }

 private:
  // The replacement of a text's first bytes, and their number.
  struct Step {
    std::string_view text;
    size_t length;
  };

  // Collects the result, and the origin of each character.
  struct Output {
    TextWriter& out;
    std::vector<Span>* origin;
    std::string_view mark;  // the replacement of a space
    size_t begin, first;    // initial sizes of `out` and `origin`

    void from(size_t at) {
      if (!origin) return;
      end(at);
      origin->push_back({at, at});
    }
    void end(size_t at) {
      if (origin && origin->size() > first) origin->back().end = at;
    }
    void space(size_t at) {
      out.append(mark.data(), mark.size());
      from(at);
    }
    void add(std::string_view text, size_t at) {
      for (const char c : text) {
        if (c == ' ') {
          space(at);
          continue;
        }
        out.append(c);
        if (!utf8_continues(static_cast<uint8_t>(c))) from(at);
      }
    }
    void copy(const uint8_t* text, size_t b, size_t e) {
      out.append(text + b, e - b);
      for (; origin && b < e; b += utf8_length(text[b])) from(b);
    }
    // Removes the spaces at the end; returns the origin of the first of them, or `at`.
    size_t strip(size_t at) {
      while (out.size() - begin >= mark.size() && std::string_view(out.last(mark.size()), mark.size()) == mark) {
        out.drop_last(mark.size());
        if (!origin) continue;
        at = origin->back().start;
        origin->pop_back();
      }
      return at;
    }
  };

  // Returns the end of the characters from `at` on, except spaces, that are known to stay unchanged.
  size_t plain_end(const uint8_t* text, size_t at, size_t n) const {
    if (utf8_continues(text[at])) return at;
    const ByteSet& plain = text[at] < 0x80 ? plain_ascii_ : plain_others_;
    const size_t end = static_cast<size_t>(plain.skip(text + at, text + n) - text);
    return at < end && text[end - 1] < 0x80 && !stands_alone(text, end - 1, n) ? end - 1 : end;
  }

  // Whether no rule with a non-ASCII character can match at the ASCII character at `at`.
  bool stands_alone(const uint8_t* text, size_t at, size_t n) const {
    return at + 1 == n || text[at + 1] < 0x80 || !charsmap_.starts(text[at]);
  }

  Step next(const uint8_t* text, size_t n) const {
    const char* p = reinterpret_cast<const char*>(text);
    if (begins_piece_[*text])
      if (const size_t length = longest_piece({p, n})) return {{p, length}, length};
    if (const Charsmap::Rule rule = charsmap_.longest(text, n); rule.length) return {rule.replacement, rule.length};
    if (utf8_continues(*text)) return {"\uFFFD", 1};  // a rule has consumed a part of the character
    const size_t length = utf8_length(*text);
    return {{p, length}, length};
  }

  // Returns the length of the longest user-defined piece at the start of `text`, among the 64 shortest; 0 if there is
  // none.
  size_t longest_piece(std::string_view text) const {
    size_t found = 0, hits = 0;
    auto first = user_defined_.begin(), last = user_defined_.end();  // pieces that share the first n bytes of `text`
    for (size_t n = 0; n < text.size() && hits < kMaxHits; n++) {
      const auto order = [n](const std::string& piece, char c) {
        return static_cast<uint8_t>(piece[n]) < static_cast<uint8_t>(c);
      };
      const auto above = [n](char c, const std::string& piece) {
        return static_cast<uint8_t>(c) < static_cast<uint8_t>(piece[n]);
      };
      first = std::lower_bound(first, last, text[n], order);
      last = std::upper_bound(first, last, text[n], above);
      if (first == last) break;
      if (first->size() != n + 1) continue;  // the piece that ends here is sorted before all longer ones
      found = n + 1;
      hits++;
      if (++first == last) break;
    }
    return found;
  }

  static constexpr size_t kMaxHits = 64;

  Charsmap charsmap_;
  std::vector<std::string> user_defined_;  // sorted by bytes, without duplicates
  SentencePieceRules rules_;
  ByteSet plain_ascii_;       // ASCII characters except the space that stay unchanged if no non-ASCII character follows
  ByteSet plain_others_;      // bytes that begin unchanged characters, and continuation bytes
  bool plain_space_ = false;  // whether the space stays unchanged likewise
  bool begins_piece_[256] = {};  // bytes that begin a user-defined piece
};

}  // namespace tokenweir
