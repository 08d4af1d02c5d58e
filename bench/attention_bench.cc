// Exact attention beside the peak of matrix products: GFLOP/s and share of the best of 512 x 512 x 512
// products (ours and oneDNN's, one thread) taken in the same run, between the cases. Causal counts the
// triangle's operations.
//
//   attention_bench [--seconds S] [--threads N] [--json] [--only TEXT] [--heads N] [--target NAME]

#include <hwy/highway.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "regard/attention/attention.h"
#include "regard/gemm/gemm.h"

namespace {

using regard::BFloat16;
using regard::dense;
using regard::ThreadPool;
namespace attention = regard::attention;

struct Case {
  const char* op;  // forward, backward, weights
  int64_t B, H, T, D;
  bool causal = false;
  int64_t window = -1;  // keys to the left
  bool bf16 = false;
  const char* with = "";  ///< mask, bias, ALiBi, softcap, dropout, weights
};

constexpr Case kCases[] = {
    {"forward", 1, 8, 1024, 64},
    {"forward", 1, 8, 4096, 64},
    {"forward", 1, 8, 1024, 128},
    {"forward", 1, 8, 1024, 32},
    {"forward", 1, 8, 1024, 64, true},
    {"forward", 1, 8, 4096, 64, true},
    {"forward", 8, 8, 128, 64},
    {"forward", 8, 8, 128, 64, true},
    {"forward", 32, 8, 32, 32},
    {"backward", 1, 8, 1024, 64},
    {"backward", 1, 8, 1024, 64, true},
    {"backward", 1, 8, 1024, 128},
    {"backward", 8, 8, 128, 64},
    {"forward", 1, 8, 1024, 64, false, -1, true},
    {"forward", 1, 1, 16384, 64, true},
    {"forward", 1, 1, 16384, 64, true, 256},
    {"forward", 1, 8, 1024, 64, false, -1, false, "mask"},
    {"forward", 1, 8, 1024, 64, false, -1, false, "bias"},
    {"forward", 1, 8, 1024, 64, true, -1, false, "ALiBi"},
    {"forward", 1, 8, 1024, 64, false, -1, false, "softcap"},
    {"forward", 1, 8, 1024, 64, false, -1, false, "dropout"},
    {"forward", 1, 8, 1024, 64, false, -1, false, "weights"},
    {"backward", 1, 8, 1024, 64, false, -1, false, "mask"},
    {"backward", 1, 8, 1024, 64, false, -1, false, "bias"},
    {"backward", 1, 8, 1024, 64, false, -1, false, "dropout"},
};

template <class T>
std::vector<T> random_numbers(int64_t size) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<T> x(static_cast<size_t>(size));
  std::generate(x.begin(), x.end(), [&] { return static_cast<T>(normal(random)); });
  return x;
}

