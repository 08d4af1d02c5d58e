#include "regard/simd/rows.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "regard/base/random.h"
#include "regard/simd/scalar.h"
#include "tests/support/every_target.h"

namespace regard::simd {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using tests::on_every_target;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST(Rows, DispatchFollowsTheForcedTarget) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_STREQ(target_name(), hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
}

/// 0..2N+1 of the widest vectors, and some that are long.
std::vector<int64_t> lengths() {
  std::vector<int64_t> n;
  for (int64_t i = 0; i <= 33; ++i) n.push_back(i);
  for (int64_t i : {63, 64, 65, 100, 511, 513, 1000, 8003}) n.push_back(i);
  return n;
}

Floats normals(int64_t n, uint64_t seed, double size = 1) {
  RandomStream random(seed, 1);
  Floats x(static_cast<size_t>(n));
  for (float& v : x) v = static_cast<float>(size * random.normal());
  return x;
}

Doubles wide(const float* x, int64_t n) { return Doubles(x, x + n); }

/// A row that starts `offset` floats behind an aligned address, with guards on both sides.
class Row {
 public:
  Row(const Floats& x, int64_t offset)
      : n_(static_cast<int64_t>(x.size())), offset_(offset), data_(x.size() + 64, 77) {
    std::copy(x.begin(), x.end(), p());
  }
  float* p() {
    auto address = reinterpret_cast<uintptr_t>(data_.data());
    return data_.data() + (64 - address % 64) % 64 / 4 + offset_ + 16;
  }
  void expect_guards() {
    EXPECT_EQ(p()[-1], 77);
    EXPECT_EQ(p()[n_], 77);
  }

 private:
  int64_t n_, offset_;
  Floats data_;
};

double ulp(double y) {
  return std::nextafter(static_cast<float>(std::abs(y)), kInf) - static_cast<float>(std::abs(y));
}

/// y[i] within bound(expected[i]) of expected[i].
void expect_near(const float* y, const Doubles& expected, double absolute, double relative) {
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], absolute + relative * std::abs(expected[i]))
        << "element " << i << " of " << expected.size();
}

/// Compares an elementwise kernel of up to three operands, the last of which is also the result, with its f64
/// twin: every length, misaligned; and with itself one element at a time, to the bit.
void check_elementwise(const std::function<void(const float*, const float*, float*, int64_t)>& f,
                       const std::function<void(const double*, const double*, double*, int64_t)>& twin,
                       double size, double absolute, double relative) {
  on_every_target([&] {
    for (const int64_t n : lengths())
      for (const int64_t offset : {0, 1, 7}) {
        const Floats a0 = normals(n, 1, size), b0 = normals(n, 2, size), y0 = normals(n, 3, size);
        Row a(a0, offset), b(b0, offset + 2), y(y0, offset + 1);
        f(a.p(), b.p(), y.p(), n);
        y.expect_guards();
        const Doubles wa = wide(a0.data(), n), wb = wide(b0.data(), n);
        Doubles wy = wide(y0.data(), n);
        twin(wa.data(), wb.data(), wy.data(), n);
        expect_near(y.p(), wy, absolute, relative);
        for (int64_t i = 0; i < std::min<int64_t>(n, 40); ++i) {
          float one = y0[static_cast<size_t>(i)];
          f(&a0[static_cast<size_t>(i)], &b0[static_cast<size_t>(i)], &one, 1);
          ASSERT_EQ(std::bit_cast<uint32_t>(one), std::bit_cast<uint32_t>(y.p()[i]))
              << "alone, " << i << " of " << n;
        }
      }
  });
}

using F = const float*;
using D = const double*;

