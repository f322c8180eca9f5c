// Ids to bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"
#include "token_list.h"

namespace tokenweir {

// The bytes of every token. Ids without a token (gaps, padding rows below the embedding's size) have none.
class TokenBytes {
 public:
  TokenBytes(const std::vector<std::string>& tokens, std::vector<bool> special)
      : tokens_(tokens), special_(std::move(special)) {}

  size_t size() const { return tokens_.size(); }

  void check(int64_t id) const {
    if (id < 0 || static_cast<uint64_t>(id) >= size())
      throw BadTokenId("token id " + std::to_string(id) + " is outside the vocabulary (0 to " +
                       std::to_string(size() - 1) + ")");
  }

  // `id` is known to be in range.
  std::string_view bytes(size_t id) const { return tokens_[id]; }
  bool special(size_t id) const { return special_[id]; }

 private:
  TokenList tokens_;
  std::vector<bool> special_;
};

}  // namespace tokenweir
