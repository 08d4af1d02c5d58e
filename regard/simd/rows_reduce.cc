// f32 kernels that reduce a row: sums, the largest element, softmax and cross-entropy.

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/simd/rows_reduce.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/simd/math-inl.h"
#include "regard/simd/rows.h"

HWY_BEFORE_NAMESPACE();
namespace regard::simd::HWY_NAMESPACE {

const hn::ScalableTag<float> d;
using V = hn::Vec<decltype(d)>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Rows are summed in f32 over blocks this long and in f64 over the blocks.
constexpr int64_t kBlock = 512;

float dot_row(const float* a, const float* b, int64_t n) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, a + i + N), hn::LoadU(d, b + i + N), s1);
    s2 = hn::MulAdd(hn::LoadU(d, a + i + 2 * N), hn::LoadU(d, b + i + 2 * N), s2);
    s3 = hn::MulAdd(hn::LoadU(d, a + i + 3 * N), hn::LoadU(d, b + i + 3 * N), s3);
  }
  for_vectors(d, n - i, [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA {
    s0 = hn::MulAdd(io.load(a + i + k), io.load(b + i + k), s0);
  });
  return sum(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

double sum_of_squares_row(const float* x, int64_t n) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> half;
  const auto N = static_cast<int64_t>(hn::Lanes(dd));
  auto s0 = hn::Zero(dd), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    const auto x0 = hn::PromoteTo(dd, hn::LoadU(half, x + i)),
               x1 = hn::PromoteTo(dd, hn::LoadU(half, x + i + N));
    s0 = hn::MulAdd(x0, x0, s0);
    s1 = hn::MulAdd(x1, x1, s1);
  }
  double total = hn::GetLane(hn::SumOfLanes(dd, hn::Add(s0, s1)));
  for (; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

/// The largest of the elements that are numbers; `all_numbers` says whether all are.
HWY_INLINE float largest_number(const float* x, int64_t n, bool& all_numbers) {
  const V lowest = hn::Set(d, -kInfinity);
  V m0 = lowest, m1 = lowest;
  auto numbers = hn::Eq(lowest, lowest);
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  const auto take = [&](V v, V m) REGARD_VECTOR_LAMBDA {
    const auto is_number = hn::Eq(v, v);
    numbers = hn::And(numbers, is_number);
    return hn::Max(m, hn::IfThenElse(is_number, v, lowest));
  };
  int64_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    m0 = take(hn::LoadU(d, x + i), m0);
    m1 = take(hn::LoadU(d, x + i + N), m1);
  }
  for_vectors(d, n - i, [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA {
    m0 = take(io.load(x + i + k, -kInfinity), m0);
  });
  all_numbers = hn::AllTrue(d, numbers);
  return largest_lane(d, hn::Max(m0, m1));
}

float largest_row(const float* x, int64_t n) {
  bool all_numbers = true;
  const float m = largest_number(x, n, all_numbers);
  return all_numbers ? m : std::numeric_limits<float>::quiet_NaN();
}

int64_t arg_max_row(const float* x, int64_t n) {
  if (n <= 0) return -1;
  bool all_numbers = true;
  const V m = hn::Set(d, largest_number(x, n, all_numbers));
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto found = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), m));
    if (found >= 0) return i + found;
  }
  for (; i < n; ++i)
    if (x[i] == hn::GetLane(m)) return i;
  return 0;  // nothing but NaN
}

void add_column_sums_row(const float* x, int64_t rows, int64_t row_stride, float* y, int64_t n) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 4 * N <= n; j += 4 * N) {
    V s0 = hn::LoadU(d, y + j), s1 = hn::LoadU(d, y + j + N);
    V s2 = hn::LoadU(d, y + j + 2 * N), s3 = hn::LoadU(d, y + j + 3 * N);
    for (int64_t i = 0; i < rows; ++i) {
      const float* p = x + i * row_stride + j;
      s0 = hn::Add(s0, hn::LoadU(d, p));
      s1 = hn::Add(s1, hn::LoadU(d, p + N));
      s2 = hn::Add(s2, hn::LoadU(d, p + 2 * N));
      s3 = hn::Add(s3, hn::LoadU(d, p + 3 * N));
    }
    hn::StoreU(s0, d, y + j);
    hn::StoreU(s1, d, y + j + N);
    hn::StoreU(s2, d, y + j + 2 * N);
    hn::StoreU(s3, d, y + j + 3 * N);
  }
  for_vectors(d, n - j, [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA {
    V s = io.load(y + j + k);
    for (int64_t i = 0; i < rows; ++i) s = hn::Add(s, io.load(x + i * row_stride + j + k));
    io.store(s, y + j + k);
  });
}

/// sum_j exp(x_j - m); the terms are written to y unless it is null.
HWY_INLINE double exp_sum(const float* x, float* y, int64_t n, float m) {
  const V shift = hn::Set(d, m);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    V s = hn::Zero(d);
    for_vectors(d, std::min(kBlock, n - begin), [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA {
      const V e = Exp(d, hn::Sub(io.load(x + begin + k, -kInfinity), shift));
      s = hn::Add(s, e);
      if (y) io.store(e, y + begin + k);
    });
    total += static_cast<double>(sum(d, s));
  }
  return total;
}

