// Attention against the length of its sequence: one head of width 64, forward, best of some runs; and how
// much memory a call needs beside operands and output. A process measures one length, so that nothing is left
// over from another.
//
//   attention_length_bench KIND LENGTH [SECONDS [THREADS]]
//
//   exact      every query attends to every key
//   causal     to those up to itself
//   window     to itself and the 256 keys before it
//   sparse     causal, blocks of 64: to its own block, the three before it, the first, and those at a
//   quarter, half
//              and three quarters of the way
//   linear     causal linear attention, elu + 1

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "regard/attention/attention.h"
#include "regard/attention/linear.h"
#include "regard/bench/timing.h"
#include "regard/bench/yardsticks.h"

namespace {

constexpr int64_t kWidth = 64, kBlock = 64, kWindow = 256;

/// The process's largest resident size in KiB since the last reset.
int64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6);
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// The blocks of keys of each block of queries: [starts, blocks].
struct Blocks {
  std::vector<int64_t> starts = {0}, keys;

  explicit Blocks(int64_t n) {
    for (int64_t r = 0; r * kBlock < n; ++r) {
      std::set<int64_t> mine = {0, r / 4, r / 2, 3 * r / 4};
      for (int64_t near = std::max<int64_t>(0, r - 3); near <= r; ++near) mine.insert(near);
      keys.insert(keys.end(), mine.begin(), mine.end());
      starts.push_back(static_cast<int64_t>(keys.size()));
    }
  }
};

/// One head of each kind; empty for a kind that is not known.
std::function<void()> call_of(const std::string& kind, int64_t n, regard::ThreadPool& pool) {
  static std::vector<float> q = regard::bench::normal_numbers(n * kWidth, 1),
                            k = regard::bench::normal_numbers(n * kWidth, 2),
                            v = regard::bench::normal_numbers(n * kWidth, 3), out(q.size());
  static const Blocks blocks(n);
  const std::array<int64_t, 4> shape = {1, 1, n, kWidth};
  const auto in = [=](const std::vector<float>& x) { return regard::dense<const float>(x.data(), shape); };
  const auto result = regard::dense(out.data(), shape);
  if (kind == "linear") {
    return [=, &pool] {
      regard::attention::linear_attention_forward(in(q), in(k), in(v), {}, result, {}, {}, &pool);
    };
  }
  regard::attention::AttentionOptions<float> options{.causal = kind != "exact"};
  if (kind == "window") options.window.left = kWindow;
  if (kind == "sparse") options.blocks = {kBlock, kBlock, blocks.starts, blocks.keys};
  if (options.causal && kind != "causal" && kind != "window" && kind != "sparse") return {};
  return [=, &pool] {
    regard::attention::attention_forward(in(q), in(k), in(v), {.out = result}, options, &pool);
  };
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "exact";
  const int64_t n = argc > 2 ? std::atoll(argv[2]) : 1024;
  const double time = argc > 3 ? std::atof(argv[3]) : 1;
  const int threads = argc > 4 ? std::atoi(argv[4]) : 1;
  regard::ThreadPool pool(threads);
  const std::function<void()> call = call_of(kind, n, pool);
  if (!call) {
    std::fprintf(stderr, "no kind '%s': exact, causal, window, sparse, linear\n", kind.c_str());
    return 2;
  }
  reset_peak();
  const int64_t before = peak_kib();
  double best = regard::bench::seconds(call);
  const int64_t memory = peak_kib() - before;
  for (double spent = best; spent < time;) {
    const double t = regard::bench::seconds(call);
    best = std::min(best, t);
    spent += t;
  }
  std::printf(
      "{\"system\": \"Regard\", \"kind\": \"%s\", \"n\": %lld, \"d\": %d, \"threads\": %d, \"ms\": %.6g, "
      "\"memory_mib\": %.3f}\n",
      kind.c_str(), static_cast<long long>(n), static_cast<int>(kWidth), threads, best * 1e3,
      static_cast<double>(memory) / 1024);
}
