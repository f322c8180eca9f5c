// The trie of added tokens, and its search. Freestanding: kernels search it too.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

struct TrieNode {
  uint32_t first_child = 0;  // children are contiguous, sorted by byte
  uint16_t n_children = 0;
  uint8_t byte = 0;
  int32_t token = -1;  // the token that ends here, or -1
};

// Returns the longest token that begins at text[at] and ends at or before `limit`, or -1; sets `end` to its end.
TW_FN int32_t longest_token(const TrieNode* nodes, const uint8_t* text, size_t at, size_t limit, size_t& end) {
  int32_t found = -1;
  for (TrieNode node = nodes[0]; at < limit; at++) {
    uint32_t low = node.first_child, high = low + node.n_children;  // a leaf's may be past the last node
    const uint32_t last = high;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (nodes[middle].byte < text[at])
        low = middle + 1;
      else
        high = middle;
    }
    if (low == last || nodes[low].byte != text[at]) break;
    node = nodes[low];
    if (node.token >= 0) {
      found = node.token;
      end = at + 1;
    }
  }
  return found;
}

}  // namespace tokenweir
