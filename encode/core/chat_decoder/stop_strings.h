// Stop strings: text in, the same text out up to the first stop.
//
// An automaton of Aho and Corasick (1975) over bytes, which finds in UTF-8 what it would find in characters. It finds
// the match that completes earliest, wherever the text is cut, in time linear in the text, and its node *is* the held
// text: the longest suffix of the text that is a proper prefix of a stop. Nothing that has gone out is kept or looked
// at again. Memory and the time to build it are linear in the stops; a step looks at as many children as a node has.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/saving.h"

namespace tokenweir {

// The trie of the stops with failure links. Node 0 is the root; a node's path is a prefix of a stop.
class StopAutomaton {
 public:
  // Result of a walk: the number of bytes read, the node reached, and the number of the completed stop, or kNone.
  struct Walk {
    size_t end;
    uint32_t node;
    int32_t stop;
  };

  static constexpr int32_t kNone = -1;

  // `stops` are not empty texts; of several that complete together the first one wins.
  explicit StopAutomaton(std::vector<std::string> stops) : stops_(std::move(stops)), nodes_(1) {
    for (size_t number = 0; number < stops_.size(); number++) {
      uint32_t node = 0;
      for (const char c : stops_[number])
        node = child_or_new(node, static_cast<uint8_t>(c), static_cast<uint32_t>(number));
      if (nodes_[node].stop == kNone) nodes_[node].stop = static_cast<int32_t>(number);
    }
    link();
  }

  const std::vector<std::string>& stops() const { return stops_; }

  size_t size() const { return nodes_.size(); }

  // The text of a node's path.
  std::string_view path(uint32_t node) const {
    return node == 0 ? std::string_view() : std::string_view(stops_[nodes_[node].owner]).substr(0, nodes_[node].depth);
  }

  // Walks on from `node` up to the first stop that completes after `ignore` bytes of `text`.
  Walk walk(uint32_t node, std::string_view text, size_t ignore) const {
    for (size_t at = 0; at < text.size();) {
      const uint8_t byte = static_cast<uint8_t>(text[at++]);
      if (node == 0 && root_[byte] == 0) continue;
      node = next(node, byte);
      if (nodes_[node].stop == kNone) continue;
      if (at > ignore) return {at, 0, nodes_[node].stop};
      while (node != 0 && nodes_[node].child == 0) node = nodes_[node].fail;  // a whole stop is no proper prefix
    }
    return {text.size(), node, kNone};
  }

 private:
  struct Node {
    uint32_t child = 0, sibling = 0;  // 0: none
    uint32_t fail = 0;
    uint32_t depth = 0;
    uint32_t owner = 0;    // a stop that begins with the path
    int32_t stop = kNone;  // the first stop that ends here, on the path or on a suffix of it
    uint8_t byte = 0;
  };

  uint32_t child(uint32_t node, uint8_t byte) const {
    if (node == 0) return root_[byte];
    uint32_t found = nodes_[node].child;
    while (found != 0 && nodes_[found].byte != byte) found = nodes_[found].sibling;
    return found;
  }

  uint32_t next(uint32_t node, uint8_t byte) const {
    uint32_t found;
    while ((found = child(node, byte)) == 0 && node != 0) node = nodes_[node].fail;
    return found;
  }

  uint32_t child_or_new(uint32_t node, uint8_t byte, uint32_t owner) {
    if (const uint32_t found = child(node, byte)) return found;
    const uint32_t made = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({0, nodes_[node].child, 0, nodes_[node].depth + 1, owner, kNone, byte});
    nodes_[node].child = made;
    if (node == 0) root_[byte] = made;
    return made;
  }

  // Sets the failure links, breadth first, and hands down the stops that end at a suffix.
  void link() {
    std::vector<uint32_t> queue{0};
    for (size_t head = 0; head < queue.size(); head++) {
      const uint32_t node = queue[head];
      const int32_t inherited = nodes_[nodes_[node].fail].stop;
      if (inherited != kNone && (nodes_[node].stop == kNone || inherited < nodes_[node].stop))
        nodes_[node].stop = inherited;
      for (uint32_t c = nodes_[node].child; c != 0; c = nodes_[c].sibling) {
        if (node != 0) nodes_[c].fail = next(nodes_[node].fail, nodes_[c].byte);
        queue.push_back(c);
      }
    }
  }

  std::vector<std::string> stops_;
  std::vector<Node> nodes_;
  std::array<uint32_t, 256> root_{};  // the root's children by byte
};

// A text on its way through an automaton.
class StopStrings {
 public:
  StopStrings(std::shared_ptr<const StopAutomaton> automaton, bool include)
      : automaton_(std::move(automaton)), include_(include) {}

  const StopAutomaton& automaton() const { return *automaton_; }

  // Whether the text ends with the beginning of a stop.
  bool begun() const { return node_ != 0; }

  // That beginning, which is held back: nothing if it goes out in any case.
  std::string_view held() const { return include_ ? std::string_view() : automaton_->path(node_); }

  // The stop that has ended the text, or null.
  const std::string* matched() const {
    return stop_ == StopAutomaton::kNone ? nullptr : &automaton_->stops()[static_cast<size_t>(stop_)];
  }

  // Takes more text; appends to `out` what can no longer be part of a stop. A match that completes within `ignore`
  // bytes of `text` does not count. After a stop, text is dropped.
  void take(std::string_view text, size_t ignore, std::string& out) {
    if (stop_ != StopAutomaton::kNone) return;
    const std::string_view before = held();
    const StopAutomaton::Walk walk = automaton_->walk(node_, text, ignore);
    node_ = walk.node;
    stop_ = walk.stop;
    size_t kept = before.size() + walk.end;
    if (stop_ == StopAutomaton::kNone)
      kept -= held().size();
    else if (!include_)
      kept -= matched()->size();
    out += before.substr(0, kept);
    if (kept > before.size()) out += text.substr(0, kept - before.size());
  }

  // Takes text that completes no stop, without giving any; returns false, and takes nothing, if it completes one.
  bool skim(std::string_view text) {
    const StopAutomaton::Walk walk = automaton_->walk(node_, text, 0);
    if (walk.stop != StopAutomaton::kNone) return false;
    node_ = walk.node;
    return true;
  }

  void save(Saver& to) const {
    to.number(node_);
    to.number(static_cast<uint64_t>(stop_ + 1));
  }

  void load(Loader& from) {
    node_ = static_cast<uint32_t>(from.number(automaton_->size() - 1));
    stop_ = static_cast<int32_t>(from.number(automaton_->stops().size())) - 1;
    check_state(stop_ == StopAutomaton::kNone || node_ == 0, "text is held after a stop");
  }

  // Ends the search where the text ends, and appends what is held; more text begins anew.
  void flush(std::string& out) {
    out += held();
    node_ = 0;
  }

 private:
  std::shared_ptr<const StopAutomaton> automaton_;
  uint32_t node_ = 0;
  int32_t stop_ = StopAutomaton::kNone;
  bool include_;
};

}  // namespace tokenweir
