// Appends many short texts to a string.
//
// std::string::append costs a call and a check each time, which dominates where every fifth byte is replaced. The
// writer grows the string in large steps, writes past its real end, and truncates it in the destructor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/utf8.h"

namespace tokenweir {

class TextWriter {
 public:
  // `expected`: a hint for the number of bytes.
  TextWriter(std::string& out, size_t expected) : out_(out), at_(out.data() + out.size()), limit_(at_) {
    grow(expected);
  }
  TextWriter(const TextWriter&) = delete;
  ~TextWriter() { out_.resize(size()); }

  void append(const void* from, size_t n) {
    if (n > static_cast<size_t>(limit_ - at_)) grow(n);
    if (n > 16)
      std::memcpy(at_, from, n);
    else
      copy_short(at_, static_cast<const char*>(from), n);
    at_ += n;
  }

  void append(char byte) {
    if (at_ == limit_) grow(1);
    *at_++ = byte;
  }

  void append_character(uint32_t c) {
    if (limit_ - at_ < 4) grow(4);
    at_ += utf8_encode(c, reinterpret_cast<uint8_t*>(at_));
  }

  // The last `n` bytes.
  char* last(size_t n) { return at_ - n; }

  void drop_last(size_t n) { at_ -= n; }

  // The size of the string so far.
  size_t size() const { return static_cast<size_t>(at_ - out_.data()); }

 private:
  void grow(size_t n) {
    const size_t written = size();
    out_.resize(written + std::max(n, written / 2) + 64);
    at_ = out_.data() + written;
    limit_ = out_.data() + out_.size();
  }

  // Copies up to 16 bytes by two overlapping copies of fixed size.
  static void copy_short(char* to, const char* from, size_t n) {
    if (n >= 8) {
      std::memcpy(to, from, 8);
      std::memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
      std::memcpy(to, from, 4);
      std::memcpy(to + n - 4, from + n - 4, 4);
    } else if (n > 0) {
      to[0] = from[0];
      to[n / 2] = from[n / 2];
      to[n - 1] = from[n - 1];
    }
  }

  std::string& out_;
  char *at_, *limit_;
};

}  // namespace tokenweir
