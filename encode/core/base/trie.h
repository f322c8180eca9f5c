// A trie over byte strings: finds the keys that begin at a place of a text.
//
// A double array (Aoe, "An Efficient Digital Search Algorithm by Using a Double-Array Structure", 1989), with XOR in
// place of addition: the child of a node by a byte is the unit at `base ^ byte` if that unit's label is the byte. No
// two nodes have the same base, so the label alone identifies the parent of a unit (trie_unit.h). A unit is 8 bytes,
// and a node of a natural vocabulary takes little more than one. If the children fit into none of the gaps that are
// tried, 256 units are added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/trie_unit.h"

namespace tokenweir {

class Trie {
 public:
  struct Key {
    std::string_view bytes;
    uint32_t value;
  };

  static constexpr uint32_t kAbsent = TrieUnit::kAbsent;
  static constexpr uint32_t kMaxValue = kAbsent - 1;

  Trie() : Trie(std::vector<Key>{}) {}

  // Of equal keys the last wins; the empty key is never found.
  explicit Trie(const std::vector<Key>& keys) : Trie(Sorted(keys)) {}

  // Calls `found(key_end, value)` for each key that is a prefix of [p, end), the shortest first.
  template <class Found>
  void prefixes(const uint8_t* p, const uint8_t* end, Found&& found) const {
    prefixes(root_, p, end, found);
  }

  // Continues the search after a prefix; `from` is the result of `below` for that prefix.
  template <class Found>
  void prefixes(uint32_t from, const uint8_t* p, const uint8_t* end, Found&& found) const {
    for (uint32_t base = from; p < end; p++) {
      const TrieUnit unit = units_[base ^ *p];
      if (!unit.is_child_by(*p)) return;
      if (unit.value() != kAbsent) found(p + 1, unit.value());
      base = unit.base;
    }
  }

  // Returns the base of the node of a prefix; 0, which has no children, if no key begins with it.
  uint32_t below(std::string_view bytes) const {
    uint32_t base = root_;
    for (const char c : bytes) {
      const TrieUnit unit = units_[base ^ static_cast<uint8_t>(c)];
      if (!unit.is_child_by(static_cast<uint8_t>(c))) return 0;
      base = unit.base;
    }
    return base;
  }

  // Returns the value of a key, or kAbsent.
  uint32_t find(std::string_view key) const {
    const auto* p = reinterpret_cast<const uint8_t*>(key.data());
    const uint8_t* const end = p + key.size();
    uint32_t value = kAbsent;
    prefixes(p, end, [&](const uint8_t* q, uint32_t found) {
      if (q == end) value = found;
    });
    return value;
  }

  // Calls `use(key, value)` for every key, in byte order.
  template <class Use>
  void for_each(Use&& use) const {
    std::string key;
    for_each_below(root_, key, use);
  }

  // The memory of the units.
  size_t bytes() const { return units_.size() * sizeof(TrieUnit); }

  const std::vector<TrieUnit>& units() const { return units_; }
  uint32_t root() const { return root_; }

 private:
  static constexpr uint32_t kBlock = 256;
  static constexpr size_t kAttempts = 64;

  // The keys in order, with contiguous bytes: building traverses them several times.
  struct Sorted {
    std::string bytes;
    std::vector<Key> keys;

    explicit Sorted(const std::vector<Key>& from) {
      struct Entry {
        uint64_t first;  // the first 8 bytes, which mostly decide the order
        uint32_t at;
      };
      std::vector<Entry> order;
      size_t total = 0;
      for (const Key& key : from) {
        if (key.value > kMaxValue) throw Unsupported("a trie's value of more than 23 bits");
        uint64_t first = 0;
        for (size_t i = 0; i < 8; i++)
          first = first << 8 | (i < key.bytes.size() ? static_cast<uint8_t>(key.bytes[i]) : 0);
        order.push_back({first, static_cast<uint32_t>(order.size())});
        total += key.bytes.size();
      }
      std::sort(order.begin(), order.end(), [&](const Entry& a, const Entry& b) {
        if (a.first != b.first) return a.first < b.first;
        const int c = from[a.at].bytes.compare(from[b.at].bytes);
        return c != 0 ? c < 0 : a.at < b.at;
      });
      bytes.reserve(total);  // so that views into it stay valid
      for (const Entry& entry : order) {
        const Key& key = from[entry.at];
        keys.push_back({{bytes.data() + bytes.size(), key.bytes.size()}, key.value});
        bytes += key.bytes;
      }
    }
  };

