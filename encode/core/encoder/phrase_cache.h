// Stretches of text and the ids they became, where these are many or the stretch is long: long names in code, rules of
// dashes, and passages of models without a pre-tokenizer.
//
// Bytes and ids lie in one buffer, a piece behind the other. When it is full all is forgotten; so there is nothing to free
// and nothing to move. A look-up compares the bytes themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "vocabulary/hash_table.h"

namespace tokenweir {

class PhraseCache {
 public:
  static constexpr size_t kMaxBytes = 4095;

  void prefetch(const uint8_t* p, size_t bytes) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[place(hash_bytes(p, bytes))]);
  }

  // The ids, `n` of them, until the next insert; null if the piece is not there.
  const int32_t* find(const uint8_t* p, size_t bytes, size_t& n) const {
    if (slots_.empty()) return nullptr;
    const uint64_t hash = hash_bytes(p, bytes);
    for (const size_t at : {place(hash), place(hash) ^ 1}) {
      const Slot& slot = slots_[at];
      if (slot.tag != static_cast<uint32_t>(hash) || slot.bytes != bytes) continue;
      const int32_t* ids = words_.data() + slot.at;
      if (std::memcmp(ids + slot.ids, p, bytes) != 0) continue;
      n = slot.ids;
      return ids;
    }
    return nullptr;
  }

  void insert(const uint8_t* p, size_t bytes, const int32_t* ids, size_t n) {
    if (n > kMaxIds) return;
    const uint64_t hash = hash_bytes(p, bytes);
    const size_t size = n + (bytes + 3) / 4;
    if (words_.size() + size > kWords || slots_.empty()) forget();
    if (++inserted_ > slots_.size() / 2 && slots_.size() < kMaxSlots) grow();
    Slot& slot = slots_[place(hash)];
    if (slot.bytes) slots_[place(hash) ^ 1] = slot;
    slot = {static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(words_.size()),
            static_cast<uint16_t>(bytes), static_cast<uint16_t>(n)};
    words_.insert(words_.end(), ids, ids + n);
    words_.resize(words_.size() + (bytes + 3) / 4);
    std::memcpy(words_.data() + slot.at + n, p, bytes);
  }

 private:
  static constexpr size_t kMaxIds = 4095, kWords = 1 << 20, kMaxSlots = 1 << 16;

  struct Slot {
    uint32_t tag = 0, rest = 0;  // the hash
    uint32_t at = 0;             // its ids, and its bytes behind them
    uint16_t bytes = 0, ids = 0;  // no bytes: empty
  };

  // A stretch is there or beside it, at the place with the last bit changed.
  size_t place(uint64_t hash) const { return hash >> 20 & (slots_.size() - 1); }

  void forget() {
    slots_.assign(std::max<size_t>(slots_.size(), 256), {});
    words_.clear();
    inserted_ = 0;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 4);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.bytes == 0) continue;
      const size_t at = place(uint64_t{slot.rest} << 32 | slot.tag);
      slots_[slots_[at].bytes ? at ^ 1 : at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<int32_t> words_;
  size_t inserted_ = 0;
};

}  // namespace tokenweir
