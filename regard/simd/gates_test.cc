#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "regard/base/numeric_gradient.h"
#include "regard/base/random.h"
#include "regard/simd/rows.h"
#include "regard/simd/scalar.h"
#include "tests/support/every_target.h"

namespace regard::simd {
namespace {

using tests::on_every_target;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// `n` values, that stand one behind an aligned address; the same for float and double.
template <class T>
std::vector<T> values(int64_t n, uint64_t seed) {
  RandomStream random(seed, 2);
  std::vector<T> x(static_cast<size_t>(n));
  for (T& v : x) v = static_cast<T>(static_cast<float>(random.normal()));
  return x;
}

template <class T>
void expect_close(const std::vector<T>& y, const Doubles& expected, double tolerance) {
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i << " of " << y.size();
}

template <class T, class Forward, class Backward>
struct Gru {
  explicit Gru(int64_t size) : n(size) {}
  int64_t n;
  std::vector<T> x = values<T>(3 * n, 1), x2 = values<T>(3 * n, 2), gh = values<T>(3 * n, 3),
                 bn = values<T>(n, 4);
  std::vector<T> h_prev = values<T>(n, 5), dh = values<T>(n, 6), carry = values<T>(n, 7),
                 dx_sum = values<T>(3 * n, 8);
  std::vector<T> gates = std::vector<T>(static_cast<size_t>(4 * n)),
                 h = std::vector<T>(static_cast<size_t>(n));
  std::vector<T> dx = std::vector<T>(static_cast<size_t>(3 * n)), dgh = dx;

  void forward(bool with_x2 = true, bool keep = true) {
    gru_forward(Forward{x.data(), with_x2 ? x2.data() : nullptr, gh.data(), bn.data(), h_prev.data(),
                        keep ? gates.data() : nullptr, h.data()},
                n);
  }
  void backward() {
    gru_backward(
        Backward{gates.data(), h_prev.data(), dh.data(), carry.data(), dx.data(), dx_sum.data(), dgh.data()},
        n);
  }
};
using Gru32 = Gru<float, GruForward, GruBackward>;
using Gru64 = Gru<double, GruForwardF64, GruBackwardF64>;

TEST(Gates, GruEqualsItsTwin) {
  on_every_target([] {
    for (int64_t n = 0; n <= 70; ++n) {
      Gru32 f32(n);
      Gru64 f64(n);
      f32.forward();
      f64.forward();
      expect_close(f32.h, f64.h, 2e-6);
      expect_close(f32.gates, f64.gates, 2e-6);
      f32.backward();
      f64.backward();
      expect_close(f32.dx, f64.dx, 5e-6);
      expect_close(f32.dx_sum, f64.dx_sum, 5e-6);
      expect_close(f32.dgh, f64.dgh, 5e-6);
      expect_close(f32.carry, f64.carry, 5e-6);
    }
  });
}

TEST(Gates, GruWithoutOptionalOperandsAndInPlace) {
  on_every_target([] {
    const int64_t n = 37;
    Gru32 a(n), b(n);
    a.x2.assign(a.x2.size(), 0);
    a.forward();
    b.forward(false, false);
    EXPECT_EQ(a.h, b.h);
    EXPECT_EQ(b.gates, Floats(b.gates.size()));

    Floats shared = b.x2;  // gates where x2 is
    shared.resize(static_cast<size_t>(4 * n));
    Gru32 c(n);
    c.forward();
    gru_forward(GruForward{c.x.data(), shared.data(), c.gh.data(), c.bn.data(), c.h_prev.data(),
                           shared.data(), b.h.data()},
                n);
    EXPECT_EQ(shared, c.gates);
    EXPECT_EQ(b.h, c.h);
    Floats carry = c.carry;
    gru_backward(GruBackward{shared.data(), c.h_prev.data(), c.dh.data(), carry.data(), nullptr, nullptr,
                             shared.data()},
                 n);
    c.backward();
    shared.resize(static_cast<size_t>(3 * n));
    EXPECT_EQ(shared, c.dgh);
    EXPECT_EQ(carry, c.carry);
  });
}

TEST(Gates, GruGradients) {
  const int64_t n = 5;
  Gru64 g(n);
  g.carry.assign(g.carry.size(), 0);
  g.forward();
  g.backward();
  const auto loss = [&] {
    g.forward(true, false);
    return scalar::dot(g.h.data(), g.dh.data(), n);
  };
  EXPECT_LT(gradient_error(g.dx, numeric_gradient(loss, g.x)), 1e-8);
  EXPECT_LT(gradient_error(g.dgh, numeric_gradient(loss, g.gh)), 1e-8);
  EXPECT_LT(gradient_error(g.carry, numeric_gradient(loss, g.h_prev)), 1e-8);
  EXPECT_LT(gradient_error(Doubles(g.dgh.begin() + 2 * n, g.dgh.end()), numeric_gradient(loss, g.bn)), 1e-8);
}

TEST(Gates, GruByHand) {
  // r = z = 1/2, q = 2, n~ = tanh(0.5 2) = tanh(1), h = n~ / 2 + 3 / 2
  const Doubles x = {0, 0, 0}, gh = {0, 0, 1}, bn = {1}, h_prev = {3};
  double h = 0;
  gru_forward(GruForwardF64{x.data(), nullptr, gh.data(), bn.data(), h_prev.data(), nullptr, &h}, 1);
  EXPECT_NEAR(h, std::tanh(1.0) / 2 + 1.5, 1e-15);
}

template <class T, class Forward, class Backward>
struct Lstm {
  explicit Lstm(int64_t size) : n(size) {}
  int64_t n;
  std::vector<T> x = values<T>(4 * n, 1), x2 = values<T>(4 * n, 2), gh = values<T>(4 * n, 3);
  std::vector<T> c_prev = values<T>(n, 4), dh = values<T>(n, 5), dc = values<T>(n, 6),
                 h_carry = values<T>(n, 7), c_carry = values<T>(n, 8), dx_sum = values<T>(4 * n, 9);
  std::vector<T> gates = std::vector<T>(static_cast<size_t>(4 * n)), dgates = gates,
                 c = std::vector<T>(static_cast<size_t>(n)), h = c;

