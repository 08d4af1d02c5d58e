#include "regard/tensor/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace regard {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kSmall = int64_t{1} << 20;  // below this any free block will do

/// Sizes are rounded up to an eighth of their power of two,
/// so that batches of nearly equal shape share blocks.
int64_t rounded(int64_t bytes) {
  if (bytes <= 512) return 512;
  int64_t power = 512;
  while (power * 2 < bytes) power *= 2;
  const int64_t step = std::max<int64_t>(power / 8, 64);
  return (bytes + step - 1) / step * step;
}

class Pool {
 public:
  void* take(int64_t bytes, int64_t& size) {
    size = rounded(bytes);
    {
      const std::lock_guard lock(mutex_);
      const auto block = free_.lower_bound(size);
      if (block != free_.end() && block->first <= std::max(4 * size, kSmall)) {
        size = block->first;
        void* memory = block->second;
        free_.erase(block);
        count_use(size);
        return memory;
      }
    }
    const int64_t alignment = size >= kHugePage ? kHugePage : 64;
    void* memory = nullptr;
    if (::posix_memalign(&memory, static_cast<size_t>(alignment), static_cast<size_t>(size)) != 0)
      throw std::bad_alloc();
    if (size >= kHugePage) ::madvise(memory, static_cast<size_t>(size), MADV_HUGEPAGE);
    const std::lock_guard lock(mutex_);
    ++statistics_.blocks_from_system;
    statistics_.bytes_from_system += size;
    count_use(size);
    return memory;
  }

  void give_back(void* memory, int64_t size) {
    const std::lock_guard lock(mutex_);
    statistics_.bytes_in_use -= size;
    free_.emplace(size, memory);
  }

  PoolStatistics statistics() {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  void count_use(int64_t size) {
    statistics_.bytes_in_use += size;
    statistics_.largest_bytes_in_use = std::max(statistics_.largest_bytes_in_use, statistics_.bytes_in_use);
  }

  std::mutex mutex_;
  std::multimap<int64_t, void*> free_;
  PoolStatistics statistics_;
};

/// Never destroyed: tensors with static lifetime may outlive any order of destruction.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

std::shared_ptr<void> allocate_pooled(int64_t bytes) {
  int64_t size = 0;
  void* memory = pool().take(bytes, size);
  return {memory, [size](void* p) { pool().give_back(p, size); }};
}

PoolStatistics pool_statistics() { return pool().statistics(); }

}  // namespace regard
