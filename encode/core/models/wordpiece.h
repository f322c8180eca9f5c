// WordPiece as HuggingFace's `tokenizers` 0.23 does it (models/wordpiece): the longest token first, from left to right.
//
// Tokens that do not begin a piece are spelled with a prefix ("##"). A piece that is too long, or that no token
// continues at some place, is one unknown token, whatever was found before. In a trie of the tokens, the first walk
// begins at the root and the others at the node of the prefix; so a piece takes at most its length times that of the
// longest token. Tokens with more characters than a piece may have can never match and are left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/character_offsets.h"
#include "base/errors.h"
#include "base/quote.h"
#include "base/trie.h"
#include "base/utf8.h"
#include "models/model.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class WordPiece : public Model {
 public:
  // `tokens` are distinct, and only used during construction. Pieces of more than `max_chars` characters are unknown.
  // `encode` with `guarded` never yields an id of `control`, except that of `unknown`.
  WordPiece(const std::vector<Trie::Key>& tokens, std::string_view unknown, std::string_view prefix, uint64_t max_chars,
            const std::vector<uint32_t>& control)
      : unknown_(id_of(tokens, unknown)),
        max_chars_(max_chars),
        trie_(within_reach(tokens, max_chars + count_characters(prefix))),
        below_prefix_(trie_.below(prefix)) {
    size_t size = 0;
    for (const auto& [token, id] : tokens) size = std::max<size_t>(size, id + size_t{1});
    std::vector<bool> exists(size);
    for (const auto& [token, id] : tokens) exists[id] = true;
    guards_ = mark_control(control, size, [&](uint32_t id) { return exists[id] && id != unknown_; });
  }

  // Tables that kernels use too.
  const Trie& trie() const { return trie_; }
  uint32_t below_prefix() const { return below_prefix_; }
  uint32_t unknown() const { return unknown_; }
  uint64_t max_chars() const { return max_chars_; }

  void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out,
              std::vector<Span>* spans) const override {
    guarded = guarded && guards_;
    const size_t first_span = spans ? spans->size() : 0;
    scratch.ids.clear();
    bool known = !too_long(p, n);
    for (size_t at = 0; known && at < n;) {
      uint32_t id = kNone;
      size_t end = at;
      const auto longer = [&](const uint8_t* q, uint32_t found) {
        if (guarded && control_[found]) return;
        id = found;
        end = static_cast<size_t>(q - p);
      };
      if (at == 0)
        trie_.prefixes(p, p + n, longer);
      else
        trie_.prefixes(below_prefix_, p + at, p + n, longer);
      known = id != kNone;
      scratch.ids.push_back(id);
      if (spans) spans->push_back({at, end});
      at = end;
    }
    if (!known) {
      scratch.ids.assign(1, unknown_);
      if (spans) {
        spans->resize(first_span);
        spans->push_back({0, n});
      }
    }
    for (const uint32_t id : scratch.ids) out.push(id);
  }

 private:
  // The longest token in bytes: the walk from each place in a piece may be as long.
  static constexpr size_t kMaxToken = 4096;

  bool too_long(const uint8_t* p, size_t n) const {
    return n > max_chars_ && count_characters({reinterpret_cast<const char*>(p), n}) > max_chars_;
  }

  static uint32_t id_of(const std::vector<Trie::Key>& tokens, std::string_view unknown) {
    for (const auto& [token, id] : tokens)
      if (token == unknown) return id;
    throw FileError("model: unk_token " + quoted(unknown) + " is not in the vocabulary");
  }

  // Returns the tokens of at most `limit` characters.
  static std::vector<Trie::Key> within_reach(const std::vector<Trie::Key>& tokens, uint64_t limit) {
    std::vector<Trie::Key> found;
    found.reserve(tokens.size());
    for (const Trie::Key& token : tokens) {
      if (token.bytes.size() > limit && count_characters(token.bytes) > limit) continue;
      if (token.bytes.size() > kMaxToken)
        throw Unsupported("model: a WordPiece token of " + std::to_string(token.bytes.size()) + " bytes; at most " +
                          std::to_string(kMaxToken) + " are possible");
      found.push_back(token);
    }
    return found;
  }

  uint32_t unknown_;
  uint64_t max_chars_;
  Trie trie_;
  uint32_t below_prefix_;
};

}  // namespace tokenweir