/// Seconds of the clock, or, on one thread, of its processor: a machine that does other work meanwhile tells
/// less.
double seconds(const std::function<void()>& run, bool one_thread) {
  const auto now = [&] {
    timespec t{};
    clock_gettime(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double begin = now();
  run();
  return now() - begin;
}

/// The fastest of many short runs.
double best(double time, const std::function<void()>& run, bool one_thread = true) {
  double fastest = 1e9, spent = 0;
  for (int n = 0; n < 5 || spent < time; ++n) {
    const double t = seconds(run, one_thread);
    fastest = std::min(fastest, t);
    spent += t;
  }
  return fastest;
}

/// GFLOP/s of 512 cubed on one thread, the faster of ours and oneDNN's.
double gemm_peak(double time) {
  static const std::vector<float> a = random_numbers<float>(512 * 512), b = a;
  static std::vector<float> c(512 * 512);
  const double ours = best(time, [] {
    regard::gemm::multiply(regard::matrix(a.data(), 512, 512), regard::matrix(b.data(), 512, 512),
                           regard::matrix(c.data(), 512, 512));
  });
  const double theirs = best(
      time, [] { dnnl_sgemm('N', 'N', 512, 512, 512, 1, a.data(), 512, b.data(), 512, 0, c.data(), 512); });
  return 2 * 512. * 512 * 512 / std::min(ours, theirs) * 1e-9;
}

/// Scores that the masks keep, of one head.
double pairs(const Case& c) {
  double sum = 0;
  for (int64_t i = 0; i < c.T; ++i) {
    const int64_t end = c.causal ? i + 1 : c.T;
    const int64_t begin = c.window < 0 ? 0 : std::max<int64_t>(0, i - c.window);
    sum += static_cast<double>(end - begin);
  }
  return sum;
}

template <class T>
double measure(const Case& c, double time, ThreadPool* pool) {
  const std::array<int64_t, 4> shape = {c.B, c.H, c.T, c.D};
  const int64_t size = c.B * c.H * c.T * c.D;
  std::vector<T> q = random_numbers<T>(size), k = q, v = q, out(q), d_out = q, d_q(q), d_k(q), d_v(q);
  std::rotate(k.begin(), k.begin() + size / 3, k.end());
  std::rotate(v.begin(), v.begin() + size / 5, v.end());
  std::vector<float> lse(static_cast<size_t>(c.B * c.H * c.T));
  const auto view = [&](std::vector<T>& x) { return dense(x.data(), shape); };
  const regard::View3<float> rows = dense(lse.data(), std::array{c.B, c.H, c.T});
  attention::AttentionOptions<float> options{.causal = c.causal, .window = {c.window, -1}};
  const bool backward = std::strcmp(c.op, "backward") == 0;
  const auto has = [&](const char* what) { return std::strcmp(c.with, what) == 0; };
  const std::array<int64_t, 4> pair_shape = {c.B, c.H, c.T, c.T}, pair_stride = {0, 0, c.T, 1};
  std::vector<float> bias, slopes(static_cast<size_t>(c.H), 0.5f), weights;
  std::unique_ptr<bool[]> mask;
  if (has("bias")) {
    bias = random_numbers<float>(c.T * c.T);
    options.bias = {bias.data(), pair_shape, pair_stride};
  }
  if (has("mask")) {
    mask = std::make_unique<bool[]>(static_cast<size_t>(c.T * c.T));
    std::fill_n(mask.get(), c.T * c.T, true);
    options.mask = {mask.get(), pair_shape, pair_stride};
  }
  if (has("ALiBi")) options.alibi_slopes = slopes;
  if (has("softcap")) options.softcap = 30;
  if (has("dropout")) options.dropout.probability = 0.1;
  if (has("weights")) weights.resize(static_cast<size_t>(c.B * c.H * c.T * c.T));
  attention::AttentionOutputs<T> outputs{.out = view(out)};
  if (backward) outputs.log_sum_exp = rows;
  if (has("weights")) outputs.weights = dense(weights.data(), pair_shape);
  const auto forward_run = [&] {
    attention::attention_forward(view(q), view(k), view(v), outputs, options, pool);
  };
  forward_run();
  if (!backward) return best(time, forward_run, pool->threads() == 1);
  const auto backward_run = [&] {
    attention::attention_backward(
        view(q), view(k), view(v), view(out), rows,
        {.d_out = view(d_out), .d_q = view(d_q), .d_k = view(d_k), .d_v = view(d_v)}, options, pool);
  };
  return best(time, backward_run, pool->threads() == 1);
}

void report(const Case& c, double time, int threads, bool json) {
  ThreadPool pool(threads);
  const double before = gemm_peak(time / 4);
  const double t = c.bf16 ? measure<BFloat16>(c, time, &pool) : measure<float>(c, time, &pool);
  const double peak = std::max(before, gemm_peak(time / 4));
  const bool backward = std::strcmp(c.op, "backward") == 0;
  const double flops = (backward ? 10. : 4.) * static_cast<double>(c.B * c.H * c.D) * pairs(c);
  const double speed = flops / t * 1e-9;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (json) {
    std::printf(
        "{\"op\": \"%s\", \"b\": %d, \"h\": %d, \"lq\": %d, \"lk\": %d, \"d\": %d, \"causal\": %s, "
        "\"window\": %d, "
        "\"dtype\": \"%s\", \"with\": \"%s\", \"threads\": %d, \"ms\": %.6g, \"gflops\": %.5g, \"gemm\": "
        "%.5g, \"share\": "
        "%.4f}\n",
        c.op, static_cast<int>(c.B), static_cast<int>(c.H), static_cast<int>(c.T), static_cast<int>(c.T),
        static_cast<int>(c.D), c.causal ? "true" : "false", static_cast<int>(c.window),
        c.bf16 ? "bf16" : "f32", c.with, threads, t * 1e3, speed, peak, speed / peak / threads);
  } else {
    std::printf("%-8s %2d,%d,%5d,%3d %-6s %6d %4s %-8s %9.3f %8.1f %8.1f %6.3f %7.1f\n", c.op,
                static_cast<int>(c.B), static_cast<int>(c.H), static_cast<int>(c.T), static_cast<int>(c.D),
                c.causal ? "causal" : "", static_cast<int>(c.window), c.bf16 ? "bf16" : "f32", c.with,
                t * 1e3, speed, peak, speed / peak / threads, static_cast<double>(usage.ru_maxrss) / 1024);
  }
  std::fflush(stdout);
}

std::string name(const Case& c) {
  return std::string(c.op) + " " + std::to_string(c.B) + "," + std::to_string(c.H) + "," +
         std::to_string(c.T) + "," + std::to_string(c.D) + (c.causal ? " causal" : "") +
         (c.window >= 0 ? " window" : "") + (c.bf16 ? " bf16" : "") + " " + c.with;
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
    std::printf("%-8s %-14s %-6s %6s %4s %-8s %9s %8s %8s %6s %7s\n", "", "B,H,T,D", "", "window", "", "with",
                "ms", "GFLOP/s", "gemm", "share", "MB");
  }
  for (Case c : kCases) {
    if (name(c).find(only) == std::string::npos) continue;
    if (heads > 0) c.H = heads;  // fewer for runs short enough to fall between other work
    report(c, time, threads, json);
  }
}
