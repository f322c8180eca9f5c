// Finding added tokens in text: leftmost-longest, as HuggingFace's AddedVocabulary does it.
//
// Behaviour observed in tokenizers 0.23 (tokenizer/added_vocabulary.rs):
// - After a match, the search continues at the end of the token, not at the end of the white space that `rstrip` adds
//   to it. So a token may begin inside white space that is already taken, and both tokens are emitted.
// - A match that `single_word` rejects is skipped, and no shorter token is tried in its place.
// - A match is dropped if an earlier token has taken all of its text. (If the earlier token reaches beyond the match,
//   the library panics.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/trie.h"
#include "base/utf8.h"

namespace tokenweir {

struct AddedToken {
  std::string content;
  uint32_t id;
  bool single_word, lstrip, rstrip;
};

// A match in a text. A search may be resumed at a clean side: it depends on nothing before, except single characters.
struct AddedTokenMatch {
  uint32_t id;
  size_t begin, end;
  bool clean_begin, clean_end;
};

// The characters that Rust's regex calls \w, as the code points where membership changes; empty if no token asks.
struct WordCharacters {
  std::vector<uint32_t> flips;
  bool contains(uint32_t c) const { return (std::upper_bound(flips.begin(), flips.end(), c) - flips.begin()) % 2; }
};

class AddedTokens {
 public:
  AddedTokens(std::vector<AddedToken> tokens, WordCharacters word)
      : tokens_(std::move(tokens)), word_(std::move(word)) {
    size_t total = 0;
    for (const AddedToken& token : tokens_) {
      if (token.content.empty() || token.content.size() > kMaxBytes)
        throw Unsupported("an added token of " + std::to_string(token.content.size()) + " bytes; 1 to " +
                          std::to_string(kMaxBytes) + " are possible");
      if ((total += token.content.size()) > kMaxAllBytes)
        throw Unsupported("added tokens of more than " + std::to_string(kMaxAllBytes) + " bytes in total");
    }
    std::vector<Trie::Key> keys;
    for (const AddedToken& token : tokens_) {
      keys.push_back({token.content, static_cast<uint32_t>(keys.size())});
      first_[static_cast<uint8_t>(token.content[0])] = true;
      max_bytes_ = std::max(max_bytes_, token.content.size());
      has_single_word_ |= token.single_word;
      has_lstrip_ |= token.lstrip;
    }
    trie_ = Trie(keys);
    for (int byte = 0; byte < 256; byte++)
      if (first_[byte]) only_first_ = only_first_ == kUnset ? byte : kSeveral;
  }

  bool empty() const { return tokens_.empty(); }

  // The bytes of the longest token. A decision at one place reads so many bytes behind it, and one character more.
  size_t max_bytes() const { return max_bytes_; }

  // Whether a search may be resumed at `at` > 0, across which it has found no token. A rejected match may have moved the
  // search beyond `at`, and `lstrip` may take white space on both sides of it.
  bool resumes_at(const uint8_t* text, size_t at) const {
    if (has_single_word_) return false;
    uint32_t length;
    return !has_lstrip_ || !is_white_space(utf8_decode(text + at, length)) ||
           !is_white_space(utf8_decode(text + previous_character(text, at), length));
  }

  // By the numbers in the trie.
  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const Trie& trie() const { return trie_; }

  // Cuts [begin, end) of `text` into calls of `part(begin, end)`. Each occurrence of a token that covers one of
  // `guards` is cut after its first character, so that no part contains it.
  template <class Part>
  void tear(const uint8_t* text, size_t begin, size_t end, const std::vector<size_t>& guards, Part&& part) const {
    auto guard = std::lower_bound(guards.begin(), guards.end(), begin);
    for (size_t at = begin; !tokens_.empty() && (at = next_candidate(text, at, end)) < end; at++) {
      while (guard != guards.end() && *guard < at) ++guard;
      if (guard == guards.end()) break;
      const AddedToken* found = longest(text, at, end);
      if (!found || *guard >= at + found->content.size()) continue;
      const size_t cut = at + utf8_length(text[at]);
      part(begin, cut);
      begin = cut;
    }
    if (begin < end) part(begin, end);
  }

