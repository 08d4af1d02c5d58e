// Fused operations against their compositions, and closed forms.

#include "regard/autograd/layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "regard/autograd/multi_head.h"
#include "regard/autograd/operations.h"
#include "regard/base/random.h"

namespace regard::autograd {
namespace {

Tensor normal(Shape shape, uint64_t seed) {
  Tensor x = Tensor::empty(std::move(shape), DType::f64);
  RandomStream random(seed, 2);
  for (double& v : x.values<double>()) v = random.normal();
  return x;
}

void expect_near(const Tensor& a, const Tensor& b, double bound) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a.data<double>()[i], b.data<double>()[i], bound);
}

TEST(Layers, FusedOperationsEqualTheirCompositions) {
  const Tensor a = normal({3, 7}, 1), x = normal({3, 7}, 2);
  const RowDropout drop{0.4, {5, 6, 7}};
  expect_near(add_dropout(a, x, drop), add(a, dropout(x, 0.4, drop.keys)), 1e-15);
  expect_near(add_dropout(a, x, {}), add(a, x), 0);
  expect_near(swish(x), multiply(x, sigmoid(x)), 1e-15);
}

TEST(Layers, ScaledRowsAreRows) {
  const Tensor table = normal({4, 3}, 1);
  const Tensor y = scaled_rows(table, std::vector<int32_t>{3, 1}, 2);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(y.as_matrix<double>()(0, i), 2 * table.as_matrix<double>()(3, i));
    EXPECT_EQ(y.as_matrix<double>()(1, i), 2 * table.as_matrix<double>()(1, i));
  }
  EXPECT_THROW(scaled_rows(table, std::vector<int32_t>{4}, 2), ShapeError);
}

TEST(Layers, ProductsOfTurnedVectorsDependOnTheDistanceAlone) {
  const Tensor q = normal({1, 6}, 1), k = normal({1, 6}, 2);
  const auto product = [&](int32_t i, int32_t j) {
    return sum(multiply(rotary(q, std::vector<int32_t>{i}, 6, 6), rotary(k, std::vector<int32_t>{j}, 6, 6)))
        .data<double>()[0];
  };
  EXPECT_NEAR(product(3, 1), product(103, 101), 1e-12);
  EXPECT_GT(std::abs(product(3, 1) - product(1, 3)), 1e-3);
  EXPECT_NEAR(product(0, 0), sum(multiply(q, k)).data<double>()[0], 1e-14);
  EXPECT_THROW(rotary(q, std::vector<int32_t>{0}, 3, 6), ShapeError);
}

TEST(MultiHead, SlopesOfAlibi) {
  EXPECT_EQ(alibi_slopes(4), (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625}));
  const std::vector<double> six = alibi_slopes(6);  // those of four, then the first and third of eight
  EXPECT_EQ(six[3], 0.00390625);
  EXPECT_EQ(six[4], 0.5);
  EXPECT_EQ(six[5], 0.125);
}

TEST(MultiHead, OneHeadIsTheFormula) {
  const Tensor qkv = normal({3, 6}, 1);
  const Tensor y = self_attention(qkv, {{0, 3}}, {.causal = true});
  const auto x = qkv.as_matrix<double>();
  for (int64_t i = 0; i < 3; ++i) {
    double total = 0, expected[2] = {0, 0};
    for (int64_t j = 0; j <= i; ++j) {
      const double p = std::exp((x(i, 0) * x(j, 2) + x(i, 1) * x(j, 3)) / std::sqrt(2.0));
      total += p;
      for (int64_t e = 0; e < 2; ++e) expected[e] += p * x(j, 4 + e);
    }
    for (int64_t e = 0; e < 2; ++e) EXPECT_NEAR(y.as_matrix<double>()(i, e), expected[e] / total, 1e-14);
  }
}

TEST(MultiHead, WhatDoesNotFitIsRefused) {
  const Tensor qkv = normal({3, 6}, 1), kv = normal({3, 4}, 2), q = normal({3, 2}, 3);
  EXPECT_THROW(self_attention(qkv, {{0, 2}}, {}), ShapeError);
  EXPECT_THROW(self_attention(qkv, {{0, 3}}, {.heads = 4}), ShapeError);
  EXPECT_THROW(self_attention(qkv, {{0, 3}}, {.relative_keys = normal({4, 2}, 1)}), ShapeError);
  EXPECT_THROW(cross_attention(q, kv, {{0, 3}}, {{0, 1, 3}}, {}), ShapeError);
  EXPECT_THROW(cross_attention(q, kv, {{0, 3}}, {{0, 3}}, {.causal = true}), UsageError);
}

}  // namespace
}  // namespace regard::autograd
