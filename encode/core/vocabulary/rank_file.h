// Reads tiktoken's rank files: one line per token, with its bytes in base64 and its rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tokenweir {

class RankFile {
 public:
  explicit RankFile(std::string_view data) : data_(data) {}

  bool ended() const { return at_ == data_.size(); }

  // Takes a line and appends its token to `tokens`. Returns false if the line is not written as in all known files; it
  // may still be valid.
  bool line(std::string& tokens, int64_t& rank) {
    const size_t before = tokens.size();
    rank = 0;
    uint32_t held = 0, bits = 0;
    const size_t first = at_;
    for (int value; at_ < data_.size() && (value = kValues[static_cast<uint8_t>(data_[at_])]) >= 0; at_++) {
      held = (held << 6 | static_cast<uint32_t>(value)) & 0xFFFF;
      if ((bits += 6) < 8) continue;
      bits -= 8;
      tokens += static_cast<char>(held >> bits & 0xFF);
    }
    if (held & ((1u << bits) - 1)) return false;
    for (; bits > 0 && at_ < data_.size() && data_[at_] == '='; at_++) bits -= 2;
    if (bits > 0 || (at_ - first) % 4 != 0 || !take(' ')) return false;
    const size_t digits = at_;
    for (; at_ < data_.size() && data_[at_] >= '0' && data_[at_] <= '9'; at_++)
      if (at_ - digits < 18) rank = rank * 10 + (data_[at_] - '0');
    const size_t n = at_ - digits;
    return n > 0 && n <= 18 && (ended() || take('\n')) && tokens.size() > before;
  }

 private:
  static constexpr std::array<int8_t, 256> values() {
    std::array<int8_t, 256> values{};
    for (int i = 0; i < 256; i++) values[static_cast<size_t>(i)] = -1;
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < kDigits.size(); i++) values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
    return values;
  }

  bool take(char c) { return at_ < data_.size() && data_[at_] == c && ++at_; }

  static const std::array<int8_t, 256> kValues;

  std::string_view data_;
  size_t at_ = 0;
};

inline constexpr std::array<int8_t, 256> RankFile::kValues = RankFile::values();

}  // namespace tokenweir
