#include "regard/attention/lookup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "regard/attention/scores_reference.h"
#include "regard/base/numeric_gradient.h"
#include "tests/support/every_target.h"
#include "tests/support/expect_error.h"
#include "tests/support/padded_matrix.h"

namespace regard::attention {
namespace {

using tests::expect_shape_error;
using tests::normals;
using tests::on_every_target;
using tests::Padded;

template <class T>
struct Problem {
  Problem(int64_t R, int64_t S, int64_t D, int64_t E)
      : q(R, D, uint64_t{1}),
        keys(S, D, uint64_t{2}),
        values(S, E, uint64_t{3}),
        weights(R, S, T{77}),
        out(R, E, T{77}),
        d_out(R, E, uint64_t{4}),
        d_q(R, D, T{0}),
        d_keys(S, D, T{0}),
        d_values(S, E, T{0}),
        indices(static_cast<size_t>(R)) {}
  Padded<T> q, keys, values, weights, out, d_out, d_q, d_keys, d_values;
  std::vector<int64_t> indices;

  LookupTable<T> table() { return {keys.view(), values.view()}; }
  void soft(double temperature) { soft_lookup(q.view(), table(), temperature, weights.view(), out.view()); }
  void hard() { hard_lookup(q.view(), table(), indices, out.view()); }
  void backward(double temperature) {
    soft_lookup_backward(q.view(), table(), temperature, weights.view(),
                         {d_out.view(), d_q.view(), d_keys.view(), d_values.view()});
  }
};

TEST(Lookup, ByHand) {
  const std::vector<double> q = {1}, keys = {0, std::log(3.), 0}, values = {10, 20, 30};
  const LookupTable<double> table{matrix(keys.data(), 3, 1), matrix(values.data(), 3, 1)};
  std::vector<double> p(3), out(1), p2(2);
  std::vector<int64_t> index(2);
  soft_lookup(matrix(q.data(), 1, 1), table, 1, matrix(p.data(), 1, 3), matrix(out.data(), 1, 1));
  EXPECT_NEAR(out[0], 20, 1e-14);
  EXPECT_NEAR(p[1], 0.6, 1e-15);
  top_k_lookup(matrix(q.data(), 1, 1), table, 1, matrix(index.data(), 1, 2), matrix(p2.data(), 1, 2),
               matrix(out.data(), 1, 1));
  EXPECT_EQ(index, (std::vector<int64_t>{1, 0}));  // of the equal ones the lower
  EXPECT_NEAR(out[0], 0.75 * 20 + 0.25 * 10, 1e-14);
  hard_lookup(matrix(q.data(), 1, 1), table, std::span(index).first(1), matrix(out.data(), 1, 1));
  EXPECT_EQ(index[0], 1);
  EXPECT_EQ(out[0], 20);
}

TEST(Lookup, F64IsTheFormula) {
  Problem<double> p(5, 9, 4, 3);
  for (const double temperature : {0.3, 1., 4.}) {
    p.soft(temperature);
    for (int64_t i = 0; i < 5; ++i) {
      reference::Vector s(p.q.view().row(i), p.q.view().row(i) + 4);
      for (double& x : s) x /= temperature;
      const reference::Vector weights = reference::softmax(reference::dot_scores(s, p.keys.view()));
      const reference::Vector c = reference::context(weights, p.values.view());
      for (int64_t j = 0; j < 9; ++j) EXPECT_NEAR(p.weights(i, j), weights[static_cast<size_t>(j)], 1e-14);
      for (int64_t e = 0; e < 3; ++e) EXPECT_NEAR(p.out(i, e), c[static_cast<size_t>(e)], 1e-14);
    }
  }
}

TEST(Lookup, ColdSoftLookupIsTheHardOne) {
  Problem<double> p(20, 30, 6, 5);
  p.hard();
  const Padded<double> hard = p.out;
  const auto distance = [&](double temperature) {
    p.soft(temperature);
    double largest = 0;
    for (size_t i = 0; i < hard.data.size(); ++i)
      largest = std::max(largest, std::abs(p.out.data[i] - hard.data[i]));
    return largest;
  };
  EXPECT_GT(distance(1), 0.1);
  EXPECT_LT(distance(1e-3), 1e-3);
  EXPECT_EQ(distance(0), 0);
  p.keys.data =
      std::vector<double>(p.keys.data.size());  // all scores equal: the limit is the mean, hard the first
  p.soft(0);
  p.backward(0);
  for (int64_t j = 0; j < 30; ++j) EXPECT_EQ(p.weights(0, j), 1. / 30);
  EXPECT_EQ(p.d_q.data, std::vector<double>(p.d_q.data.size()));
  p.hard();
  EXPECT_EQ(p.indices, std::vector<int64_t>(20));
}

TEST(Lookup, Gradients) {
  Problem<double> p(3, 7, 4, 3);
  p.soft(0.7);
  p.backward(0.7);
  const auto loss = [&] {
    p.soft(0.7);
    double sum = 0;
    for (int64_t i = 0; i < 3; ++i) sum += reference::product(p.out.view().row(i), p.d_out.view().row(i), 3);
    return sum;
  };
  EXPECT_LT(gradient_error(p.d_q.data, numeric_gradient(loss, p.q.data)), 1e-6);
  EXPECT_LT(gradient_error(p.d_keys.data, numeric_gradient(loss, p.keys.data)), 1e-6);
  EXPECT_LT(gradient_error(p.d_values.data, numeric_gradient(loss, p.values.data)), 1e-6);
}

void expect_close(const std::vector<float>& y, const std::vector<double>& expected, double tolerance) {
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], tolerance * (1 + std::abs(expected[i])));
}

