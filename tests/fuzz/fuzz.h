// What the harnesses share. A harness reads bytes that the fuzzer makes up, and stops at the first promise that is broken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/utf8_replace.h"

namespace tokenweir {

inline void promised(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

inline std::string_view view(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

inline bool within(std::string_view part, std::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

// Calls `read`, which may refuse the file.
template <class Read>
void or_refused(Read&& read) {
  try {
    read();
  } catch (const FileError& error) {
    promised(*error.what() != '\0', "a refusal says why");
  } catch (const Unsupported& error) {
    promised(*error.what() != '\0', "a refusal says why");
  }
}

// Choices that are made by the fuzzer's bytes, one after the other; zeros once there are no more.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool any() const { return at_ != end_; }

  // From 0 to `most`.
  size_t number(size_t most) {
    uint64_t value = 0;
    for (uint64_t reach = most; reach > 0; reach >>= 8) value = value << 8 | (any() ? *at_++ : 0);
    return static_cast<size_t>(most == SIZE_MAX ? value : value % (uint64_t{most} + 1));
  }

  bool coin() { return number(1) != 0; }

  std::string bytes(size_t most) {
    const size_t wanted = number(most), n = std::min(wanted, static_cast<size_t>(end_ - at_));
    at_ += n;
    return {reinterpret_cast<const char*>(at_ - n), n};
  }

 private:
  const uint8_t *at_, *end_;
};

// A few characters of those that steps and spellings are about.
inline std::string some_text(Choices& choices, size_t most) {
  static constexpr std::string_view kPieces[] = {"a", "b", "ab", " ", "▁", "é", "日", "👩", "##", "\n", "<0xE6>", "<", "\xCC\x81"};
  std::string text;
  for (size_t n = choices.number(most); n > 0; n--) text += kPieces[choices.number(std::size(kPieces) - 1)];
  return text;
}

// Cuts a text in parts.
inline std::vector<std::string_view> cut(std::string_view text, Choices& choices) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t length = choices.any() ? choices.number(std::min<size_t>(text.size(), 9)) : text.size();
    parts.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return parts;
}

}  // namespace tokenweir
