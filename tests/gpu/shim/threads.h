// Runs the blocks of a CUDA grid with a real thread for each CUDA thread, so that ThreadSanitizer sees what orders them.
//
// Only what CUDA orders is ordered here: `__syncthreads` and `__syncwarp` are. Shuffles, votes and reductions
// of a warp exchange values but order no memory. An atomic operation orders memory only after a `__threadfence` of its
// thread. So a kernel that relies on more is reported as a race. Blocks of one library run one after the other, since they
// share its variables; several copies of the library run blocks at once (`share_blocks`). A warp-wide operation wants
// all its lanes. What breaks a rule ends the process.
#pragma once

#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace shim {

struct Dim {
  unsigned x = 0, y = 0, z = 0;
};

constexpr unsigned kWarp = 32;

// A place where threads wait for one another. Waiting is by futex, which ThreadSanitizer takes for no ordering.
class alignas(64) Meet {
 public:
  // `ordered`: what each did before is seen by all after it.
  void wait(unsigned threads, bool ordered) {
    const uint32_t here = generation_.load(std::memory_order_relaxed);
    const auto both = ordered ? std::memory_order_acq_rel : std::memory_order_relaxed;
    if (arrived_.fetch_add(1, both) + 1 == threads) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(here + 1, ordered ? std::memory_order_release : std::memory_order_relaxed);
      futex(FUTEX_WAKE_PRIVATE, INT_MAX);
      return;
    }
    while (generation_.load(ordered ? std::memory_order_acquire : std::memory_order_relaxed) == here)
      futex(FUTEX_WAIT_PRIVATE, here);
  }

 private:
  void futex(int what, uint32_t value) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&generation_), what, value, nullptr, nullptr, 0);
  }

  std::atomic<uint32_t> arrived_{0}, generation_{0};
};

// The values that threads bring to a meeting.
template <unsigned N>
struct Exchange {
  Meet in, out;
  std::atomic<uint64_t> values[N];
};

struct Warp {
  Meet sync;
  Exchange<kWarp> exchange;
};

inline Exchange<1024> block_exchange;
inline Warp warps[1024 / kWarp];
inline unsigned first_block = 0, block_step = 1;  // the blocks that this copy of the library runs

// A CUDA thread, and how its grid is run.
class Grid {
 public:
  Dim thread, block, block_size, grid_size;

  std::string run(unsigned n_blocks, unsigned n_threads, uint64_t, const std::function<void()>& kernel) {
    if (n_blocks == 0 || n_threads == 0 || n_threads > 1024 || n_threads % kWarp)
      return "a grid of " + std::to_string(n_blocks) + " blocks of " + std::to_string(n_threads) + " threads";
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    std::vector<pthread_t> threads(n_threads);
    std::vector<Job> jobs(n_threads);
    for (unsigned b = first_block; b < n_blocks; b += block_step) {
      for (unsigned i = 0; i < n_threads; i++) {
        jobs[i] = {&kernel, {i, 0, 0}, {b, 0, 0}, {n_threads, 1, 1}, {n_blocks, 1, 1}};
        if (pthread_create(&threads[i], &attributes, begin, &jobs[i])) return "a thread cannot be had";
      }
      for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    }
    pthread_attr_destroy(&attributes);
    return {};
  }

  // Waits for the whole block; then `combine(a, b)` of what all brought.
  template <class Combine>
  uint64_t meet_block(int, uint64_t value, Combine&& combine) {
    block_exchange.values[thread.x].store(value, std::memory_order_relaxed);
    block_exchange.in.wait(block_size.x, true);
    uint64_t all = block_exchange.values[0].load(std::memory_order_relaxed);
    for (unsigned i = 1; i < block_size.x; i++)
      all = combine(all, block_exchange.values[i].load(std::memory_order_relaxed));
    block_exchange.out.wait(block_size.x, false);
    return all;
  }

  // Waits for the lanes of `mask`; what each lane brought.
  const uint64_t* meet_warp(const char* name, int line, unsigned mask, uint64_t value) {
    if (mask != 0xFFFFFFFF) fail(line, std::string(name) + " of a part of a warp");
    Warp& warp = warps[thread.x / kWarp];
    if (std::string(name) == "__syncwarp") {
      warp.sync.wait(kWarp, true);
      return seen_;
    }
    warp.exchange.values[lane()].store(value, std::memory_order_relaxed);
    warp.exchange.in.wait(kWarp, false);
    for (unsigned i = 0; i < kWarp; i++) seen_[i] = warp.exchange.values[i].load(std::memory_order_relaxed);
    warp.exchange.out.wait(kWarp, false);
    return seen_;
  }

  // Changes a value as one step; the value before.
  template <class T, class Change>
  T change(T* p, Change&& to) {
    const int order = fenced_ ? __ATOMIC_ACQ_REL : __ATOMIC_RELAXED;
    T before = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &before, to(before), false, order, __ATOMIC_RELAXED)) {
    }
    return before;
  }

  void fence() { fenced_ = true; }

  [[noreturn]] void fail(int line, const std::string& what) {
    std::fprintf(stderr, "line %d: %s\n", line, what.c_str());
    std::abort();
  }

  unsigned lane() const { return thread.x % kWarp; }

 private:
  struct Job {
    const std::function<void()>* kernel;
    Dim thread, block, block_size, grid_size;
  };

  static void* begin(void* p);

  uint64_t seen_[kWarp] = {};
  bool fenced_ = false;
};

inline thread_local Grid grid;

inline void* Grid::begin(void* p) {
  const Job& job = *static_cast<const Job*>(p);
  grid.thread = job.thread;
  grid.block = job.block;
  grid.block_size = job.block_size;
  grid.grid_size = job.grid_size;
  (*job.kernel)();
  return nullptr;
}

}  // namespace shim

// Has this copy of the library run every `step`-th block from `first` on.
extern "C" __attribute__((visibility("default"))) void share_blocks(unsigned first, unsigned step) {
  shim::first_block = first;
  shim::block_step = step;
}
