#pragma once
// Exact attention as it is measured: the cases of docs/BENCHMARKS.md, f32 and bfloat16, forward and backward.

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "regard/base/thread_pool.h"

namespace regard::bench {

enum class Pass { forward, backward };

/// What a case has beside its shape.
enum class Extra { none, mask, bias, alibi, softcap, dropout, weights };

struct ExactCase {
  struct Variant {
    bool causal = false;
    int64_t window = -1;  ///< keys to the left; -1: all
    bool bf16 = false;    ///< operands and outputs; computed in f32
    Extra extra = Extra::none;
  };
  Pass pass;
  std::array<int64_t, 4> shape;  ///< B, H, T, D; as many keys as queries
  Variant variant{};

  /// "forward 1,8,1024,64 causal window 256 bf16 mask"
  std::string name() const;
  const char* pass_name() const { return pass == Pass::forward ? "forward" : "backward"; }
  const char* extra_name() const;  ///< empty for none
  /// Operations of the products over the pairs that causal and window keep: 4 D a pair forward, 10 D
  /// backward.
  double operations() const;
};

std::span<const ExactCase> exact_cases();

/// Seconds of the best run in about `time` seconds; backward alone, without the forward that it needs.
double measure(const ExactCase& exact, double time, ThreadPool& pool);

}  // namespace regard::bench
