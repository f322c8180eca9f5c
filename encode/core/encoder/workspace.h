// Workspaces: the caches and buffers of one thread. And `share_out`, which distributes work to threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/span.h"
#include "base/thread_pool.h"
#include "encoder/piece_encoder.h"
#include "memory/id_buffer.h"
#include "models/model.h"
#include "pretokenizers/pretokenizer.h"

namespace tokenweir {

// The caches and buffers of one thread while it encodes; reused from call to call, because the caches stay warm.
struct Workspace {
  PieceCaches caches;
  std::unique_ptr<PieceCaches> unnormalized_caches[2];  // for text that is split before normalization: plain, guarded
  ModelScratch model;
  PreTokenizerScratch pre_tokenizer;
  IdBuffer ids;
  std::vector<Span> spans;                             // of each id in the original text, if asked for
  std::vector<std::pair<size_t, std::string>> called;  // the text of ids that are named by their text, if asked for
  std::vector<int32_t> words;                          // the number of each id's piece in its text, if asked for
  int32_t word = 0;                                    // the number of the next piece
  std::vector<Span> piece_spans;                       // of the ids of one piece
  size_t home = 0;                                     // its slot in the pool

  // Forgets the results of the last call.
  void clear() {
    ids.clear();
    spans.clear();
    called.clear();
    words.clear();
  }

  // Frees buffers that a long text has made larger than the next call is likely to need. Caches stay.
  void shrink() {
    if (ids.capacity() > kMaxKept) ids = IdBuffer();
    if (model.capacity() > kMaxKept) model = ModelScratch();
    if (pre_tokenizer.capacity() > kMaxKept) pre_tokenizer = PreTokenizerScratch();
    if (spans.capacity() > kMaxKept) spans = std::vector<Span>();
    if (words.capacity() > kMaxKept) words = std::vector<int32_t>();
    if (piece_spans.capacity() > kMaxKept) piece_spans = std::vector<Span>();
  }

  static constexpr size_t kMaxKept = 1 << 20;
};

// A lock-free pool of workspaces. Slots are claimed by atomic exchange, so a fork in mid-call costs the child one
// workspace, not a deadlock. Each workspace returns to its own slot, so that the threads of the next call get them in
// the same order.
class WorkspacePool {
 public:
  ~WorkspacePool() {
    for (auto& slot : slots_) delete slot.load();
  }

  std::unique_ptr<Workspace> take() {
    for (auto& slot : slots_)
      if (slot.load(std::memory_order_relaxed))
        if (Workspace* found = slot.exchange(nullptr, std::memory_order_acquire))
          return std::unique_ptr<Workspace>(found);
    auto made = std::make_unique<Workspace>();
    made->home = made_++;
    return made;
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    workspace->shrink();
    for (size_t i = 0; i < kSlots; i++) {
      Workspace* empty = nullptr;
      if (slots_[(workspace->home + i) % kSlots].compare_exchange_strong(empty, workspace.get(),
                                                                         std::memory_order_release)) {
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

// The number of CPUs.
inline size_t machine_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

// Calls `work(i, workspace, thread)` for each i below `n`, on up to `threads` threads, numbered from 0. Thread t of m
// begins at the index begin(t, m), takes the following ones, and skips those that others have begun. So a thread gets
// adjacent indices, and in the next call of the same kind the same ones, with a warm cache. The first thread uses the
// workspace `own`, unless it is null, and all others one from the pool. Throws the first failure; after it no call begins.
//
// The calling thread first calls `prepare(i)` for each i, and then `prepared()`. A call of work(i) follows prepare(i). The
// indices where threads begin are prepared first.
template <class Begin, class Work, class Prepare, class Prepared>
void share_out(WorkspacePool& pool, Workspace* own, size_t n, size_t threads, Begin&& begin, Work&& work,
               Prepare&& prepare, Prepared&& prepared) {
  enum State : uint8_t { kWaits, kIsReady, kHasBegun };
  constexpr std::chrono::microseconds kPoll{20};  // much less than most calls take
  const size_t most = std::max<size_t>(1, std::min(threads, n));
  const std::unique_ptr<std::atomic<State>[]> states(new std::atomic<State>[n]());
  std::atomic<size_t> comers{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&](auto&& action) {
    try {
      action();
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      failed = true;
    }
  };
  const auto each = [&] {
    guarded([&] {
      const size_t me = comers++;
      std::unique_ptr<Workspace> taken = own && me == 0 ? nullptr : pool.take();
      for (bool complete = false; !complete && !failed;) {
        complete = true;
        for (size_t k = 0, i = begin(me, most); k < n && !failed; k++, i = i + 1 < n ? i + 1 : 0) {
          State state = kIsReady;
          if (states[i].compare_exchange_strong(state, kHasBegun)) work(i, taken ? *taken : *own, me);
          complete &= state != kWaits;
        }
        if (!complete) std::this_thread::sleep_for(kPoll);
      }
      if (taken) pool.give_back(std::move(taken));
    });
  };
  ThreadPool::shared().run(most - 1, each, [&] {
    guarded([&] {
      for (size_t k = 0, left = n; left > 0 && !failed; k++)
        for (size_t thread = 0; thread < most; thread++) {
          const size_t i = begin(thread, most) + k;
          if (i >= (thread + 1 < most ? begin(thread + 1, most) : n)) continue;
          prepare(i);
          states[i] = kIsReady;
          left--;
        }
    });
    guarded(prepared);
  });
  if (failure) std::rethrow_exception(failure);
}

// The same without preparation.
template <class Begin, class Work>
void share_out(WorkspacePool& pool, Workspace* own, size_t n, size_t threads, Begin&& begin, Work&& work) {
  share_out(pool, own, n, threads, begin, work, [](size_t) {}, [] {});
}

}  // namespace tokenweir
