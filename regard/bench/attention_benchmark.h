#pragma once
// `regard bench attention`: every case of exact, decoding and additive attention, as shares of what the
// machine can do, measured in the same run.

#include <functional>
#include <string>

namespace regard::bench {

/// What a line's rate counts and what its share refers to.
enum class Yardstick {
  products,  ///< GFLOP/s, of 512 cubed on one thread times the threads
  read,      ///< GB/s of the cache, of a plain read of it
};

struct Line {
  std::string name;
  double milliseconds = 0;
  double rate = 0;       ///< GFLOP/s or GB/s
  double yardstick = 0;  ///< the same of the yardstick, all threads together
  Yardstick of = Yardstick::products;

  double share() const { return rate / yardstick; }
};

struct AttentionBenchmark {
  int threads = 1;
  double seconds = 0.2;  ///< a case
  bool quick = false;    ///< only up to 1,024 positions, without masks and other extras
};

/// Calls `report` for each line as soon as it is measured. Causal and windows count the pairs that they keep.
/// The additive step counts its multiply-adds, with backward three times those of forward.
void bench_attention(const AttentionBenchmark& benchmark, const std::function<void(const Line&)>& report);

}  // namespace regard::bench
