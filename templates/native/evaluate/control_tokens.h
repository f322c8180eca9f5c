// The guard: which control tokens in an output are not the template's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "evaluate/rendering.h"

namespace tokenweir::templates {

class ControlTokens {
 public:
  // `exempt` are those that count also where the content of an assistant has them.
  ControlTokens(const std::vector<std::string>& tokens, const std::vector<std::string>& exempt);

  // Offsets, ascending and in characters: of each occurrence of a control token that is not wholly the template's, or
  // vouched for, the first character that is not. No control token may match over these.
  std::vector<uint64_t> guarded(const Rendering& rendering, std::string_view text) const;

 private:
  enum class End : uint8_t { None, Token, Exempt };  // whether a token ends at a node

  std::string firsts_;                         // bytes that tokens begin with
  bool begins_[256] = {}, seconds_[256] = {};  // whether a token has this byte first, or second
  bool has_short_ = false;                     // whether some token is a single byte
  // A trie: the node behind another one and a byte, and what ends at each node. The root is 0.
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<End> ends_{End::None};
};

}  // namespace tokenweir::templates