TEST(Rows, Exp) {
  check_elementwise([](F a, F, float* y, int64_t n) { exp(a, y, n); },
                    [](D a, D, double* y, int64_t n) { scalar::exp(a, y, n); }, 10, 0, 1.5 * 1.2e-7);
}
TEST(Rows, Tanh) {
  check_elementwise([](F a, F, float* y, int64_t n) { tanh(a, y, n); },
                    [](D a, D, double* y, int64_t n) { scalar::tanh(a, y, n); }, 3, 4e-7, 0);
}
TEST(Rows, Sigmoid) {
  check_elementwise([](F a, F, float* y, int64_t n) { sigmoid(a, y, n); },
                    [](D a, D, double* y, int64_t n) { scalar::sigmoid(a, y, n); }, 6, 4e-7, 0);
}
TEST(Rows, Arithmetic) {
  const double u = 6e-8;
  check_elementwise([](F a, F b, float* y, int64_t n) { add(a, b, y, n); },
                    [](D a, D b, double* y, int64_t n) { scalar::add(a, b, y, n); }, 1, 0, u);
  check_elementwise([](F a, F b, float* y, int64_t n) { multiply(a, b, y, n); },
                    [](D a, D b, double* y, int64_t n) { scalar::multiply(a, b, y, n); }, 1, 0, u);
  check_elementwise([](F a, F b, float* y, int64_t n) { multiply_add(a, b, y, n); },
                    [](D a, D b, double* y, int64_t n) { scalar::multiply_add(a, b, y, n); }, 1, 2e-6, u);
  check_elementwise([](F a, F, float* y, int64_t n) { axpy(0.375f, a, y, n); },
                    [](D a, D, double* y, int64_t n) { scalar::axpy(0.375, a, y, n); }, 1, 4e-7, u);
  check_elementwise([](F a, F, float* y, int64_t n) { scale(-0.3f, a, y, n); },
                    [](D a, D, double* y, int64_t n) { scalar::scale(static_cast<double>(-0.3f), a, y, n); },
                    1, 0, u);
  check_elementwise([](F a, F b, float* y, int64_t n) { tanh_backward(a, b, y, n); },
                    [](D a, D b, double* y, int64_t n) { scalar::tanh_backward(a, b, y, n); }, 0.5, 1e-6, 0);
}
TEST(Rows, Relu) {
  check_elementwise([](F a, F, float* y, int64_t n) { relu(a, y, n); },
                    [](D a, D, double* y, int64_t n) { scalar::relu(a, y, n); }, 1, 0, 0);
  check_elementwise([](F a, F b, float* y, int64_t n) { relu_backward(a, b, y, n); },
                    [](D a, D b, double* y, int64_t n) { scalar::relu_backward(a, b, y, n); }, 1, 0, 0);
  on_every_target([] {
    Floats x = {-kInf, -1, 0, 2, kInf, std::nanf("")}, dx = {1, 2, 3, 4, 5, 6};
    relu(x.data(), x.data(), 6);
    EXPECT_TRUE(std::isnan(x[5]));
    EXPECT_EQ(Floats(x.begin(), x.begin() + 5), (Floats{0, 0, 0, 2, kInf}));
    relu_backward(x.data(), dx.data(), dx.data(), 5);
    EXPECT_EQ(dx, (Floats{0, 0, 0, 4, 5, 6}));
  });
}

TEST(Rows, InPlace) {
  on_every_target([] {
    Floats x = {0, 1, -1}, y = x;
    exp(x.data(), x.data(), 3);
    EXPECT_EQ(x[0], 1);
    EXPECT_NEAR(x[1], 2.7182818f, 3e-7);
    EXPECT_NEAR(x[2], 0.36787944f, 5e-8);
    multiply_add(y.data(), y.data(), y.data(), 3);
    EXPECT_EQ(y, (Floats{0, 2, 0}));
  });
}

TEST(Rows, FunctionsOverTheirRange) {
  on_every_target([] {
    double worst_exp = 0, worst_tanh = 0, worst_sigmoid = 0;
    for (double x0 = -110; x0 < 95; x0 += 0.00137) {
      const auto x = static_cast<float>(x0);
      const double wx = x;
      float e, t, s;
      exp(&x, &e, 1);
      tanh(&x, &t, 1);
      sigmoid(&x, &s, 1);
      if (x < -87.33f) {
        ASSERT_EQ(e, 0) << x;
      } else if (wx > 88.7228391) {
        ASSERT_EQ(e, kInf) << x;
      } else {
        ASSERT_TRUE(std::isnormal(e)) << x;
        worst_exp = std::max(worst_exp, std::abs(e - std::exp(wx)) / ulp(std::exp(wx)));
      }
      worst_tanh = std::max(worst_tanh, std::abs(t - std::tanh(wx)));
      worst_sigmoid = std::max(worst_sigmoid, std::abs(s - scalar::sigmoid(wx)));
    }
    EXPECT_LE(worst_exp, 1.5);
    EXPECT_LE(worst_tanh, 4e-7);
    EXPECT_LE(worst_sigmoid, 4e-7);
  });
}

