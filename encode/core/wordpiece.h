// WordPiece as HuggingFace's `tokenizers` 0.23 does it (models/wordpiece): the longest token first, from left to right.
//
// Tokens that do not begin a piece are spelled with a prefix ("##"). A piece that is too long, or at some place begins
// with no token, is one unknown token whatever was found before. Two trees, of the tokens that may begin a piece and of
// those that may follow, the latter without the prefix; so a piece takes its length times that of the longest token at
// worst. Tokens of more characters than a piece may have are never met and are left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "byte_trie.h"
#include "errors.h"
#include "model.h"
#include "utf8.h"

namespace tokenweir {

class WordPiece : public Model {
 public:
  // `tokens`: no two equal, no id kNone; not needed afterwards. `max_chars`: longer pieces are unknown. The ids in
  // `control` are never yielded with `guarded`, but for that of `unknown`.
  WordPiece(const std::vector<ByteTrie::Entry>& tokens, std::string_view unknown, std::string_view prefix,
            uint64_t max_chars, const std::vector<uint32_t>& control)
      : unknown_(id_of(tokens, unknown)),
        max_chars_(max_chars),
        first_(entries(tokens, "", max_chars)),
        rest_(entries(tokens, prefix, max_chars)) {
    size_t size = 0;
    for (const auto& [token, id] : tokens) size = std::max<size_t>(size, id + size_t{1});
    std::vector<bool> exists(size);
    for (const auto& [token, id] : tokens) exists[id] = true;
    control_.resize(size);
    for (const uint32_t id : control)
      if (id < size && exists[id] && id != unknown_) control_[id] = guards_ = true;
  }

  bool guards() const override { return guards_; }

  void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out,
              std::vector<Span>* spans) const override {
    const std::vector<bool>* skip = guarded && guards_ ? &control_ : nullptr;
    const size_t first_span = spans ? spans->size() : 0;
    scratch.ids.clear();
    bool known = !longer(p, n);
    for (size_t at = 0; known && at < n;) {
      const ByteTrie::Match match = (at == 0 ? first_ : rest_).longest(p + at, n - at, skip);
      known = match.id != kNone;
      scratch.ids.push_back(match.id);
      if (spans) spans->push_back({at, at + match.n});
      at += match.n;
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
  // The walk from each place in a piece may take the length of the longest token.
  static constexpr size_t kMaxToken = 4096;

  static uint64_t characters(const uint8_t* p, size_t n) {
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) count += !utf8_continues(p[i]);
    return count;
  }

  bool longer(const uint8_t* p, size_t n) const { return n > max_chars_ && characters(p, n) > max_chars_; }

  static uint32_t id_of(const std::vector<ByteTrie::Entry>& tokens, std::string_view unknown) {
    for (const auto& [token, id] : tokens)
      if (token == unknown) return id;
    throw FileError("model: unk_token \"" + std::string(unknown) + "\" is not in the vocabulary");
  }

  // The tokens that begin with `prefix`, without it.
  static std::vector<ByteTrie::Entry> entries(const std::vector<ByteTrie::Entry>& tokens, std::string_view prefix,
                                              uint64_t max_chars) {
    std::vector<ByteTrie::Entry> found;
    found.reserve(tokens.size());
    for (const auto& [token, id] : tokens) {
      std::string_view rest = token;
      if (rest.size() <= prefix.size() || rest.substr(0, prefix.size()) != prefix) continue;
      rest.remove_prefix(prefix.size());
      if (characters(reinterpret_cast<const uint8_t*>(rest.data()), rest.size()) > max_chars) continue;
      if (rest.size() > kMaxToken)
        throw Unsupported("model: a WordPiece token of " + std::to_string(rest.size()) + " bytes; at most " +
                          std::to_string(kMaxToken) + " are possible");
      found.push_back({rest, id});
    }
    return found;
  }

  uint32_t unknown_;
  uint64_t max_chars_;
  ByteTrie first_, rest_;
  std::vector<bool> control_;  // by id
  bool guards_ = false;
};

}  // namespace tokenweir
