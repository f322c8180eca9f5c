// A set of strings as a tree of bytes, for the longest one that a text begins with.
//
// The nodes lie level by level, so a node's children are neighbours, in order of their bytes: a node is the index of
// its first child, and their number is where the next node's begin. The root, which has most children, is a table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "errors.h"
#include "hash_table.h"

namespace tokenweir {

class ByteTrie {
 public:
  using Entry = std::pair<std::string_view, uint32_t>;  // not empty, and its id

  struct Match {
    uint32_t id;  // kNone: none
    size_t n;     // how many bytes
  };

  // Of equal strings the first holds. The strings are not needed afterwards.
  explicit ByteTrie(std::vector<Entry> entries) {
    const auto before = [](const Entry& a, const Entry& b) { return a.first < b.first; };
    std::stable_sort(entries.begin(), entries.end(), before);
    const auto same = [](const Entry& a, const Entry& b) { return a.first == b.first; };
    entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
    build(entries);
    std::fill(std::begin(root_), std::end(root_), kNone);
    for (uint32_t child = first_[0]; child < first_[1]; child++) root_[labels_[child]] = child;
  }

  // The longest string that [p, p + n) begins with; if `skip` is not null, other than those whose ids it has.
  Match longest(const uint8_t* p, size_t n, const std::vector<bool>* skip = nullptr) const {
    Match best{kNone, 0};
    if (n == 0) return best;
    uint32_t node = root_[p[0]];
    for (size_t i = 1; node != kNone; i++) {
      if (const uint32_t id = ids_[node]; id != kNone && !(skip && (*skip)[id])) best = {id, i};
      if (i == n) break;
      node = child(node, p[i]);
    }
    return best;
  }

 private:
  uint32_t child(uint32_t node, uint8_t byte) const {
    const uint8_t *begin = labels_.data() + first_[node], *end = labels_.data() + first_[node + 1];
    const uint8_t* found = std::lower_bound(begin, end, byte);
    return found < end && *found == byte ? static_cast<uint32_t>(found - labels_.data()) : kNone;
  }

  // Level by level: the entries below a node are neighbours, since they are sorted.
  void build(const std::vector<Entry>& entries) {
    std::vector<std::pair<size_t, size_t>> below{{0, entries.size()}}, next;
    labels_.push_back(0);
    ids_.push_back(kNone);
    for (size_t depth = 0; !below.empty(); depth++, below.swap(next)) {
      next.clear();
      for (auto [begin, end] : below) {
        if (labels_.size() >= kNone) throw Unsupported("a vocabulary of 4 GiB or more");
        first_.push_back(static_cast<uint32_t>(labels_.size()));
        if (begin < end && entries[begin].first.size() == depth) begin++;  // the node's own string is first
        while (begin < end) {
          const char byte = entries[begin].first[depth];
          size_t stop = begin + 1;
          while (stop < end && entries[stop].first[depth] == byte) stop++;
          labels_.push_back(static_cast<uint8_t>(byte));
          ids_.push_back(entries[begin].first.size() == depth + 1 ? entries[begin].second : kNone);
          next.push_back({begin, stop});
          begin = stop;
        }
      }
    }
    first_.push_back(static_cast<uint32_t>(labels_.size()));
  }

  std::vector<uint32_t> first_;  // by node, and one more
  std::vector<uint8_t> labels_;  // by node: the byte that leads to it
  std::vector<uint32_t> ids_;    // by node: the string that ends there, or kNone
  uint32_t root_[256];
};

}  // namespace tokenweir
