#pragma once
// The best of several runs: what a benchmark reports on a machine that others may use too.

#include <time.h>

#include <algorithm>

namespace regard::bench {

/// Which seconds count: those of the clock, or those that the calling thread computed. The second tells less
/// of other work on the machine; it is for runs on one thread.
enum class Clock { wall, thread };

/// Seconds of one call.
template <class Run>
double seconds(const Run& run, Clock clock = Clock::wall) {
  const auto now = [&] {
    timespec t{};
    clock_gettime(clock == Clock::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double begin = now();
  run();
  return now() - begin;
}

/// The fastest of the runs that fit into about `time` seconds, at least five.
template <class Run>
double best(double time, const Run& run, Clock clock = Clock::wall) {
  double fastest = 1e9, spent = 0;
  for (int n = 0; n < 5 || spent < time; ++n) {
    const double t = seconds(run, clock);
    fastest = std::min(fastest, t);
    spent += t;
  }
  return fastest;
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