  void forward(bool with_x2 = true, bool keep = true) {
    lstm_forward(Forward{x.data(), with_x2 ? x2.data() : nullptr, gh.data(), c_prev.data(),
                         keep ? gates.data() : nullptr, c.data(), h.data()},
                 n);
  }
  void backward() {
    lstm_backward(Backward{gates.data(), c_prev.data(), c.data(), dh.data(), dc.data(), h_carry.data(),
                           c_carry.data(), dx_sum.data(), dgates.data()},
                  n);
  }
};
using Lstm32 = Lstm<float, LstmForward, LstmBackward>;
using Lstm64 = Lstm<double, LstmForwardF64, LstmBackwardF64>;

TEST(Gates, LstmEqualsItsTwin) {
  on_every_target([] {
    for (int64_t n = 0; n <= 70; ++n) {
      Lstm32 f32(n);
      Lstm64 f64(n);
      f32.forward();
      f64.forward();
      expect_close(f32.gates, f64.gates, 2e-6);
      expect_close(f32.c, f64.c, 2e-6);
      expect_close(f32.h, f64.h, 2e-6);
      f32.backward();
      f64.backward();
      expect_close(f32.dgates, f64.dgates, 5e-6);
      expect_close(f32.dx_sum, f64.dx_sum, 5e-6);
      expect_close(f32.c_carry, f64.c_carry, 5e-6);
    }
  });
}

TEST(Gates, LstmWithoutOptionalOperandsAndInPlace) {
  on_every_target([] {
    const int64_t n = 37;
    Lstm32 a(n), b(n);
    a.x2.assign(a.x2.size(), 0);
    a.forward();
    b.forward(false, false);
    EXPECT_EQ(a.h, b.h);
    EXPECT_EQ(a.c, b.c);
    EXPECT_EQ(b.gates, Floats(b.gates.size()));

    Lstm32 c(n);
    c.forward();
    Floats shared = c.gh, cell = c.c_prev;  // gates where gh is, c where c_prev is
    lstm_forward(LstmForward{c.x.data(), c.x2.data(), shared.data(), cell.data(), shared.data(), cell.data(),
                             b.h.data()},
                 n);
    EXPECT_EQ(shared, c.gates);
    EXPECT_EQ(cell, c.c);
    EXPECT_EQ(b.h, c.h);
    c.dc.assign(c.dc.size(), 0);
    Floats carry = c.c_carry;
    lstm_backward(LstmBackward{shared.data(), c.c_prev.data(), c.c.data(), c.dh.data(), nullptr,
                               c.h_carry.data(), carry.data(), nullptr, shared.data()},
                  n);
    c.backward();
    EXPECT_EQ(shared, c.dgates);
    EXPECT_EQ(carry, c.c_carry);
  });
}

TEST(Gates, LstmGradients) {
  const int64_t n = 5;
  Lstm64 g(n);
  g.h_carry.assign(g.h_carry.size(), 0);
  g.c_carry.assign(g.c_carry.size(), 0);
  g.forward();
  g.backward();
  const auto loss = [&] {
    g.forward(true, false);
    return scalar::dot(g.h.data(), g.dh.data(), n) + scalar::dot(g.c.data(), g.dc.data(), n);
  };
  EXPECT_LT(gradient_error(g.dgates, numeric_gradient(loss, g.x)), 1e-8);
  EXPECT_LT(gradient_error(g.dgates, numeric_gradient(loss, g.gh)), 1e-8);
  EXPECT_LT(gradient_error(g.c_carry, numeric_gradient(loss, g.c_prev)), 1e-8);
}

TEST(Gates, LstmByHand) {
  // i = f = o = 1/2, g = tanh(1), c = 3 / 2 + tanh(1) / 2, h = tanh(c) / 2
  const Doubles x = {0, 0, 0.25, 0}, gh = {0, 0, 0.75, 0}, c_prev = {3};
  double c = 0, h = 0;
  lstm_forward(LstmForwardF64{x.data(), nullptr, gh.data(), c_prev.data(), nullptr, &c, &h}, 1);
  EXPECT_NEAR(c, 1.5 + std::tanh(1.0) / 2, 1e-15);
  EXPECT_NEAR(h, std::tanh(1.5 + std::tanh(1.0) / 2) / 2, 1e-15);
}

TEST(Gates, AdamEqualsItsTwin) {
  const AdamStep step{.rate = 0.01f,
                      .beta1 = 0.9f,
                      .beta2 = 0.98f,
                      .epsilon = 1e-9f,
                      .decay = 0.1f,
                      .correction1 = 5.263158f,
                      .correction2 = 25.25253f,
                      .gradient_scale = 0.5f};
  on_every_target([&] {
    for (int64_t n = 0; n <= 70; ++n) {
      Floats w = values<float>(n, 1), m = values<float>(n, 3), v = values<float>(n, 4);
      for (float& x : v) x = x * x;
      const Floats g = values<float>(n, 2);
      Doubles w64(w.begin(), w.end()), m64(m.begin(), m.end()), v64(v.begin(), v.end());
      const Doubles g64(g.begin(), g.end());
      adam(w.data(), g.data(), m.data(), v.data(), n, step);
      scalar::adam(w64.data(), g64.data(), m64.data(), v64.data(), n, step);
      expect_close(w, w64, 1e-6);
      expect_close(m, m64, 1e-6);
      expect_close(v, v64, 1e-6);
    }
  });
}

TEST(Gates, AdamsFirstStepIsTheRate) {
  // Kingma and Ba 2015: with m = v = 0 the corrected step is rate g / (|g| + epsilon).
  const AdamStep step{.rate = 0.125f,
                      .beta1 = 0.9f,
                      .beta2 = 0.98f,
                      .epsilon = 1e-9f,
                      .decay = 0,
                      .correction1 = 1 / (1 - 0.9f),
                      .correction2 = 1 / (1 - 0.98f),
                      .gradient_scale = 1};
  on_every_target([&] {
    Floats w = {1, 1, 1}, m(3), v(3);
    const Floats g = {2, -0.001f, 0};
    adam(w.data(), g.data(), m.data(), v.data(), 3, step);
    EXPECT_NEAR(w[0], 0.875, 1e-6);
    EXPECT_NEAR(w[1], 1.125, 1e-6);
    EXPECT_EQ(w[2], 1);
  });
}

}  // namespace
}  // namespace regard::simd
