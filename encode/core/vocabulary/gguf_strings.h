// Reads the strings of a GGUF array: for each a 64-bit length (little-endian) and its bytes.
//
// This is in the core because a vocabulary and its merges have half a million strings: a loop in Python takes longer
// than the rest of loading a tokenizer. Lengths are not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/errors.h"

namespace tokenweir {

class GgufStrings {
 public:
  GgufStrings(const uint8_t* data, uint64_t size, uint64_t offset) : data_(data), size_(size), at_(offset) {}

  std::string_view next() {
    const uint64_t begin = at_;
    if (begin > size_ || size_ - begin < 8) throw FileError(place(begin) + " has no length: the data ends there");
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | data_[begin + static_cast<uint64_t>(i)];
    if (length > size_ - begin - 8)
      throw FileError(place(begin) + " is " + std::to_string(length) + " bytes long; " +
                      std::to_string(size_ - begin - 8) + " are left");
    at_ = begin + 8 + length;
    index_++;
    return {reinterpret_cast<const char*>(data_ + begin + 8), static_cast<size_t>(length)};
  }

  uint64_t offset() const { return at_; }

  // Throws the error for the last string of `next`, if it turned out not to be UTF-8.
  [[noreturn]] void not_utf8(std::string_view string) const {
    const auto begin = static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(string.data()) - data_) - 8;
    throw FileError("string " + std::to_string(index_ - 1) + " at byte " + std::to_string(begin) + " is not UTF-8");
  }

 private:
  std::string place(uint64_t offset) const {
    return "string " + std::to_string(index_) + " at byte " + std::to_string(offset);
  }

  const uint8_t* data_;
  uint64_t size_, at_, index_ = 0;
};

}  // namespace tokenweir
