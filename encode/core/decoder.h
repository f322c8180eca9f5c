// Ids to bytes, and bytes to text while they come.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"

namespace tokenweir {

// The bytes of every token. Ids without a token (gaps, padding rows below the embedding's size) have none.
class TokenBytes {
 public:
  TokenBytes(const std::vector<std::string>& tokens, std::vector<bool> special) : special_(std::move(special)) {
    offsets_.push_back(0);
    for (const std::string& token : tokens) {
      blob_ += token;
      if (blob_.size() > UINT32_MAX) throw Unsupported("a vocabulary of 4 GiB or more");
      offsets_.push_back(static_cast<uint32_t>(blob_.size()));
    }
  }

  size_t size() const { return special_.size(); }

  void check(int64_t id) const {
    if (id < 0 || static_cast<uint64_t>(id) >= size())
      throw BadTokenId("token id " + std::to_string(id) + " is outside the vocabulary (0 to " +
                       std::to_string(size() - 1) + ")");
  }

  // `id` is known to be in range.
  std::string_view bytes(size_t id) const { return {blob_.data() + offsets_[id], offsets_[id + 1] - offsets_[id]}; }
  bool special(size_t id) const { return special_[id]; }

 private:
  std::string blob_;
  std::vector<uint32_t> offsets_;
  std::vector<bool> special_;
};

}  // namespace tokenweir
