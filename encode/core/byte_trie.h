// A set of strings as a tree of bytes, for the longest one that a text begins with.
//
// The nodes lie level by level, so a node's children are neighbours, in order of their bytes: a node is the index of
// its first child, and their number is where the next node's begin. The root, which has most children, is a table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
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

  // No two strings are equal. They are not needed afterwards.
  explicit ByteTrie(const std::vector<Entry>& strings) {
    std::vector<Sorted> entries;
    entries.reserve(strings.size());
    for (const auto& [string, id] : strings) entries.push_back({beginning(string), string, id});
    std::sort(entries.begin(), entries.end());
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

  // An entry with its first eight bytes as a number, which tell most strings apart and are near.
  struct Sorted {
    uint64_t beginning;
    std::string_view string;
    uint32_t id;

    bool operator<(const Sorted& other) const {
      return beginning != other.beginning ? beginning < other.beginning : string < other.string;
    }
    uint8_t byte(size_t i) const {
      return static_cast<uint8_t>(i < 8 ? beginning >> (56 - 8 * i) : static_cast<uint64_t>(string[i]));
    }
  };

  static uint64_t beginning(std::string_view string) {
    uint64_t word = 0;
    std::memcpy(&word, string.data(), std::min<size_t>(8, string.size()));
    return __builtin_bswap64(word);
  }

  // Level by level: the entries below a node are neighbours, since they are sorted.
  void build(const std::vector<Sorted>& entries) {
    std::vector<std::pair<size_t, size_t>> below{{0, entries.size()}}, next;
    labels_.push_back(0);
    ids_.push_back(kNone);
    for (size_t depth = 0; !below.empty(); depth++, below.swap(next)) {
      next.clear();
      for (auto [begin, end] : below) {
        if (labels_.size() >= kNone) throw Unsupported("a vocabulary of 4 GiB or more");
        first_.push_back(static_cast<uint32_t>(labels_.size()));
        if (begin < end && entries[begin].string.size() == depth) begin++;  // the node's own string is first
        while (begin < end) {
          const uint8_t byte = entries[begin].byte(depth);
          size_t stop = begin + 1;
          while (stop < end && entries[stop].byte(depth) == byte) stop++;
          labels_.push_back(byte);
          ids_.push_back(entries[begin].string.size() == depth + 1 ? entries[begin].id : kNone);
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
