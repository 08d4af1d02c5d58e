// A step of additive attention, forward, and forward with backward, in the shapes of additive_torch.py: one
// JSON object a line, the best of several runs in milliseconds. "ragged": lengths are uniform in S/2..S, as
// there; "full": all S.
//
//   additive_bench [seconds a case, 0.3 unless given]

#include <cstdio>
#include <cstdlib>

#include "regard/bench/additive_cases.h"

namespace {

void run(const regard::bench::AdditiveCase& step, int threads, double time) {
  regard::ThreadPool pool(threads);
  const regard::bench::AdditiveTimes best = measure(step, time, pool);
  std::printf(
      "{\"system\": \"regard\", \"bench\": \"additive\", \"b\": %d, \"s\": %d, \"a\": %d, \"e\": %d, "
      "\"threads\": %d, \"lengths\": \"%s\", \"forward_ms\": %.4f, \"forward_backward_ms\": %.4f}\n",
      static_cast<int>(step.B), static_cast<int>(step.S), static_cast<int>(step.A), static_cast<int>(step.E),
      threads, step.ragged ? "ragged" : "full", best.forward * 1e3, best.with_backward * 1e3);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double time = argc > 1 ? std::atof(argv[1]) : 0.3;
  for (const int threads : {1, 2})
    for (const bool ragged : {true, false})
      for (regard::bench::AdditiveCase step : regard::bench::additive_cases()) {
        step.ragged = ragged;
        run(step, threads, time);
      }
}
