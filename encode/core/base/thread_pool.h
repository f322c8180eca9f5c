// Threads that wait for work: waking one takes a few microseconds, making one some thirty.
//
// There is one pool for the process, made when it is first needed. A fork takes along no thread but the one that forks, so
// the child begins with a new pool; what the old one holds is lost to it. A thread that had nothing to do for some seconds
// ends, so that a process which no longer needs threads has none.
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

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace tokenweir {

class ThreadPool {
 public:
  static ThreadPool& shared() {
    ThreadPool* found = current_.load(std::memory_order_acquire);
    if (found) return *found;
    auto* made = new ThreadPool;  // never deleted: its threads may outlive all that a program ends with
    if (current_.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return *made;
    delete made;
    return *found;
  }

  // Calls `work`, which throws nothing, on this thread and at the same time on up to `others` more, and returns when all
  // calls have. A thread that comes late does not begin.
  template <class Work>
  void run(size_t others, const Work& work) {
    if (others == 0) return work();
    Job job{[](const void* work) { (*static_cast<const Work*>(work))(); }, &work, others};
    offer(job);
    work();
    withdraw(job);
  }

 private:
  static constexpr size_t kMost = 256;  // threads
  static constexpr std::chrono::seconds kPatience{5};

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
        while (idle_ < wanted_ && threads_ < kMost) {
          std::thread([this] { serve(); }).detach();
          threads_++;
          idle_++;
        }
      } catch (const std::exception&) {  // no more threads are to be had: fewer do the same
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

  // What each thread does.
  void serve() {
    std::unique_lock lock(mutex_);
    while (ready_.wait_for(lock, kPatience, [&] { return !jobs_.empty(); })) {
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
#if defined(__unix__) || defined(__APPLE__)
  inline static const int after_fork_ = pthread_atfork(nullptr, nullptr, [] { current_.store(nullptr); });
#endif

  std::mutex mutex_;
  std::condition_variable ready_, done_;
  std::deque<Job*> jobs_;  // those that want more threads
  size_t wanted_ = 0;      // threads, of all of them
  size_t threads_ = 0, idle_ = 0;
};

}  // namespace tokenweir
