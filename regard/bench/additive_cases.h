#pragma once
// Bahdanau's attention step as it is measured: a decoder's step over a batch of sources.

#include <cstdint>
#include <span>
#include <string>

#include "regard/base/thread_pool.h"

namespace regard::bench {

struct AdditiveCase {
  int64_t B, S, A, E;  ///< sentences, positions, widths of keys and of values
  bool ragged = true;  ///< lengths uniform in S/2..S, else all S

  std::string name() const;  ///< "B 64 S 30 A 256 E 512"
};

std::span<const AdditiveCase> additive_cases();

/// The best runs, and the multiply-adds of the forward step as operations: 2 (A + E) a position.
struct AdditiveTimes {
  double forward = 0, with_backward = 0;  ///< seconds
  double operations = 0;
};

/// Gradients of keys, values and v start from zero in every run, as those of autograd do.
AdditiveTimes measure(const AdditiveCase& step, double time, ThreadPool& pool);

}  // namespace regard::bench
