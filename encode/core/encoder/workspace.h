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
  size_t home = 0;                // its slot in the pool

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

// Hands out workspaces. Slots are claimed by exchange, so a fork in mid-call costs the child one workspace, not a lock. Each
// goes back to its own slot, so that the threads of the next call get them in the same order.
class WorkspacePool {
 public:
  ~WorkspacePool() {
    for (auto& slot : slots_) delete slot.load();
  }

  std::unique_ptr<Workspace> take() {
    for (auto& slot : slots_)
      if (slot.load(std::memory_order_relaxed))
        if (Workspace* found = slot.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Workspace>(found);
    auto made = std::make_unique<Workspace>();
    made->home = made_++;
    return made;
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    workspace->shrink();
    for (size_t i = 0; i < kSlots; i++) {
      Workspace* empty = nullptr;
      if (slots_[(workspace->home + i) % kSlots].compare_exchange_strong(empty, workspace.get(), std::memory_order_release)) {
        workspace.release();
        return;
      }
    }
  }

 private:
  static constexpr size_t kSlots = 64;

  std::atomic<Workspace*> slots_[kSlots] = {};
  std::atomic<size_t> made_{0};
};

// How many threads the machine has for us.
inline size_t machine_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// Calls `work(i, workspace)` for each i below `n` on up to `threads` threads. Each begins at a number of its own and goes on
// from there, past what others have begun. So its numbers are neighbours, and in a later call of the same kind they are the
// same ones, with a workspace that has seen them. The first thread has the workspace `own`, if there is one, and all others
// one from the pool. Throws the first failure, after which no call begins.
template <class Work>
void share_out(WorkspacePool& pool, Workspace* own, size_t n, size_t threads, Work&& work) {
  const size_t most = std::max<size_t>(1, std::min(threads, n));
  const std::unique_ptr<std::atomic<bool>[]> begun(new std::atomic<bool>[n]());
  std::atomic<size_t> comers{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto each = [&] {
    try {
      const size_t me = comers++;
      std::unique_ptr<Workspace> taken = own && me == 0 ? nullptr : pool.take();
      for (size_t k = 0, i = n * me / most; k < n && !failed; k++, i = i + 1 < n ? i + 1 : 0)
        if (!begun[i].exchange(true)) work(i, taken ? *taken : *own);
      if (taken) pool.give_back(std::move(taken));
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      failed = true;
    }
  };
  ThreadPool::shared().run(most - 1, each);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tokenweir
