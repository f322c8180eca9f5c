// Serializes states to bytes, and back. Input is not trusted: bad bytes throw std::invalid_argument, Python's
// ValueError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tokenweir {

class Saver {
 public:
  // Writes a varint: seven bits a byte, the low bits first.
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  void text(std::string_view text) {
    number(text.size());
    bytes_ += text;
  }

  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Throws unless a condition on a loaded state holds.
inline void check_state(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("the state is damaged: ") + what);
}

class Loader {
 public:
  explicit Loader(std::string_view bytes) : bytes_(bytes) {}

  // A number up to `most`.
  size_t number(size_t max) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      check_state(!bytes_.empty(), "it ends too early");
      const auto byte = static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
      check_state(shift < 63 || byte <= 1, "a number is too large");
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) break;
    }
    check_state(value <= max, "a number is too large");
    return static_cast<size_t>(value);
  }

  bool flag() { return number(1) != 0; }

  std::string_view text() {
    const size_t size = number(bytes_.size());
    check_state(size <= bytes_.size(), "a text is cut off");
    const std::string_view text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return text;
  }

  void end() const { check_state(bytes_.empty(), "something follows it"); }

  // An upper bound for positions in a text: larger than any text, and small enough that sums do not overflow.
  static constexpr size_t kMostBytes = size_t{1} << 48;

 private:
  std::string_view bytes_;
};

}  // namespace tokenweir
