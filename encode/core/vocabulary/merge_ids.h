// Converts a merge list from tokens to ids, as HuggingFace's `tokenizers` 0.23 does, and back.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/quote.h"
#include "memory/shared_array.h"
#include "vocabulary/hash_table.h"
#include "vocabulary/merges.h"
#include "vocabulary/token_list.h"

namespace tokenweir {

// Returns (left, right, merged) for each merge. `names` has the vocabulary's tokens as the file spells them. `prefix`
// is the length of continuing_subword_prefix: the right token loses that many bytes, even if they are not the prefix.
inline std::vector<std::array<uint32_t, 3>> merge_ids(const Merges& merges, const TokenTable& names,
                                                      size_t prefix = 0) {
  if (merges.size() > PairTable::kMaxPriority)
    throw Unsupported(std::to_string(merges.size()) + " merges; at most " + std::to_string(PairTable::kMaxPriority) +
                      " fit");
  constexpr size_t kBlock = 64;  // look-ups whose cache misses overlap
  std::vector<std::array<uint32_t, 3>> ids(merges.size());
  std::array<std::string, kBlock> joined;
  std::array<TokenTable::Search, 3 * kBlock> searches;
  for (size_t first = 0; first < merges.size(); first += kBlock) {
    const size_t n = std::min(kBlock, merges.size() - first);
    for (size_t i = 0; i < n; i++) {
      const auto pair = merges[first + i];
      if (pair.right.size() < prefix)
        throw FileError("merge " + std::to_string(first + i) + " continues with " + quoted(pair.right) +
                        ", which is shorter than the continuing_subword_prefix");
      std::string_view whole = pair.joined();
      if (prefix > 0) whole = joined[i].assign(pair.left).append(pair.right.substr(prefix));
      searches[3 * i] = names.search(pair.left);
      searches[3 * i + 1] = names.search(pair.right);
      searches[3 * i + 2] = names.search(whole);
    }
    for (size_t i = 0; i < 3 * n; i++) names.prefetch_token(searches[i]);
    for (size_t i = 0; i < 3 * n; i++) {
      const uint32_t id = names.finish(searches[i]);
      if (id == kNone)
        throw FileError("merge " + std::to_string(first + i / 3) + " needs the token " + quoted(searches[i].token) +
                        ", which the vocabulary lacks");
      ids[first + i / 3][i % 3] = id;
    }
  }
  return ids;
}

// A merge that was omitted from a table of pairs.
struct OmittedMerge {
  uint32_t left, right, priority;
};

// Restores the merge list from which `pairs` was made; `pairs` and `omitted` must have a pair for each merge. `names`,
// by id, as above.
inline Merges listed_merges(const PairTable& pairs, const SharedArray<OmittedMerge>& omitted, const TokenList& names) {
  std::vector<std::pair<uint32_t, uint32_t>> ids;
  const auto list = [&](uint32_t left, uint32_t right, uint32_t priority) {
    if (priority >= ids.size()) ids.resize(priority + size_t{1});
    ids[priority] = {left, right};
  };
  pairs.for_each(list);
  for (const auto& [left, right, priority] : omitted) list(left, right, priority);
  Merges::Builder merges;
  for (const auto& [left, right] : ids) merges.add(names[left], names[right]);
  return std::move(merges).build();
}

}  // namespace tokenweir
