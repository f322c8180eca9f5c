// The guard: which control tokens in an output are not the template's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  enum class End : uint8_t { None, Token, Exempt };

  std::string firsts_;                         // bytes that tokens begin with
  bool begins_[256] = {}, seconds_[256] = {};  // whether a token has this byte first, or second or ends before it
  // A trie. The children of a node are neighbours, in the order of their bytes; the root is 0.
  struct Node {
    char byte;
    End end;  // whether a token ends here
    uint32_t children, count;
  };
  std::vector<Node> nodes_{{'\0', End::None, 0, 0}};
};

}  // namespace tokenweir::templates
