// The tokens of a vocabulary by id, contiguous in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "memory/shared_array.h"

namespace tokenweir {

// Copies share their memory.
class TokenList {
 public:
  // Collects tokens in the order of their ids. An id without a token gets an empty string.
  class Builder {
   public:
    explicit Builder(size_t tokens) {
      offsets_.reserve(tokens + 1);
      offsets_.push_back(0);
    }

    // The buffer to which the bytes of the next token are appended, before `end_token`.
    std::string& bytes() { return bytes_; }

    void end_token() {
      if (bytes_.size() > UINT32_MAX) throw Unsupported("a vocabulary of 4 GiB or more");
      offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    }

   private:
    friend class TokenList;
    std::string bytes_;
    std::vector<uint32_t> offsets_;
  };

  TokenList() : TokenList(Builder(0)) {}

  explicit TokenList(Builder&& built) {
    const auto bytes = std::make_shared<std::string>(std::move(built.bytes_));
    bytes_ = SharedArray<char>(bytes->data(), bytes->size(), bytes);
    offsets_ = std::move(built.offsets_);
  }

  template <class Strings>
  explicit TokenList(const Strings& tokens) : TokenList(build(tokens)) {}

  size_t size() const { return offsets_.size() - 1; }

  std::string_view operator[](size_t id) const {
    return {bytes_.data() + offsets_[id], offsets_[id + 1] - offsets_[id]};
  }

  // The total size of all tokens in bytes.
  size_t bytes() const { return bytes_.size(); }

  template <class Visit>
  void fields(Visit& visit) {
    visit(bytes_, offsets_);
  }

 private:
  template <class Strings>
  static Builder build(const Strings& tokens) {
    Builder builder(tokens.size());
    for (const std::string_view token : tokens) {
      builder.bytes() += token;
      builder.end_token();
    }
    return builder;
  }

  SharedArray<char> bytes_;
  SharedArray<uint32_t> offsets_;
};

}  // namespace tokenweir
