#include "regard/bench/yardsticks.h"

#include <numeric>
#include <random>

#include "regard/bench/timing.h"
#include "regard/gemm/gemm.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/bench/yardsticks.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace regard::bench::HWY_NAMESPACE {

uint64_t sum(const uint64_t* x, int64_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<uint64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;  // four sums in flight
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, x + i));
    b = hn::Add(b, hn::LoadU(d, x + i + lanes));
    c = hn::Add(c, hn::LoadU(d, x + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  HWY_ALIGN uint64_t sums[hn::MaxLanes(d)];
  hn::Store(hn::Add(hn::Add(a, b), hn::Add(c, e)), d, sums);
  uint64_t total = std::accumulate(sums, sums + lanes, uint64_t{0});  // unsigned: it may go round
  for (; i < n; ++i) total += x[i];
  return total;
}

}  // namespace regard::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::bench {

HWY_EXPORT(sum);

uint64_t sum_of_words(const uint64_t* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum)(x, n); }

double product_peak(double time) {
  constexpr int64_t kSize = 512;
  static const std::vector<float> a = normal_numbers(kSize * kSize, 1), b = normal_numbers(kSize * kSize, 2);
  std::vector<float> c(a.size());
  const double t = best(
      time,
      [&] {
        gemm::multiply(matrix(a.data(), kSize, kSize), matrix(b.data(), kSize, kSize),
                       matrix(c.data(), kSize, kSize));
      },
      Clock::thread);
  return 2e-9 * kSize * kSize * kSize / t;
}

std::vector<float> normal_numbers(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& y : x) y = normal(random);
  return x;
}

}  // namespace regard::bench
#endif  // HWY_ONCE
