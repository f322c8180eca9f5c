// What a thread needs while it encodes, and the work that several threads share.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/id_buffer.h"
#include "base/span.h"
#include "base/thread_pool.h"
#include "encoder/piece_encoder.h"
#include "models/model.h"
#include "pretokenizers/pretokenizer.h"

namespace tokenweir {

// Everything that one thread needs while it encodes; reused from call to call for the sake of the cache.
struct Workspace {
  SeenPieces seen;
  std::unique_ptr<SeenPieces> seen_stretches[2];  // of text before the normalizer, plain and guarded
  ModelScratch model;
  PreTokenizerScratch pre_tokenizer;
  IdBuffer ids;
  std::vector<Span> spans;        // of each id in the original text, if asked for
  std::vector<std::pair<size_t, std::string>> called;  // the ids that go by a text instead of their names, likewise
  std::vector<Span> piece_spans;  // of the ids of one piece

  // Gives up what a long text has left behind that is more than worth keeping for the next call; not the cache.
  void shrink() {
    if (ids.capacity() > kMaxKept) ids = IdBuffer();
    if (model.capacity() > kMaxKept) model = ModelScratch();
    if (pre_tokenizer.capacity() > kMaxKept) pre_tokenizer = PreTokenizerScratch();
    if (spans.capacity() > kMaxKept) spans = std::vector<Span>();
    if (piece_spans.capacity() > kMaxKept) piece_spans = std::vector<Span>();
  }

  static constexpr size_t kMaxKept = 1 << 20;
};

// Hands out workspaces. Slots are claimed by exchange, so a fork in mid-call costs the child one workspace, not a lock.
class WorkspacePool {
 public:
  ~WorkspacePool() {
    for (auto& slot : slots_) delete slot.load();
  }

  std::unique_ptr<Workspace> take() {
    for (auto& slot : slots_)
      if (slot.load(std::memory_order_relaxed))
        if (Workspace* found = slot.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Workspace>(found);
    return std::make_unique<Workspace>();
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    workspace->shrink();
    for (auto& slot : slots_) {
      Workspace* empty = nullptr;
      if (slot.compare_exchange_strong(empty, workspace.get(), std::memory_order_release)) {
        workspace.release();
        return;
      }
    }
  }

 private:
  std::atomic<Workspace*> slots_[64] = {};
};

// How many threads the machine has for us.
inline size_t machine_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// Calls `work(i, workspace)` for each i below `n`, in order, on up to `threads` threads, which take turns; each has a
// workspace. Throws the first failure, after which no call begins.
template <class Work>
void take_turns(WorkspacePool& pool, size_t n, size_t threads, Work&& work) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto each = [&] {
    try {
      std::unique_ptr<Workspace> w = pool.take();
      for (size_t i; (i = next++) < n;) work(i, *w);
      pool.give_back(std::move(w));
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = n;
    }
  };
  ThreadPool::shared().run(std::max<size_t>(1, std::min(threads, n)) - 1, each);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tokenweir