TEST(Rows, FunctionsAtTheEdges) {
  on_every_target([] {
    const Floats x = {kInf, -kInf, kNan, 0, -0.f, 88.72283f, 88.73f, -87.32f, -87.34f, 3e38f, -3e38f};
    const auto n = static_cast<int64_t>(x.size());
    Floats y(x.size());
    exp(x.data(), y.data(), n);
    EXPECT_EQ(y[0], kInf);
    EXPECT_EQ(y[1], 0);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 1);
    EXPECT_EQ(y[4], 1);
    EXPECT_NEAR(y[5], std::exp(88.72283f), 1e33);
    EXPECT_EQ(y[6], kInf);
    EXPECT_TRUE(std::isnormal(y[7]));
    EXPECT_EQ(y[8], 0);
    EXPECT_EQ(y[9], kInf);
    EXPECT_EQ(y[10], 0);
    tanh(x.data(), y.data(), n);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], -1);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0);
    sigmoid(x.data(), y.data(), n);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 0);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0.5f);
  });
}

TEST(Rows, Sums) {
  on_every_target([] {
    for (const int64_t n : lengths()) {
      const Floats a0 = normals(n, 4), b0 = normals(n, 5);
      Row a(a0, 3), b(b0, 1);
      const Doubles wa = wide(a0.data(), n), wb = wide(b0.data(), n);
      double size = 0;
      for (size_t i = 0; i < wa.size(); ++i) size += std::abs(wa[i] * wb[i]);
      ASSERT_NEAR(dot(a.p(), b.p(), n), scalar::dot(wa.data(), wb.data(), n), 1e-6 * size) << n;
      const double squares = scalar::sum_of_squares(wa.data(), n);
      ASSERT_NEAR(sum_of_squares(a.p(), n), squares, 1e-13 * squares) << n;
    }
    const Floats huge(3, 3e30f);  // the square is no float
    EXPECT_NEAR(sum_of_squares(huge.data(), 3) / 2.7e61, 1, 1e-6);
  });
}

TEST(Rows, Largest) {
  on_every_target([] {
    EXPECT_EQ(largest(static_cast<const float*>(nullptr), 0), -kInf);
    EXPECT_EQ(arg_max(static_cast<const float*>(nullptr), 0), -1);
    for (const int64_t n : lengths()) {
      if (n == 0) continue;
      for (const int64_t place : {int64_t{0}, n / 2, n - 1}) {
        Floats x0 = normals(n, 6);
        x0[static_cast<size_t>(place)] = 10;
        if (place + 1 < n) x0.back() = 10;
        Row x(x0, 5);
        ASSERT_EQ(largest(x.p(), n), 10);
        ASSERT_EQ(arg_max(x.p(), n), place);
        x.p()[place] = kNan;
        ASSERT_TRUE(std::isnan(largest(x.p(), n)));
        ASSERT_EQ(arg_max(x.p(), n), scalar::arg_max(x.p(), n));
      }
      const Floats low(static_cast<size_t>(n), -kInf), nan(static_cast<size_t>(n), kNan);
      ASSERT_EQ(largest(low.data(), n), -kInf);
      ASSERT_EQ(arg_max(low.data(), n), 0);
      ASSERT_EQ(arg_max(nan.data(), n), 0);
    }
  });
}

TEST(Rows, ColumnSumsAreInOrder) {
  on_every_target([] {
    for (const int64_t n : lengths())
      for (const int64_t rows : {0, 1, 5}) {
        const int64_t stride = n + 3;
        const Floats x = normals(rows * stride, 7);
        Floats expected = normals(n, 8);
        Row y(expected, 1);
        add_column_sums(x.data(), rows, stride, y.p(), n);
        scalar::add_column_sums(x.data(), rows, stride, expected.data(), n);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), y.p())) << n << " " << rows;
        y.expect_guards();
      }
  });
}

