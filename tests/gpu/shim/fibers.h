// Runs the blocks of a CUDA grid on one CPU thread: a fiber for each CUDA thread, blocks one after the other.
//
// A fiber runs until it has to wait for others, then a random one that need not wait resumes; the order comes from a
// seed, and so does that of the blocks. Shared memory is filled with random bytes before each block. What breaks a rule
// is an error with the kernel's line: a barrier that not all threads reach, or at different lines; a warp-wide operation
// whose lanes disagree on it or on its mask, or one of which has returned. (Hardware is more lenient with threads
// that have returned.) Between two places where they wait, fibers do not run at once, so races are found only by order;
// caches, memory ordering and the amount of shared memory are not modelled.
//
// Contexts are made by ucontext and switched by setjmp, which spares two system calls a switch.
#pragma once

#include <setjmp.h>
#include <stdint.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shim {

struct Dim {
  unsigned x = 0, y = 0, z = 0;
};

constexpr unsigned kWarp = 32;

// A warp-wide operation, for which the lanes of `mask` wait for one another.
struct Meeting {
  const char* name;
  int line;
  unsigned mask, arrived = 0;
  uint64_t values[kWarp] = {};  // by lane
};

struct Fiber {
  unsigned thread = 0;
  std::unique_ptr<char[]> stack;
  ucontext_t first;
  jmp_buf at;
  bool begun = false;     // `at` holds
  bool returned = false;  // from the kernel
  int barrier = 0;        // the line at which it waits for the block
  std::shared_ptr<Meeting> meeting;  // that it waits for
};

class Grid {
 public:
  Dim thread, block, block_size, grid_size;
  uint64_t barriers = 0;  // that blocks have met at
  uint64_t passed = 0;    // the same, of which threads have gone on

  // Runs `kernel` in all threads; what broke a rule, or nothing.
  std::string run(unsigned n_blocks, unsigned n_threads, uint64_t seed, std::function<void()> kernel) {
    if (n_blocks == 0 || n_threads == 0 || n_threads > 1024)
      return "a grid of " + std::to_string(n_blocks) + " blocks of " + std::to_string(n_threads) + " threads";
    kernel_ = std::move(kernel);
    error_.clear();
    random_ = seed * 0x9E3779B97F4A7C15ull + 0x2545F4914F6CDD1Dull;
    if (random_ == 0) random_ = 1;
    block_size = {n_threads, 1, 1};
    grid_size = {n_blocks, 1, 1};
    while (fibers_.size() < n_threads) fibers_.push_back(std::make_unique<Fiber>());
    std::vector<unsigned> blocks(n_blocks);
    for (unsigned i = 0; i < n_blocks; i++) blocks[i] = i;
    for (unsigned i = n_blocks; i > 1; i--) std::swap(blocks[i - 1], blocks[random() % i]);
    for (const unsigned b : blocks) {
      block = {b, 0, 0};
      run_block();
      if (!error_.empty()) {
        fibers_.clear();  // they are somewhere in the middle
        return "block " + std::to_string(b) + ": " + error_;
      }
    }
    return {};
  }

  // Waits for the whole block; then `combine(a, b)` of what all brought.
  template <class Combine>
  uint64_t meet_block(int line, uint64_t value, Combine&& combine) {
    self_->barrier = line;
    barriers += arrived_ == 0;
    brought_ = arrived_++ == 0 ? value : combine(brought_, value);
    wait();
    return gathered_;
  }

  // Waits for the lanes of `mask`; what each lane brought.
  const uint64_t* meet_warp(const char* name, int line, unsigned mask, uint64_t value) {
    const unsigned lane = self_->thread % kWarp;
    if (!(mask >> lane & 1)) fail(line, std::string(name) + " by lane " + std::to_string(lane) + ", which its mask lacks");
    self_->meeting = join(name, line, mask);
    Meeting& meeting = *self_->meeting;
    meeting.values[lane] = value;
    meeting.arrived |= 1u << lane;
    if (meeting.arrived == mask) {
      auto& open = meetings_[self_->thread / kWarp];
      open.erase(std::find(open.begin(), open.end(), self_->meeting));
      for (unsigned i = 0; i < kWarp; i++)
        if (i != lane && mask >> i & 1) let_run(self_->thread - lane + i);
      step_aside();
    } else {
      wait();
    }
    met_ = std::move(self_->meeting);
    return met_->values;
  }

  // Now and then lets others go first.
  void step_aside() {
    if (random() % 4) return;
    let_run(self_->thread);
    wait();
  }

  // Changes a value as one step, after others may have gone first; the value before.
  template <class T, class Change>
  T change(T* p, Change&& to) {
    step_aside();
    const T before = *p;
    *p = to(before);
    return before;
  }

  void fence() {}  // fibers see what others wrote

  // Ends the grid with an error; does not return.
  [[noreturn]] void fail(int line, const std::string& what) {
    error_ = "line " + std::to_string(line) + ": " + what;
    _longjmp(scheduler_, 1);
  }

  unsigned lane() const { return self_->thread % kWarp; }

