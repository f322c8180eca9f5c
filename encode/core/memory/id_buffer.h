// A growing array of ids.
#pragma once

#include <cstdint>

#include "memory/growing_buffer.h"

namespace tokenweir {

class IdBuffer : public GrowingBuffer<int32_t> {
 public:
  void push(uint32_t id) {
    *room(1) = static_cast<int32_t>(id);
    advance(1);
  }
};

}  // namespace tokenweir
