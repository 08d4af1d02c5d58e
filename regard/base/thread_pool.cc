#include "regard/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>

namespace regard {

struct ThreadPool::Job {
  const std::function<void(int64_t)>* part = nullptr;
  int64_t parts = 0;
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::condition_variable done;
  int64_t finished = 0;          // guarded by mutex
  int64_t failed_part = 0;       // guarded by mutex
  std::exception_ptr exception;  // guarded by mutex
};

namespace {
thread_local bool inside_part = false;
}

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::work() {
  uint64_t seen = 0;
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      job = job_;
    }
    if (job) run(*job);
  }
}

void ThreadPool::run(Job& job) {
  const bool outer = inside_part;
  inside_part = true;
  for (int64_t i = job.next++; i < job.parts; i = job.next++) {
    std::exception_ptr exception;
    try {
      (*job.part)(i);
    } catch (...) {
      exception = std::current_exception();
    }
    const std::lock_guard lock(job.mutex);
    if (exception && (!job.exception || i < job.failed_part)) {
      job.exception = exception;
      job.failed_part = i;
    }
    if (++job.finished == job.parts) job.done.notify_all();
  }
  inside_part = outer;
}

void ThreadPool::parallel_for(int64_t parts, const std::function<void(int64_t)>& part) {
  if (parts <= 0) return;
  auto job = std::make_shared<Job>();
  job->part = &part;
  job->parts = parts;
  if (parts > 1 && !workers_.empty() && !inside_part) {
    {
      const std::lock_guard lock(mutex_);
      job_ = job;
      ++generation_;
    }
    wake_.notify_all();
  }
  run(*job);
  std::unique_lock lock(job->mutex);
  job->done.wait(lock, [&] { return job->finished == job->parts; });
  if (job->exception) std::rethrow_exception(job->exception);
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace regard