  uint64_t random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ >> 11;
  }

 private:
  static constexpr size_t kStack = 64 << 10;

  std::function<void()> kernel_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<unsigned> runnable_;
  std::vector<unsigned> late_;  // can run, but only when no other fiber can
  unsigned late_warp_ = 0;      // whose lanes may be late
  Fiber* self_ = nullptr;
  jmp_buf scheduler_;
  std::string error_;
  uint64_t random_ = 1;
  std::vector<std::shared_ptr<Meeting>> meetings_[1024 / kWarp];  // by warp: those that not all have come to
  std::shared_ptr<Meeting> met_;  // the last one, until its values have been read
  unsigned arrived_ = 0;   // at the barrier
  uint64_t brought_ = 0;   // what they brought there, combined
  uint64_t gathered_ = 0;  // at the barrier before, by all

  // The meeting of the lanes of `mask` in this warp, which the first of them opens.
  std::shared_ptr<Meeting> join(const char* name, int line, unsigned mask) {
    auto& open = meetings_[self_->thread / kWarp];
    for (const auto& meeting : open) {
      if (!(meeting->mask & mask)) continue;
      if (std::strcmp(meeting->name, name) != 0 || meeting->mask != mask || meeting->line != line)
        fail(line, std::string(name) + " meets " + meeting->name + " of line " + std::to_string(meeting->line));
      return meeting;
    }
    const unsigned first = self_->thread / kWarp * kWarp;
    for (unsigned i = 0; i < kWarp; i++) {
      if (!(mask >> i & 1)) continue;
      if (first + i >= block_size.x) fail(line, std::string(name) + " with lane " + std::to_string(i) + " of a shorter warp");
      if (fibers_[first + i]->returned)
        fail(line, std::string(name) + " with lane " + std::to_string(i) + ", which has returned");
    }
    open.push_back(std::make_shared<Meeting>(Meeting{name, line, mask}));
    return open.back();
  }

  void run_block() {
    fill_shared_memory();
    for (auto& open : meetings_) open.clear();
    arrived_ = 0;
    for (unsigned i = 0; i < block_size.x; i++) {
      Fiber& fiber = *fibers_[i];
      fiber.thread = i;
      fiber.returned = false;
      fiber.barrier = 0;
      fiber.meeting.reset();
    }
    for (;;) {
      late_warp_ = static_cast<unsigned>(random() % (2 * block_size.x / kWarp + 1));
      for (unsigned i = 0; i < block_size.x; i++) let_run(i);
      while (!runnable_.empty() || !late_.empty()) {
        if (runnable_.empty()) {
          std::swap(runnable_, late_);
          late_warp_ = block_size.x;
        }
        const size_t i = random() % runnable_.size();
        std::swap(runnable_[i], runnable_.back());
        self_ = fibers_[runnable_.back()].get();
        runnable_.pop_back();
        thread = {self_->thread, 0, 0};
        enter();
        if (!error_.empty()) return runnable_.clear(), late_.clear();
      }
      unsigned returned = 0, waiting = 0;
      const Fiber* early = nullptr;
      for (unsigned i = 0; i < block_size.x; i++) {
        const Fiber& fiber = *fibers_[i];
        returned += fiber.returned;
        if (fiber.meeting) {
          error_ = "line " + std::to_string(fiber.meeting->line) + ": " + fiber.meeting->name + " waits for ever";
          return;
        }
        if (fiber.barrier == 0) continue;
        waiting++;
        if (early && early->barrier != fiber.barrier) {
          error_ = "line " + std::to_string(early->barrier) + ": a barrier, while other threads are at that of line " +
                   std::to_string(fiber.barrier);
          return;
        }
        early = &fiber;
      }
      if (returned == block_size.x) return;
      if (waiting != block_size.x) {
        error_ = "line " + std::to_string(early->barrier) + ": a barrier that " + std::to_string(waiting) + " of " +
                 std::to_string(block_size.x) + " threads reach";
        return;
      }
      gathered_ = brought_;
      passed++;
      arrived_ = 0;
      for (unsigned i = 0; i < block_size.x; i++) fibers_[i]->barrier = 0;
    }
  }

  // One warp may be as late as it can be: what it has yet to read or write then meets what others do next.
  void let_run(unsigned thread) { (thread / kWarp == late_warp_ ? late_ : runnable_).push_back(thread); }

  // Lets `self_` run until it waits or returns from the kernel.
  __attribute__((noinline)) void enter() {
    if (_setjmp(scheduler_)) return;
    if (self_->begun) _longjmp(self_->at, 1);
    self_->begun = true;
    self_->stack.reset(new char[kStack]);
    getcontext(&self_->first);
    self_->first.uc_stack.ss_sp = self_->stack.get();
    self_->first.uc_stack.ss_size = kStack;
    self_->first.uc_link = nullptr;
    makecontext(&self_->first, live, 0);
    setcontext(&self_->first);
  }

  // Back to the scheduler, until it lets this fiber go on.
  __attribute__((noinline)) void wait() {
    if (_setjmp(self_->at) == 0) _longjmp(scheduler_, 1);
  }

  static void live();  // a fiber: one kernel after the other

  void fill_shared_memory();
};

inline Grid grid;

inline void Grid::live() {
  for (;;) {
    grid.kernel_();
    grid.self_->returned = true;
    grid.wait();
  }
}

}  // namespace shim

// The linker's names for the section that `__shared__` variables lie in; absent without such variables.
extern "C" char __start_shim_shared[] __attribute__((weak));
extern "C" char __stop_shim_shared[] __attribute__((weak));

inline void shim::Grid::fill_shared_memory() {
  for (char* p = __start_shim_shared; p + 8 <= __stop_shim_shared; p += 8) {
    const uint64_t bits = random() * 0x9E3779B97F4A7C15ull;
    std::memcpy(p, &bits, 8);
  }
}