  // Cuts [text + from, text + n) into `rest(begin, end)` and `token(match)`, in order; byte offsets. Stops when one of
  // them returns false.
  //
  // `guards` are sorted byte offsets of characters that no match may cover. Where the longest token would cover one, a
  // shorter token that ends before it may match. `lstrip` and `rstrip` stop at a guarded character.
  template <class Rest, class Token>
  void split(const uint8_t* text, size_t from, size_t n, const std::vector<size_t>& guards, Rest&& rest,
             Token&& token) const {
    size_t done = from, at = from, guard = 0, space_end = 0;  // space_end: how far `rstrip` has seen white space
    while (!tokens_.empty() && (at = next_candidate(text, at, n)) < n) {
      while (guard < guards.size() && guards[guard] < at) guard++;
      const size_t limit = guard < guards.size() ? guards[guard] : n;
      const AddedToken* match = longest(text, at, limit);
      if (!match) {
        at++;
        continue;
      }
      const size_t start = at;
      size_t begin = at, end = at + match->content.size();
      at = end;
      if (match->single_word && (touches_word_before(text, begin) || touches_word_after(text, end, n))) continue;
      if (match->lstrip) {
        const size_t taken = guard > 0 ? guards[guard - 1] + utf8_length(text[guards[guard - 1]]) : 0;
        begin = white_space_before(text, begin, std::max(done, taken));
      }
      const bool clean_begin = begin == start && std::max(done, space_end) <= begin && !match->lstrip;
      if (match->rstrip) end = space_end = end < space_end ? space_end : white_space_after(text, end, limit);
      if (begin >= end) continue;
      if (done < begin && !rest(done, begin)) return;
      if (!token(AddedTokenMatch{match->id, begin, end, clean_begin, at == end && space_end <= end})) return;
      done = end;
    }
    if (done != n) rest(done, n);
  }

 private:
  static constexpr size_t kMaxBytes = 4096;
  static constexpr size_t kMaxAllBytes = 1 << 23;  // a byte may take a node
  static constexpr int kUnset = -1, kSeveral = -2;

  size_t next_candidate(const uint8_t* text, size_t at, size_t n) const {
    if (only_first_ >= 0) {
      const void* found = at < n ? std::memchr(text + at, only_first_, n - at) : nullptr;
      return found ? static_cast<const uint8_t*>(found) - text : n;
    }
    while (at < n && !first_[text[at]]) at++;
    return at;
  }

  const AddedToken* longest(const uint8_t* text, size_t at, size_t limit) const {
    size_t end;
    const uint32_t found = longest_key(trie_.units().data(), trie_.root(), text, at, limit, end);
    return found == Trie::kAbsent ? nullptr : &tokens_[found];
  }

  static size_t previous_character(const uint8_t* text, size_t at) {
    do at--;
    while (utf8_continues(text[at]));
    return at;
  }

  bool touches_word_before(const uint8_t* text, size_t at) const {
    uint32_t length;
    return at > 0 && word_.contains(utf8_decode(text + previous_character(text, at), length));
  }

  bool touches_word_after(const uint8_t* text, size_t at, size_t n) const {
    uint32_t length;
    return at < n && word_.contains(utf8_decode(text + at, length));
  }

  // Returns the start of the white space before `at`, or `from` if that is later.
  static size_t white_space_before(const uint8_t* text, size_t at, size_t from) {
    while (at > from) {
      uint32_t length;
      const size_t previous = previous_character(text, at);
      if (!is_white_space(utf8_decode(text + previous, length))) break;
      at = previous;
    }
    return std::max(at, from);
  }

  static size_t white_space_after(const uint8_t* text, size_t at, size_t n) {
    uint32_t length;
    while (at < n && is_white_space(utf8_decode(text + at, length))) at += length;
    return at;
  }

  std::vector<AddedToken> tokens_;
  WordCharacters word_;
  Trie trie_;  // of indices of `tokens_`
  size_t max_bytes_ = 0;
  bool has_single_word_ = false, has_lstrip_ = false;
  bool first_[256] = {};
  int only_first_ = kUnset;
};

}  // namespace tokenweir
