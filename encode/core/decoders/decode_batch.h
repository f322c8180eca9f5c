// Many incremental decodes, one per slot, for an engine that steps all its sequences together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decoders/decode_stream.h"

namespace tokenweir {

class DecodeBatch {
 public:
  explicit DecodeBatch(DecodeState start) : start_(std::move(start)) {}

  // The initial state of every sequence.
  const DecodeState& start() const { return start_; }

  size_t size() const { return states_.size() - free_.size(); }

  bool has(int64_t slot) const {
    return slot >= 0 && static_cast<size_t>(slot) < states_.size() && used_[static_cast<size_t>(slot)];
  }

  // Adds a sequence; returns its slot: the one that was freed last, or a new one.
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

  // The state of a used slot.
  DecodeState& operator[](size_t slot) { return states_[slot]; }

  // Ends a sequence: appends its held text to `out`, and frees the slot.
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
