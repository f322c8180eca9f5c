// Places of text that stop strings are searched in and that is not emitted: control tokens that a stop string contains.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "base/saving.h"

namespace tokenweir {

class HiddenText {
 public:
  bool empty() const { return spans_.empty(); }

  // Hides the bytes from `begin` to `end`, behind all hidden ones.
  void hide(size_t begin, size_t end) { spans_.emplace_back(begin, end); }

  // Calls `give(length, hidden)` for the parts of the text from `begin` to `end`, in order. No earlier text may follow.
  template <class Give>
  void split(size_t begin, size_t end, Give&& give) {
    while (begin < end) {
      while (!spans_.empty() && spans_.front().second <= begin) spans_.pop_front();
      const size_t from = spans_.empty() ? end : std::min(spans_.front().first, end);
      if (from > begin) give(from - begin, false);
      begin = std::max(begin, from);
      if (begin == end) return;
      const size_t to = std::min(spans_.front().second, end);
      give(to - begin, true);
      begin = to;
    }
  }

  void save(Saver& to) const {
    to.number(spans_.size());
    for (const auto& [begin, end] : spans_) {
      to.number(begin);
      to.number(end);
    }
  }

  // Loads spans of a text of `size` bytes.
  void load(Loader& from, size_t size) {
    spans_.clear();
    for (size_t left = from.number(size); left > 0; left--) {
      const size_t begin = from.number(size), end = from.number(size);
      check_state(begin < end && (spans_.empty() || spans_.back().second <= begin), "hidden texts overlap");
      spans_.emplace_back(begin, end);
    }
  }

 private:
  std::deque<std::pair<size_t, size_t>> spans_;
};

}  // namespace tokenweir
