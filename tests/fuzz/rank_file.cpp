// A rank file: a line that is taken says its token and rank as they are written, in base64 and decimal.
#include "vocabulary/rank_file.h"

#include "fuzz.h"

namespace tokenweir {

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view three = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; i++) bits = bits << 8 | (i < three.size() ? static_cast<uint8_t>(three[i]) : 0);
    for (size_t i = 0; i < 4; i++) text += i <= three.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace tokenweir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenweir;
  const std::string_view file = view(data, size);
  RankFile ranks(file);
  std::string token;
  int64_t rank;
  for (std::string_view rest = file; !ranks.ended() && ranks.line(token, rank); token.clear()) {
    promised(!token.empty() && rank >= 0, "a token and its rank");
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const size_t space = line.find(' ');
    promised(line.substr(0, space) == base64(token), "the token is as written");
    size_t digits = space + 1;
    while (digits + 1 < line.size() && line[digits] == '0') digits++;
    promised(line.substr(digits) == std::to_string(rank), "the rank is as written");
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return 0;
}