  // The state while units are placed: a ring of free units, oldest first, and the bases in use.
  struct Places {
    std::vector<uint32_t> next{0}, previous{0};  // by unit; unit 0 is the head of the ring and never free
    std::vector<bool> taken;
    size_t free = 0;

    void give(uint32_t unit) {
      const uint32_t last = previous[0];
      next[last] = previous[0] = unit;
      previous[unit] = last;
      next[unit] = 0;
      free++;
    }

    // Removes a unit from the ring; a no-op if it is not there.
    void take(uint32_t unit) {
      if (next[unit] == unit) return;
      next[previous[unit]] = next[unit];
      previous[next[unit]] = previous[unit];
      next[unit] = previous[unit] = unit;
      free--;
    }
  };

  explicit Trie(const Sorted& sorted) {
    struct Range {
      size_t first, last, depth;  // keys that share `depth` bytes
      uint32_t unit;              // their node; 0 for the root
    };
    Places places;
    add_block(places);
    std::vector<Range> open{{0, sorted.keys.size(), 0, 0}};
    std::vector<Range> children;
    std::vector<uint8_t> labels;
    while (!open.empty()) {
      Range range = open.back();
      open.pop_back();
      for (; range.first < range.last && sorted.keys[range.first].bytes.size() == range.depth; range.first++)
        if (range.depth > 0) set_value(range.unit, sorted.keys[range.first].value);
      if (range.first == range.last) continue;
      children.clear(), labels.clear();
      for (size_t i = range.first; i < range.last; i++) {
        const uint8_t label = static_cast<uint8_t>(sorted.keys[i].bytes[range.depth]);
        if (labels.empty() || labels.back() != label) {
          labels.push_back(label);
          children.push_back({i, i, range.depth + 1, 0});
        }
        children.back().last = i + 1;
      }
      const uint32_t base = place(labels, places);
      (range.unit ? units_[range.unit].base : root_) = base;
      for (size_t i = 0; i < labels.size(); i++) {
        children[i].unit = base ^ labels[i];
        units_[children[i].unit].set(kAbsent, labels[i]);
        places.take(children[i].unit);
      }
      open.insert(open.end(), children.rbegin(), children.rend());
    }
    units_.shrink_to_fit();
  }

  template <class Use>
  void for_each_below(uint32_t base, std::string& key, Use& use) const {
    for (uint32_t byte = 0; byte < 256; byte++) {
      const TrieUnit unit = units_[base ^ byte];
      if (!unit.is_child_by(static_cast<uint8_t>(byte))) continue;
      key.push_back(static_cast<char>(byte));
      if (unit.value() != kAbsent) use(std::string_view(key), unit.value());
      if (unit.base) for_each_below(unit.base, key, use);
      key.pop_back();
    }
  }

  void set_value(uint32_t unit, uint32_t value) { units_[unit].set(value, units_[unit].label()); }

  // Finds a base whose units for `labels` are free, and marks it as taken. A single child goes into one of the oldest
  // gaps; if it fits into none, because every base that leads there is taken, those gaps are abandoned. Several
  // children go to the newest units.
  uint32_t place(const std::vector<uint8_t>& labels, Places& places) {
    const bool single = labels.size() == 1;
    for (;;) {
      const std::vector<uint32_t>& order = single ? places.next : places.previous;
      uint32_t unit = order[0];
      for (size_t i = 0; i < kAttempts && unit != 0; i++, unit = order[unit])
        if (take_base(unit ^ labels[0], labels, places)) return unit ^ labels[0];
      if (!single || places.free < kAttempts) break;
      for (size_t i = 0; i < kAttempts; i++) places.take(places.next[0]);
    }
    const uint32_t base = static_cast<uint32_t>(units_.size());
    add_block(places);
    places.taken[base] = true;
    return base;
  }

  bool take_base(uint32_t base, const std::vector<uint8_t>& labels, Places& places) const {
    if (places.taken[base]) return false;
    for (const uint8_t label : labels)
      if (units_[base ^ label].label() != TrieUnit::kFree) return false;
    places.taken[base] = true;
    return true;
  }

  void add_block(Places& places) {
    const size_t begin = units_.size(), end = begin + kBlock;
    if (end > UINT32_MAX) throw Unsupported("a vocabulary too large for its trie");
    units_.resize(end), places.next.resize(end), places.previous.resize(end), places.taken.resize(end);
    for (size_t unit = begin; begin > 0 && unit < end; unit++) places.give(static_cast<uint32_t>(unit));
  }

  std::vector<TrieUnit> units_;
  uint32_t root_ = 0;
};

}  // namespace tokenweir
