// A pool of idle threads: waking one is several times cheaper than starting one.
//
// The process has one pool, made at first use. After a fork only the forking thread exists, so the child makes a new
// pool and leaks the old one. A thread that is idle for some seconds ends.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/platform.h"

namespace tokenweir {

class ThreadPool {
 public:
  static ThreadPool& shared() {
    ThreadPool* found = current_.load(std::memory_order_acquire);
    if (found) return *found;
    auto* made = new ThreadPool;  // never deleted: its threads may outlive static destructors
    if (current_.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
    delete made;
    return *found;
  }

  // Calls `work`, which must not throw, on this thread and concurrently on up to `others` more; returns when all calls
  // have. Threads that are not available by then do not begin. This thread calls `before`, which must not throw either,
  // before its own `work`, while the others work.
  template <class Work, class Before>
  void run(size_t others, const Work& work, Before&& before) {
    Job job{[](const void* work) { (*static_cast<const Work*>(work))(); }, &work, others};
    if (others > 0) offer(job);
    before();
    work();
    if (others > 0) withdraw(job);
  }

  template <class Work>
  void run(size_t others, const Work& work) {
    run(others, work, [] {});
  }

 private:
  static constexpr size_t kMaxThreads = 256;  // threads
  static constexpr std::chrono::seconds kIdleTimeout{5};

  struct Job {
    void (*call)(const void*);
    const void* work;
    size_t wanted;  // threads that may still begin
    size_t running = 0;
  };

  ThreadPool() = default;

  void offer(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(&job);
      wanted_ += job.wanted;
      try {
        while (idle_ < wanted_ && threads_ < kMaxThreads) {
          std::thread([this] { serve(); }).detach();
          threads_++;
          idle_++;
        }
      } catch (const std::exception&) {  // the system has no more threads: fewer do the same work
      }
    }
    ready_.notify_all();
  }

  void withdraw(Job& job) {
    std::unique_lock lock(mutex_);
    wanted_ -= job.wanted;
    if (job.wanted > 0) jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    done_.wait(lock, [&] { return job.running == 0; });
  }

  // The main loop of a thread.
  void serve() {
    std::unique_lock lock(mutex_);
    while (ready_.wait_for(lock, kIdleTimeout, [&] { return !jobs_.empty(); })) {
      Job& job = *jobs_.front();
      if (--job.wanted == 0) jobs_.pop_front();
      wanted_--;
      job.running++;
      idle_--;
      lock.unlock();
      job.call(job.work);
      lock.lock();
      idle_++;
      if (--job.running == 0) done_.notify_all();
    }
    idle_--;
    threads_--;
  }

  inline static std::atomic<ThreadPool*> current_{nullptr};
  inline static const int after_fork_ = call_in_forked_child([] { current_.store(nullptr); });

  std::mutex mutex_;
  std::condition_variable ready_, done_;
  std::deque<Job*> jobs_;  // jobs that want more threads
  size_t wanted_ = 0;      // the number of threads that all jobs want
  size_t threads_ = 0, idle_ = 0;
};

}  // namespace tokenweir
