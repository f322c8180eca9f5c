// The tokens of a vocabulary by id, one after the other in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"

namespace tokenweir {

class TokenList {
 public:
  TokenList() : offsets_(1) {}

  // An empty string: the id names no token.
  explicit TokenList(const std::vector<std::string>& tokens) : offsets_(1) {
    for (const std::string& token : tokens) {
      bytes_ += token;
      if (bytes_.size() > UINT32_MAX) throw Unsupported("a vocabulary of 4 GiB or more");
      offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    }
  }

  size_t size() const { return offsets_.size() - 1; }

  std::string_view operator[](size_t id) const {
    return {bytes_.data() + offsets_[id], offsets_[id + 1] - offsets_[id]};
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> offsets_;
};

}  // namespace tokenweir
