#pragma once
// What kernels are measured by: how fast this machine multiplies matrices and reads memory.

#include <cstdint>
#include <vector>

namespace regard::bench {

/// GFLOP/s of regard/gemm at 512 x 512 x 512 on one thread, the best of some runs in about `time` seconds.
double product_peak(double time);

/// The sum of n words, in the widest vectors that the processor has: a plain read of memory.
uint64_t sum_of_words(const uint64_t* x, int64_t n);

/// n numbers of deviation 1, the same in every run.
std::vector<float> normal_numbers(int64_t n, uint64_t seed = 7);

}  // namespace regard::bench
