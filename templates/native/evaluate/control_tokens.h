// The guard: which control tokens in an output are not the template's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evaluate/rendering.h"

namespace tokenweir::templates {

// A text that was searched, and what was found.
struct SearchedText {
  const Rendering& rendering;
  std::string_view text;
  const std::vector<uint64_t>& offsets;
};

class ControlTokens {
 public:
  // `exempt` are those that count also where the content of an assistant has them.
  ControlTokens(const std::vector<std::string>& tokens, const std::vector<std::string>& exempt);

  // Offsets, ascending and in characters: of each occurrence of a control token that is not wholly the template's, or
  // vouched for, the first character that is not. No control token may match over these. What the text has in common with
  // an earlier one is not searched again.
  std::vector<uint64_t> guarded(const Rendering& rendering, std::string_view text,
                                const SearchedText* earlier = nullptr) const;

 private:
  enum class End : uint8_t { None, Token, Exempt };

  ControlTokens(const std::vector<std::string_view>& sorted, const std::vector<std::string>& exempt);

  // The bytes that tokens have at one place.
  struct Bytes {
    Bytes();
    void add(uint8_t byte);

    bool has[256] = {};
    uint8_t by_half[2][16];  // at most two for each low half of a byte
    bool are_few = true;     // whether `by_half` has all of them
  };

  // Places at which a token may begin, by its first three bytes.
  class Beginnings {
   public:
    explicit Beginnings(const std::vector<std::string_view>& tokens);
    // The first place from `at` on, or the size of the text.
    size_t find(std::string_view text, size_t at) const;

   private:
    bool may_begin(std::string_view text, size_t at) const;

    Bytes places_[3];  // of a token that ends before a place all bytes
  };
  Beginnings beginnings_;
  size_t longest_ = 0;  // bytes of the longest token
  // A trie. The children of a node are neighbours, in the order of their bytes; the root is 0.
  struct Node {
    char byte;
    End end;  // whether a token ends here
    uint32_t children, count;
  };
  std::vector<Node> nodes_{{'\0', End::None, 0, 0}};
};

}  // namespace tokenweir::templates
