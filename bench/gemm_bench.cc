// Our matrix products beside oneDNN's sgemm, on one thread: GFLOP/s of each and the ratio. Both run in turns,
// so that a machine that slows down slows both; the best of all rounds counts.
//
//   gemm_bench [seconds per shape, 0.3 unless given]

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "regard/gemm/gemm.h"

namespace {

using regard::MatrixView;

struct Shape {
  const char* what;
  int64_t m, n, k;
  bool a_transposed = false, b_transposed = false, packed = false, accumulate = false;
};

constexpr Shape kShapes[] = {
    {"square", 512, 512, 512},
    {"square, packed", 512, 512, 512, false, false, true},
    {"gates, 1 row", 1, 768, 256, false, false, true},
    {"gates, 4 rows", 4, 768, 256, false, false, true},
    {"gates, 25 rows", 25, 768, 256, false, false, true},
    {"gates, 80 rows", 80, 768, 256, false, false, true},
    {"gates, wide", 80, 1024, 768, false, false, true},
    {"time batch", 1300, 768, 256, false, false, true},
    {"time batch, wide", 1300, 1024, 1024, false, false, true},
    {"time batch, unpacked", 1300, 768, 512},
    {"1 row, unpacked", 1, 768, 512},
    {"1 row, packed", 1, 768, 512, false, false, true},
    {"4 rows, unpacked", 4, 768, 512},
    {"output layer, W'", 512, 8001, 256, false, true},
    {"output layer, W'", 256, 8001, 256, false, true},
    {"output layer, W', 4 rows", 4, 8001, 256, false, true},
    {"output layer, packed, 4 rows", 4, 8001, 256, false, false, true},
    {"dX = dL W", 512, 256, 8001},
    {"dW += dL' R", 8001, 256, 512, true, false, false, true},
    {"dW += dG' H", 768, 256, 1300, true, false, false, true},
    {"dW += dG' H", 1024, 768, 1300, true, false, false, true},
    {"scores", 60, 60, 64, false, true},
};

std::vector<float> random_numbers(int64_t size) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(static_cast<size_t>(size));
  std::generate(x.begin(), x.end(), [&] { return uniform(random); });
  return x;
}

template <class Run>
double seconds(int64_t calls, const Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
         static_cast<double>(calls);
}

void compare(const Shape& s, double time) {
  const std::vector<float> a = random_numbers(s.m * s.k), b = random_numbers(s.k * s.n);
  std::vector<float> ours(static_cast<size_t>(s.m * s.n)), theirs(ours);
  const MatrixView<const float> left =
      s.a_transposed ? regard::matrix(a.data(), s.k, s.m).transposed() : regard::matrix(a.data(), s.m, s.k);
  const MatrixView<const float> right =
      s.b_transposed ? regard::matrix(b.data(), s.n, s.k).transposed() : regard::matrix(b.data(), s.k, s.n);
  regard::gemm::Packed<float> packed;
  if (s.packed) packed.pack(right);
  const MatrixView<float> c = regard::matrix(ours.data(), s.m, s.n);
  const auto run_ours = [&] {
    if (s.packed) {
      regard::gemm::multiply(left, packed, c, {.accumulate = s.accumulate});
    } else {
      regard::gemm::multiply(left, right, c, {.accumulate = s.accumulate});
    }
  };
  const auto run_theirs = [&] {
    dnnl_sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1, a.data(),
               s.a_transposed ? s.m : s.k, b.data(), s.b_transposed ? s.k : s.n, s.accumulate ? 1 : 0,
               theirs.data(), s.n);
  };
  run_theirs();
  run_ours();
  const double flops = 2.0 * static_cast<double>(s.m * s.n * s.k);
  const int64_t calls = std::max<int64_t>(1, static_cast<int64_t>(2e8 / flops));
  double best_ours = 1e9, best_theirs = 1e9;
  for (double spent = 0; spent < time;) {
    const double x = seconds(calls, run_ours), y = seconds(calls, run_theirs);
    best_ours = std::min(best_ours, x);
    best_theirs = std::min(best_theirs, y);
    spent += (x + y) * static_cast<double>(calls);
  }
  std::printf("%-30s %5d %5d %5d %9.1f %9.1f %7.2f\n", s.what, static_cast<int>(s.m), static_cast<int>(s.n),
              static_cast<int>(s.k), flops / best_ours * 1e-9, flops / best_theirs * 1e-9,
              best_theirs / best_ours);
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  const double time = argc > 1 ? std::atof(argv[1]) : 0.3;
  std::printf("%-30s %5s %5s %5s %9s %9s %7s\n", "GFLOP/s, one thread", "M", "N", "K", "ours", "oneDNN",
              "ratio");
  for (const Shape& shape : kShapes) compare(shape, time);
}