TEST(Rows, Softmax) {
  on_every_target([] {
    for (const int64_t n : lengths()) {
      const Floats x0 = normals(n, 9, 4);
      Row x(x0, 1), y(x0, 2);
      Doubles wx = wide(x0.data(), n), expected(wx.size());
      const double lse = scalar::softmax(wx.data(), expected.data(), n);
      const float got = softmax(x.p(), y.p(), n);
      if (n == 0) {
        EXPECT_EQ(got, -kInf);
        EXPECT_EQ(log_sum_exp(x.p(), 0), -kInf);
        continue;
      }
      ASSERT_NEAR(got, lse, 1e-6 * std::max(1.0, std::abs(lse)));
      ASSERT_EQ(log_sum_exp(x.p(), n), got);
      expect_near(y.p(), expected, 1e-30, 4e-6);
      y.expect_guards();
      ASSERT_EQ(softmax(x.p(), x.p(), n), got);
      ASSERT_TRUE(std::equal(x.p(), x.p() + n, y.p()));

      const Floats dy = normals(n, 10);
      Floats dx(dy.size());
      const Doubles wy = wide(y.p(), n), wdy = wide(dy.data(), n);
      Doubles wdx(wy.size());
      softmax_backward(y.p(), dy.data(), dx.data(), n);
      scalar::softmax_backward(wy.data(), wdy.data(), wdx.data(), n);
      expect_near(dx.data(), wdx, 1e-6, 1e-6);
    }
  });
}

template <class T>
void check_softmax_edges() {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> x(20, -inf), y(20, 5);
  EXPECT_EQ(softmax(x.data(), y.data(), 20), -inf);
  for (T v : y) EXPECT_EQ(v, 0);
  x[17] = 1000;
  EXPECT_EQ(softmax(x.data(), y.data(), 20), 1000);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(y[i], i == 17 ? 1 : 0);
  for (T bad : {nan, inf}) {
    x[17] = bad;
    softmax(x.data(), y.data(), 20);
    for (T v : y) EXPECT_TRUE(std::isnan(v));
  }
}
TEST(Rows, SoftmaxAtTheEdges) {
  on_every_target([] { check_softmax_edges<float>(); });
  check_softmax_edges<double>();
}

TEST(Rows, CrossEntropy) {
  on_every_target([] {
    for (const int64_t n : lengths())
      for (const double smoothing : {0.0, 0.1}) {
        if (n == 0) continue;
        const Floats x0 = normals(n, 11, 3), bias0 = normals(n, 12, 0.01);
        Row x(x0, 1), bias(bias0, 3);
        Doubles wx = wide(x0.data(), n), wbias = wide(bias0.data(), n);
        const int64_t target = n * 2 / 3;
        const double loss = cross_entropy(x.p(), n, target, smoothing, 0.25f, bias.p());
        const double expected = scalar::cross_entropy(wx.data(), n, target, smoothing, 0.25, wbias.data());
        ASSERT_NEAR(loss, expected, 1e-6) << n;
        expect_near(x.p(), wx, 1e-7, 2e-6);
        expect_near(bias.p(), wbias, 2e-7, 2e-6);
        x.expect_guards();
        bias.expect_guards();
        Floats without = x0;
        ASSERT_EQ(cross_entropy(without.data(), n, target, smoothing, 0.25f, nullptr), loss);
        ASSERT_TRUE(std::equal(without.begin(), without.end(), x.p()));
      }
  });
}

TEST(Rows, CrossEntropyByHand) {
  Doubles x = {std::log(1.0), std::log(2.0), std::log(5.0)};  // softmax 1/8, 2/8, 5/8
  EXPECT_NEAR(cross_entropy(x.data(), 3, 1, 0, 2, nullptr), std::log(4.0), 1e-15);
  EXPECT_NEAR(x[0], 0.25, 1e-15);
  EXPECT_NEAR(x[1], -1.5, 1e-15);
  EXPECT_NEAR(x[2], 1.25, 1e-15);
  x = {std::log(1.0), std::log(2.0), std::log(5.0)};
  const double expected = 0.7 * std::log(4.0) + 0.1 * (std::log(8.0) + std::log(4.0) + std::log(1.6));
  EXPECT_NEAR(cross_entropy(x.data(), 3, 1, 0.3, 1, nullptr), expected, 1e-15);
  EXPECT_NEAR(x[0], 0.125 - 0.1, 1e-15);
  EXPECT_NEAR(x[1], 0.25 - 0.7 - 0.1, 1e-15);
  on_every_target([] {
    Floats low = {-kInf, 0, 0};
    EXPECT_NEAR(cross_entropy(low.data(), 3, 1, 0, 1, nullptr), std::log(2.0), 1e-7);
    EXPECT_EQ(low[0], 0);
    Floats bad = {kNan, 0, 0};
    EXPECT_TRUE(std::isnan(cross_entropy(bad.data(), 3, 1, 0, 1, nullptr)));
  });
}

}  // namespace
}  // namespace regard::simd
