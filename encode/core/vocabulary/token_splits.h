// Finds every split of a token into two tokens.
//
// The prefixes of a token that are tokens are the longest one and, recursively, the prefixes of that; likewise for
// suffixes. So only the longest one is looked up in the table, and it is mostly a byte or two shorter than the token.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/table_memory.h"
#include "vocabulary/hash_table.h"
#include "vocabulary/token_list.h"

namespace tokenweir {

struct TokenSplit {
  uint32_t left, right, whole;
};
using TokenSplits = std::vector<TokenSplit, TableAllocator<TokenSplit>>;

// The longest proper prefix or suffix of a token that is a token.
struct LongestPart {
  uint32_t id = kNone;  // kNone if no prefix or suffix is a token
  uint32_t size = 0;
};

// Returns the longest part of each token. `part(token, size)` is its prefix or suffix of `size` bytes.
template <class Part>
std::vector<LongestPart> longest_parts(const TokenList& tokens, const TokenTable& table, Part&& part) {
  constexpr size_t kBlock = 64;  // look-ups whose cache misses overlap
  struct Open {
    uint32_t id, size;
    TokenTable::Search search;
  };
  std::array<Open, kBlock> open;
  size_t n = 0;
  // Begins a look-up of the longest part that is shorter than `size` and passes the filter.
  const auto shorten = [&](uint32_t id, uint32_t size) {
    const std::string_view token = tokens[id];
    while (size > 1)
      if (Open& one = open[n]; table.search(part(token, --size), one.search)) {
        one.id = id;
        one.size = size;
        n++;
        return;
      }
  };
  std::vector<LongestPart> longest(tokens.size());
  for (uint32_t next = 0;;) {
    while (n < kBlock && next < tokens.size()) {
      shorten(next, static_cast<uint32_t>(tokens[next].size()));
      next++;
    }
    if (n == 0) return longest;
    for (size_t i = 0; i < n; i++) table.prefetch_token(open[i].search);
    const size_t searched = std::exchange(n, 0);
    for (size_t i = 0; i < searched; i++) {
      const auto [id, size, search] = open[i];
      if (const uint32_t found = table.finish(search); found != kNone)
        longest[id] = {found, size};
      else
        shorten(id, size);
    }
  }
}

// Returns all splits, in the order of the tokens that are split.
inline TokenSplits token_splits(const TokenList& tokens, const TokenTable& table) {
  const std::vector<LongestPart> begins =
      longest_parts(tokens, table, [](std::string_view token, size_t size) { return token.substr(0, size); });
  const std::vector<LongestPart> ends = longest_parts(
      tokens, table, [](std::string_view token, size_t size) { return token.substr(token.size() - size); });
  struct End {
    uint32_t id, of = kNone;
  };
  std::vector<End> ends_by_size;
  TokenSplits splits;
  splits.reserve(tokens.size() * 3);  // real vocabularies have a little more than two per token
  for (uint32_t id = 0; id < tokens.size(); id++) {
    const size_t size = tokens[id].size();
    if (size > ends_by_size.size()) ends_by_size.resize(size);
    for (LongestPart end = ends[id]; end.id != kNone; end = ends[end.id]) ends_by_size[end.size] = {end.id, id};
    for (LongestPart begin = begins[id]; begin.id != kNone; begin = begins[begin.id])
      if (const End end = ends_by_size[size - begin.size]; end.of == id) splits.push_back({begin.id, end.id, id});
  }
  return splits;
}

}  // namespace tokenweir
