#pragma once
// The best of several runs: what a benchmark reports on a machine that others may use too.

#include <algorithm>
#include <chrono>

namespace regard::bench {

/// Seconds of one call.
template <class Run>
double seconds(const Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs `a` and `b` in turns, so that a machine that slows down slows both, for about `time` seconds and at
/// least five times; the best of each.
struct BestOfTwo {
  double a = 1e9, b = 1e9;
};
template <class A, class B>
BestOfTwo best_of(double time, const A& a, const B& b) {
  BestOfTwo best;
  a();
  b();
  double spent = 0;
  for (int n = 0; n < 5 || spent < time; ++n) {
    const double x = seconds(a), y = seconds(b);
    best = {std::min(best.a, x), std::min(best.b, y)};
    spent += x + y;
  }
  return best;
}

}  // namespace regard::bench
