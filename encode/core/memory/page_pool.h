// Keeps the pages of large buffers that are freed, for the next ones: a new page costs a page fault, and the system
// zeroes it. The kept bytes are bounded, and the system may take them back when it is short of memory.
//
// Slots are claimed by atomic exchange, so a fork in mid-call costs the child some pages, not a deadlock.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/platform.h"

namespace tokenweir {

class PagePool {
 public:
  static constexpr size_t kMostBytes = size_t{256} << 20;

  // Returns kept pages of at least `bytes`, up to about twice as many, and sets `bytes` to their size; else nullptr.
  static void* take(size_t& bytes) {
    for (auto& slot : slots_) {
      Head* const head = empty(slot);
      if (!head) continue;
      const size_t size = head->bytes;
      if (size >= bytes && size <= 2 * bytes + kHugePage) {
        kept_ -= size;
        bytes = size;
        return head;
      }
      if (!put(head)) release(head, size);
    }
    return nullptr;
  }

  // Keeps pages of `bytes`. What would be too many bytes then is freed, earlier pages first.
  static void give_back(void* pages, size_t bytes) {
    kept_ += bytes;
    for (auto& slot : slots_) {
      if (bytes > kMostBytes || kept_ <= kMostBytes) break;
      if (Head* const head = empty(slot)) release(head, head->bytes);
    }
    if (kept_ > kMostBytes) return release(pages, bytes);
    lend_pages(pages, bytes);
    Head* const head = static_cast<Head*>(pages);
    head->bytes = bytes;  // also keeps this page from the system
    if (!put(head)) release(head, bytes);
  }

  static size_t kept_bytes() { return kept_; }

 private:
  struct Head {
    size_t bytes;
  };

  // Empties a slot and returns what was there, or null.
  static Head* empty(std::atomic<Head*>& slot) {
    return slot.load(std::memory_order_relaxed) ? slot.exchange(nullptr, std::memory_order_acquire) : nullptr;
  }

  static bool put(Head* head) {
    for (auto& slot : slots_)
      if (Head* none = nullptr; slot.compare_exchange_strong(none, head, std::memory_order_release)) return true;
    return false;
  }

  static void release(void* pages, size_t bytes) {
    kept_ -= bytes;
    resize_pages(pages, bytes, 0);
  }

  inline static std::atomic<Head*> slots_[64] = {};
  inline static std::atomic<size_t> kept_{0};
};

}  // namespace tokenweir
