// Many decodings side by side, one a slot, for an engine that steps all its sequences at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoders/decode_stream.h"

namespace tokenweir {

class DecodeBatch {
 public:
  explicit DecodeBatch(DecodeState start) : start_(std::move(start)) {}

  // What every sequence starts from.
  const DecodeState& start() const { return start_; }

  size_t size() const { return states_.size() - free_.size(); }

  bool has(int64_t slot) const {
    return slot >= 0 && static_cast<size_t>(slot) < states_.size() && used_[static_cast<size_t>(slot)];
  }

  // The slot that was given up last, or a new one.
  size_t add(DecodeState state) {
    if (free_.empty()) {
      states_.push_back(std::move(state));
      used_.push_back(true);
      return states_.size() - 1;
    }
    const size_t slot = free_.back();
    free_.pop_back();
    states_[slot] = std::move(state);
    used_[slot] = true;
    return slot;
  }

  // The state of a slot that is in use.
  DecodeState& operator[](size_t slot) { return states_[slot]; }

  // Ends a sequence: appends to `out` what is held, and gives the slot up.
  void remove(size_t slot, std::string& out) {
    states_[slot].flush(out);
    used_[slot] = false;
    free_.push_back(slot);
  }

 private:
  DecodeState start_;
  std::vector<DecodeState> states_;
  std::vector<bool> used_;
  std::vector<size_t> free_;
};

}  // namespace tokenweir
