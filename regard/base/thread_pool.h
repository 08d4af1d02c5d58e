#pragma once
// A small pool of threads with one operation: run fixed parts of a piece of work,
// the caller's thread among the workers.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace regard {

/// Threads that wait for work. The partition of the work is the caller's
/// and never depends on the number of threads, so results do not either.
/// Safe from several threads; a call from inside a part runs its parts on the calling thread.
class ThreadPool {
 public:
  /// REQUIRES threads >= 1. One thread means that the caller does all work.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls part(0), ..., part(parts - 1), each once, and returns when all are done. If parts throw, the
  /// exception of the lowest part is rethrown after all have ended.
  void parallel_for(int64_t parts, const std::function<void(int64_t)>& part);

 private:
  struct Job;
  void work();
  static void run(Job& job);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<Job> job_;  // the one that workers should join; guarded by mutex_
  uint64_t generation_ = 0;
  bool stop_ = false;
};

/// The processors that this process may use (the affinity mask), at least 1.
int available_processors();

}  // namespace regard
