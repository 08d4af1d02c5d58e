#pragma once
// Pooled memory: blocks are returned to the pool, not to the system,
// so that training asks for none after its first epoch.

#include <cstdint>
#include <memory>

namespace regard {

struct PoolStatistics {
  int64_t blocks_from_system = 0;  ///< how often the system was asked
  int64_t bytes_from_system = 0;
  int64_t bytes_in_use = 0;
  int64_t largest_bytes_in_use = 0;
};

/// `bytes` of memory aligned to 64 bytes (to 2 MiB from 2 MiB on, where huge pages are asked for),
/// content undefined. The block returns to the pool with the last reference.
/// Throws std::bad_alloc. Safe from several threads.
std::shared_ptr<void> allocate_pooled(int64_t bytes);

PoolStatistics pool_statistics();

}  // namespace regard
