// The content of every token in mid-text, in slots of 16 bytes: joining touches one cache line per token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "memory/growing_buffer.h"
#include "memory/shared_array.h"

namespace tokenweir {

class TokenContents {
 public:
  TokenContents() = default;
  explicit TokenContents(size_t tokens) : slots_(std::vector<Slot>(tokens)) {}

  size_t size() const { return slots_.size(); }

  template <class Visit>
  void fields(Visit& visit) {
    visit(slots_, long_);
  }

  uint8_t& flags(size_t id) { return slots_[id].flags; }
  uint8_t flags(size_t id) const { return slots_[id].flags; }

  std::string_view operator[](size_t id) const {
    const Slot& slot = slots_[id];
    if (slot.size != kInLong) return {slot.bytes, slot.size};
    const Place place = slot.place();
    return {long_.data() + place.start, place.size};
  }

  // Sets the content of an id. All contents together must be smaller than 4 GiB.
  void set(size_t id, std::string_view content) {
    Slot& slot = slots_[id];
    if (content.size() <= sizeof slot.bytes) {
      slot.size = static_cast<uint8_t>(content.size());
      std::memcpy(slot.bytes, content.data(), content.size());
      return;
    }
    const Place place{static_cast<uint32_t>(long_.size()), static_cast<uint32_t>(content.size())};
    slot.size = kInLong;
    std::memcpy(slot.bytes, &place, sizeof place);
    long_ += content;
  }

  // Appends the contents of tokens to `out`, without those that have any of the flags `skipped`. The ids must be in
  // range.
  template <class Id>
  void join(const Id* ids, size_t n, uint8_t skipped, GrowingBuffer<char>& out) const {
    out.room(n * kExpected);
    const Slot* const slots = slots_.data();
    for (size_t from = 0; from < n; from += kBlock) {
      const size_t until = n - from < kBlock ? n : from + kBlock;
      char *start = out.room(kBlock * sizeof(Slot)), *to = start;
      for (size_t i = from; i < until; i++) {
        const Slot& slot = slots[static_cast<size_t>(ids[i])];
        if (slot.flags & skipped) continue;
        if (slot.size != kInLong) {
          std::memcpy(to, &slot, sizeof slot);  // a fixed size, so one instruction
          to += slot.size;
          continue;
        }
        const Place place = slot.place();
        out.advance(static_cast<size_t>(to - start));
        start = to = out.room(place.size + kBlock * sizeof(Slot));
        std::memcpy(to, long_.data() + place.start, place.size);
        to += place.size;
      }
      out.advance(static_cast<size_t>(to - start));
    }
  }

 private:
  struct Place {
    uint32_t start, size;
  };

  struct alignas(16) Slot {
    char bytes[14];  // or a Place in `long_`
    uint8_t size = 0, flags = 0;

    Place place() const {
      Place place;
      std::memcpy(&place, bytes, sizeof place);
      return place;
    }
  };

  static constexpr uint8_t kInLong = 255;
  static constexpr size_t kBlock = 64, kExpected = 4;  // bytes an id

  SharedArray<Slot> slots_;
  std::string long_;
};

}  // namespace tokenweir
