// Exact attention beside the peak of matrix products: GFLOP/s and share of the best of 512 x 512 x 512
// products (ours and oneDNN's, one thread) taken in the same run, between the cases. Causal counts the
// triangle's operations.
//
//   attention_bench [--seconds S] [--threads N] [--json] [--only TEXT] [--heads N] [--target NAME]

#include <hwy/highway.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "regard/bench/exact_cases.h"
#include "regard/bench/timing.h"
#include "regard/bench/yardsticks.h"

namespace {

using regard::bench::ExactCase;

/// GFLOP/s of 512 cubed on one thread, the faster of ours and oneDNN's.
double gemm_peak(double time) {
  static const std::vector<float> a = regard::bench::normal_numbers(512 * 512), b = a;
  static std::vector<float> c(512 * 512);
  const double theirs = regard::bench::best(
      time, [] { dnnl_sgemm('N', 'N', 512, 512, 512, 1, a.data(), 512, b.data(), 512, 0, c.data(), 512); },
      regard::bench::Clock::thread);
  return std::max(regard::bench::product_peak(time), 2e-9 * 512 * 512 * 512 / theirs);
}

void report(const ExactCase& c, double time, int threads, bool json) {
  regard::ThreadPool pool(threads);
  const double before = gemm_peak(time / 4);
  const double t = regard::bench::measure(c, time, pool);
  const double peak = std::max(before, gemm_peak(time / 4));
  const double speed = c.operations() / t * 1e-9, share = speed / peak / threads;
  if (json) {
    const auto [B, H, T, D] = c.shape;
    std::printf(
        "{\"case\": \"%s\", \"op\": \"%s\", \"b\": %d, \"h\": %d, \"lq\": %d, \"lk\": %d, \"d\": %d, "
        "\"causal\": %s, \"window\": %d, \"dtype\": \"%s\", \"with\": \"%s\", \"threads\": %d, \"ms\": %.6g, "
        "\"gflops\": %.5g, \"gemm\": %.5g, \"share\": %.4f}\n",
        c.name().c_str(), c.pass_name(), static_cast<int>(B), static_cast<int>(H), static_cast<int>(T),
        static_cast<int>(T), static_cast<int>(D), c.variant.causal ? "true" : "false",
        static_cast<int>(c.variant.window), c.variant.bf16 ? "bf16" : "f32", c.extra_name(), threads, t * 1e3,
        speed, peak, share);
  } else {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%-42s %9.3f %8.1f %8.1f %6.3f %7.1f\n", c.name().c_str(), t * 1e3, speed, peak, share,
                static_cast<double>(usage.ru_maxrss) / 1024);
  }
  std::fflush(stdout);
}

/// Runs one instruction set: AVX3, AVX2, SCALAR.
void choose_target(const std::string& wanted) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (hwy::TargetName(target) == wanted) hwy::SetSupportedTargetsForTest(target);
  }
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  double time = 0.2;
  int threads = 1;
  int64_t heads = 0;
  bool json = false;
  std::string only;
  for (int n = 1; n < argc; ++n) {
    const std::string option = argv[n];
    if (option == "--json") json = true;
    if (n + 1 == argc) break;
    if (option == "--seconds") time = std::atof(argv[++n]);
    if (option == "--threads") threads = std::atoi(argv[++n]);
    if (option == "--target") choose_target(argv[++n]);
    if (option == "--heads") heads = std::atoi(argv[++n]);
    if (option == "--only") only = argv[++n];
  }
  if (!json) {
    std::printf("%-42s %9s %8s %8s %6s %7s\n", "batch, heads, length, width", "ms", "GFLOP/s", "gemm",
                "share", "MB");
  }
  for (ExactCase c : regard::bench::exact_cases()) {
    if (c.name().find(only) == std::string::npos) continue;
    if (heads > 0) c.shape[1] = heads;  // fewer for runs short enough to fall between other work
    report(c, time, threads, json);
  }
}