TEST(Lookup, F32EqualsF64) {
  on_every_target([] {
    for (const int64_t D : {1, 2, 7, 16, 33, 80}) {
      Problem<float> f32(70, 3 * D, D, D + 5);
      Problem<double> f64(70, 3 * D, D, D + 5);
      f32.soft(1.3);
      f64.soft(1.3);
      f32.backward(1.3);
      f64.backward(1.3);
      expect_close(f32.weights.data, f64.weights.data, 1e-5);
      expect_close(f32.out.data, f64.out.data, 1e-5);
      expect_close(f32.d_q.data, f64.d_q.data, 1e-4);
      expect_close(f32.d_keys.data, f64.d_keys.data, 1e-4);
      expect_close(f32.d_values.data, f64.d_values.data, 1e-4);
      f32.hard();
      f64.hard();
      EXPECT_EQ(f32.indices, f64.indices);
      expect_close(f32.out.data, f64.out.data, 0);
    }
  });
}

TEST(Lookup, TopKIsSoftOverTheLargest) {
  Problem<double> p(6, 11, 4, 3);
  Padded<double> weights(6, 11, 77.), out(6, 3, 77.);
  std::vector<int64_t> index(6 * 14);
  p.soft(0.5);
  top_k_lookup(p.q.view(), p.table(), 0.5, matrix(index.data(), 6, 11), weights.view(), out.view());
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t n = 0; n < 11; ++n)
      EXPECT_NEAR(weights(i, n), p.weights(i, index[static_cast<size_t>(i * 11 + n)]), 1e-14);
    for (int64_t n = 1; n < 11; ++n) EXPECT_LE(weights(i, n), weights(i, n - 1));
    for (int64_t e = 0; e < 3; ++e) EXPECT_NEAR(out(i, e), p.out(i, e), 1e-14);
  }
  Padded<double> more(6, 14, 77.);
  top_k_lookup(p.q.view(), p.table(), 0.5, matrix(index.data(), 6, 14), more.view(), out.view());
  for (int64_t n = 11; n < 14; ++n) {
    EXPECT_EQ(index[static_cast<size_t>(n)], -1);
    EXPECT_EQ(more(0, n), 0);
  }
  Padded<double> one(6, 1, 77.);
  top_k_lookup(p.q.view(), p.table(), 0.5, matrix(index.data(), 6, 1), one.view(), out.view());
  p.hard();
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(index[static_cast<size_t>(i)], p.indices[static_cast<size_t>(i)]);
    EXPECT_EQ(one(i, 0), 1);
  }
}

TEST(Lookup, EmptyTablesAndNan) {
  on_every_target([] {
    Problem<float> empty(3, 0, 4, 5);
    empty.soft(1);
    EXPECT_EQ(empty.out(2, 4), 0);
    empty.backward(1);
    EXPECT_EQ(empty.d_q(2, 3), 0);
    empty.hard();
    EXPECT_EQ(empty.indices[1], -1);
    EXPECT_EQ(empty.out(1, 0), 0);
    Problem<float> p(2, 20, 4, 5);
    p.q(1, 2) = std::numeric_limits<float>::quiet_NaN();
    for (const double temperature : {0., 1.}) {
      p.soft(temperature);
      EXPECT_TRUE(std::isfinite(p.out(0, 0)));
      EXPECT_TRUE(std::isnan(p.out(1, 0)));
    }
    p.hard();
    EXPECT_GE(p.indices[0], 0);
    EXPECT_EQ(p.indices[1], -1);
    EXPECT_TRUE(std::isnan(p.out(1, 4)));
    Padded<float> weights(2, 3, 77.f);
    std::vector<int64_t> index(6);
    top_k_lookup(p.q.view(), p.table(), 1, matrix(index.data(), 2, 3), weights.view(), p.out.view());
    EXPECT_TRUE(std::isfinite(p.out(0, 0)));
    EXPECT_TRUE(std::isnan(p.out(1, 0)));
    EXPECT_EQ(index[3], -1);
  });
}

TEST(Lookup, ARowAloneEqualsTheRowInABatch) {
  on_every_target([] {
    Problem<float> all(100, 37, 20, 21), alone(1, 37, 20, 21);
    all.soft(1);
    for (const int64_t i : {0, 3, 63, 99}) {
      std::copy_n(all.q.view().row(i), 20, alone.q.view().row(0));
      alone.soft(1);
      for (int64_t e = 0; e < 21; ++e) EXPECT_EQ(alone.out(0, e), all.out(i, e));
    }
  });
}

TEST(Lookup, ShapeErrors) {
  const auto broken = [](const std::function<void(Problem<float>&)>& change, const std::string& part) {
    Problem<float> p(2, 3, 4, 5);
    change(p);
    expect_shape_error([&] { p.soft(1), p.backward(1), p.hard(); }, part);
  };
  broken([](auto& p) { p.keys.columns = 3; }, "[lookup] keys [3, 3], expected [3, 4] (S, D)");
  broken([](auto& p) { p.values.rows = 2; }, "values [2, 5], expected [3, 5]");
  broken([](auto& p) { p.weights.columns = 2; }, "weights [2, 2], expected [2, 3]");
  broken([](auto& p) { p.out.rows = 1; }, "out [1, 5], expected [2, 5]");
  broken([](auto& p) { p.d_keys.rows = 2; }, "d_keys [2, 4], expected [3, 4]");
  broken([](auto& p) { p.indices.resize(3); }, "indices [3], expected [2]");
  Problem<float> p(2, 3, 4, 5);
  expect_shape_error([&] { p.soft(-1); }, "temperature is -1");
}

}  // namespace
}  // namespace regard::attention
