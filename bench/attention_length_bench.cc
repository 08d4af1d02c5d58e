// Attention against the length of its sequence: one head of width 64, forward, best of some runs; and how
// much memory a call needs beside operands and output. A process measures one length, so that nothing is left
// over from another.
//
//   attention_length_bench LENGTH [THREADS [causal]]

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/best_of.h"
#include "regard/attention/attention.h"

namespace {

/// The process's largest resident size in KiB since the last reset.
int64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6);
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 1024, D = 64;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const bool causal = argc > 3 && std::string(argv[3]) == "causal";
  std::vector<float> q(static_cast<size_t>(n * D)), k(q), v(q), out(q);
  uint32_t word = 1;
  for (std::vector<float>* x : {&q, &k, &v})
    for (float& y : *x) y = static_cast<float>((word = word * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
  const auto in = [&](std::vector<float>& x) {
    return regard::dense<const float, 4>(x.data(), {1, 1, n, D});
  };
  regard::ThreadPool pool(threads);
  const auto call = [&] {
    regard::attention::attention_forward(in(q), in(k), in(v),
                                         {.out = regard::dense<float, 4>(out.data(), {1, 1, n, D})},
                                         {.causal = causal}, &pool);
  };
  reset_peak();
  const int64_t before = peak_kib();
  double best = regard::bench::seconds(call);
  const int64_t memory = peak_kib() - before;
  for (double spent = best; spent < 1;) {
    const double t = regard::bench::seconds(call);
    best = t < best ? t : best;
    spent += t;
  }
  std::printf(
      "{\"system\": \"regard\", \"n\": %lld, \"d\": %d, \"threads\": %d, \"causal\": %s, \"ms\": %.6g, "
      "\"memory_mib\": %.3f}\n",
      static_cast<long long>(n), static_cast<int>(D), threads, causal ? "true" : "false", best * 1e3,
      static_cast<double>(memory) / 1024);
}
