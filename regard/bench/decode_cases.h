#pragma once
// Decoding as it is measured: few queries a head on a long cache, beside a plain read of the same memory.

#include <cstdint>
#include <span>
#include <string>

#include "regard/base/thread_pool.h"

namespace regard::bench {

struct DecodeCase {
  int64_t B, H, Hkv, S, D;  ///< items, heads of queries and of keys, positions, width
  int64_t page_size = 0;    ///< 0: contiguous
  int64_t T = 1;            ///< queries

  std::string name() const;  ///< "decode 1,8,4096,64", "decode 1,32/8,4096,128 queries 4 pages 16"
};

std::span<const DecodeCase> decode_cases();

/// The best runs of decoding and of the read, taken in turns.
struct DecodeTimes {
  double decode = 0, read = 0;  ///< seconds
  double bytes = 0;             ///< of the cache
};

/// With `bf16` the cache is stored so; all is computed in f32.
DecodeTimes measure(const DecodeCase& step, bool bf16, double time, ThreadPool& pool);

}  // namespace regard::bench
