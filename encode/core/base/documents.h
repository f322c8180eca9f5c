// Packs documents into one buffer, one after the other, for a GPU.
//
// Finding the documents needs the GIL, because a str may have to create its UTF-8 form. Copying them does not, and is
// distributed to the thread pool. A thread is worth at least 2 MiB to copy, and a few threads fill the memory's bus.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace tokenweir {

class Documents {
 public:
  // The views must stay valid.
  explicit Documents(std::vector<std::string_view> views) : views_(std::move(views)) {
    offsets_.reserve(views_.size() + 1);
    int64_t at = 0;
    offsets_.push_back(at);
    for (const std::string_view view : views_) offsets_.push_back(at += static_cast<int64_t>(view.size()));
  }

  size_t size() const { return views_.size(); }
  std::string_view operator[](size_t i) const { return views_[i]; }

  // The start of each document in the concatenation, and the end of the last one.
  const std::vector<int64_t>& offsets() const { return offsets_; }

  // Copies the documents [first, last) to `to`, which has room for them; `threads` 0 chooses a number.
  void copy(size_t first, size_t last, uint8_t* to, size_t threads) const {
    const size_t start = static_cast<size_t>(offsets_[first]), n = static_cast<size_t>(offsets_[last]) - start;
    if (threads == 0) threads = std::clamp<size_t>(n / kThreadBytes, 1, std::min<size_t>(kThreads, machine_threads()));
    const size_t share = threads == 1 ? n : kShareBytes;  // threads that begin late take fewer
    std::atomic<size_t> next{0};
    ThreadPool::shared().run(threads - 1, [&] {
      for (size_t at; (at = next.fetch_add(share)) < n;)
        copy_bytes(start + at, start + std::min(at + share, n), to + at);
    });
  }

 private:
  static constexpr size_t kThreadBytes = 2 << 20, kShareBytes = 512 << 10, kThreads = 8;

  static size_t machine_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

  // Copies bytes [start, end) of the concatenation. Ranges may cut a document, so that threads have equal work.
  void copy_bytes(size_t start, size_t end, uint8_t* to) const {
    if (start == end) return;
    size_t i = static_cast<size_t>(std::upper_bound(offsets_.begin(), offsets_.end(), static_cast<int64_t>(start)) -
                                   offsets_.begin()) -
               1;
    for (; start < end; i++) {
      const std::string_view rest = views_[i].substr(start - static_cast<size_t>(offsets_[i]));
      const size_t n = std::min(rest.size(), end - start);
      if (n) std::memcpy(to, rest.data(), n);
      to += n;
      start += n;
    }
  }

  std::vector<std::string_view> views_;
  std::vector<int64_t> offsets_;
};

}  // namespace tokenweir
