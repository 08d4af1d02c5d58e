#pragma once
// Adam with gradient clipping over the gradients of several shards.

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/tape.h"
#include "regard/base/thread_pool.h"
#include "regard/nn/parameter.h"

namespace regard::training {

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double decay = 0;  ///< decoupled weight decay
  double clip = 1;   ///< largest norm of all gradients together; 0: no clipping
};

/// Kingma and Ba (2015), arXiv:1412.6980, algorithm 1.
/// The result depends on the shards and their order, not on threads. For one thread at a time.
class Adam {
 public:
  Adam(std::vector<nn::Parameter> parameters, const AdamOptions& options);

  /// One update. shards[i] holds the gradients of shard i (its leaves are the parameters);
  /// they are summed in order into shard 0's tensors. `step` counts from 1.
  /// Returns the norm before clipping; if it is not finite nothing is updated.
  double update(std::span<autograd::Tape* const> shards, double rate, int64_t step, ThreadPool& pool);

  /// The moments, named "first.NAME" and "second.NAME": with the parameters, the optimiser's whole state.
  std::vector<nn::Parameter> moments() const;
  /// Throws DataError if a moment is missing or has another shape.
  void load_moments(std::span<const nn::Parameter> moments);

 private:
  struct Slot {
    nn::Parameter parameter;
    Tensor first, second;
    Tensor table;                  // the dense gradient of a table, zero but for `touched`
    std::vector<int32_t> touched;  // rows of it that the last update wrote
    Tensor gradient;               // during update(): the sum over shards
  };
  static void sum_shards(Slot& slot, std::span<autograd::Tape* const> shards);

  std::vector<Slot> slots_;
  AdamOptions options_;
};

/// peak * min(step / warm_up, sqrt(warm_up / step)): linear warm-up,
/// then the inverse square root (Vaswani et al. 2017, 5.3).
double learning_rate(double peak, int64_t warm_up, int64_t step);

}  // namespace regard::training