HWY_INLINE double plain_sum(const float* x, int64_t n) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    V s0 = hn::Zero(d), s1 = s0;
    int64_t i = begin;
    for (; i + 2 * N <= end; i += 2 * N) {
      s0 = hn::Add(s0, hn::LoadU(d, x + i));
      s1 = hn::Add(s1, hn::LoadU(d, x + i + N));
    }
    for_vectors(d, end - i,
                [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA { s0 = hn::Add(s0, io.load(x + i + k)); });
    total += static_cast<double>(sum(d, hn::Add(s0, s1)));
  }
  return total;
}

/// y = c exp(x - m) with c = 1 / Z, log-sum-exp = m + log Z.
float softmax_row(const float* x, float* y, int64_t n) {
  const float m = largest_row(x, n);
  if (!std::isfinite(m)) {
    std::fill(y, y + n, m == -kInfinity ? 0 : std::numeric_limits<float>::quiet_NaN());
    return m;
  }
  const double Z = exp_sum(x, y, n, m);
  const V inverse = hn::Set(d, static_cast<float>(1 / Z));
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    io.store(hn::Mul(io.load(y + i), inverse), y + i);
  });
  return static_cast<float>(static_cast<double>(m) + std::log(Z));
}

float log_sum_exp_row(const float* x, int64_t n) {
  const float m = largest_row(x, n);
  if (!std::isfinite(m)) return m;
  return static_cast<float>(static_cast<double>(m) + std::log(exp_sum(x, nullptr, n, m)));
}

void softmax_backward_row(const float* y, const float* dy, float* dx, int64_t n) {
  const V mean = hn::Set(d, dot_row(y, dy, n));
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    io.store(hn::Mul(io.load(y + i), hn::Sub(io.load(dy + i), mean)), dx + i);
  });
}

double cross_entropy_row(float* x, int64_t n, int64_t target, double smoothing, float scale, float* dbias) {
  const double share = smoothing / static_cast<double>(n), x_target = static_cast<double>(x[target]);
  const double smooth = smoothing == 0 ? 0 : share * plain_sum(x, n);
  const double given_bias = dbias ? static_cast<double>(dbias[target]) : 0;
  const float m = largest_row(x, n);
  double Z = std::numeric_limits<double>::quiet_NaN();
  if (std::isfinite(m)) Z = exp_sum(x, x, n, m);
  const double p_target = static_cast<double>(x[target]) / Z;
  const V c = hn::Set(d, static_cast<float>(static_cast<double>(scale) / Z));
  const V spread = hn::Set(d, static_cast<float>(-static_cast<double>(scale) * share));
  for_vectors(d, n, [&](auto io, int64_t j) REGARD_VECTOR_LAMBDA {
    const V dx = hn::MulAdd(io.load(x + j), c, spread);
    io.store(dx, x + j);
    if (dbias) io.store(hn::Add(io.load(dbias + j), dx), dbias + j);
  });
  x[target] = static_cast<float>(static_cast<double>(scale) * (p_target - (1 - smoothing) - share));
  if (dbias) dbias[target] = static_cast<float>(given_bias + static_cast<double>(x[target]));
  return static_cast<double>(m) + std::log(Z) - (1 - smoothing) * x_target - smooth;
}

}  // namespace regard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::simd {

HWY_EXPORT(dot_row);
HWY_EXPORT(sum_of_squares_row);
HWY_EXPORT(largest_row);
HWY_EXPORT(arg_max_row);
HWY_EXPORT(add_column_sums_row);
HWY_EXPORT(softmax_row);
HWY_EXPORT(log_sum_exp_row);
HWY_EXPORT(softmax_backward_row);
HWY_EXPORT(cross_entropy_row);

float dot(const float* a, const float* b, int64_t n) { return HWY_DYNAMIC_DISPATCH(dot_row)(a, b, n); }
double sum_of_squares(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_of_squares_row)(x, n); }
float largest(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(largest_row)(x, n); }
int64_t arg_max(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(arg_max_row)(x, n); }
void add_column_sums(const float* x, int64_t rows, int64_t row_stride, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(add_column_sums_row)(x, rows, row_stride, y, n);
}
float softmax(const float* x, float* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(softmax_row)(x, y, n); }
float log_sum_exp(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(log_sum_exp_row)(x, n); }
void softmax_backward(const float* y, const float* dy, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(softmax_backward_row)(y, dy, dx, n);
}
double cross_entropy(float* x, int64_t n, int64_t target, double smoothing, float scale, float* dbias) {
  return HWY_DYNAMIC_DISPATCH(cross_entropy_row)(x, n, target, smoothing, scale, dbias);
}

}  // namespace regard::simd
#endif  // HWY_ONCE
