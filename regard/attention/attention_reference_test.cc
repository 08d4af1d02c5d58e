// The definition itself: by hand, and its gradients by numeric differentiation. The f64 path of attention.h
// is it.

#include "regard/attention/attention_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "regard/base/numeric_gradient.h"
#include "tests/support/attention_case.h"

namespace regard::attention {
namespace {

using tests::attention_options;
using tests::AttentionCase;
using tests::AttentionNumbers;

TEST(AttentionReference, ByHand) {
  // q = 1, k = (log 3, 0), scale 1: p = (3/4, 1/4), o = 3/4 8 + 1/4 4 = 7, l = log 4.
  AttentionNumbers<double> x({.H = 1, .T = 1, .S = 2, .D = 1, .E = 1});
  x.q = {1}, x.k = {std::log(3.0), 0}, x.v = {8, 4};
  x.forward(true);
  EXPECT_NEAR(x.out[0], 7, 1e-14);
  EXPECT_NEAR(x.lse[0], std::log(4.0), 1e-15);
  EXPECT_NEAR(x.weights[0], 0.75, 1e-15);
  EXPECT_NEAR(x.column_sums[1], 0.25, 1e-15);
  EXPECT_NEAR(x.scores[0], std::log(3.0), 1e-15);
  // do = 1: dv = p; dp = v, delta = 7: ds = (3/4 (8 - 7), 1/4 (4 - 7)) = (3/4, -3/4); dk = ds q.
  x.d_out = {1}, x.d_lse = {0};
  x.backward();
  EXPECT_NEAR(x.d_v[0], 0.75, 1e-15);
  EXPECT_NEAR(x.d_k[0], 0.75, 1e-14);
  EXPECT_NEAR(x.d_k[1], -0.75, 1e-14);
  EXPECT_NEAR(x.d_q[0], 0.75 * std::log(3.0), 1e-14);
  // The gradient of l alone is p.
  x.d_out = {0}, x.d_lse = {1};
  x.backward();
  EXPECT_NEAR(x.d_k[0], 0.75, 1e-15);
  EXPECT_NEAR(x.d_k[1], 0.25, 1e-15);
}

/// Every gradient of sum(out d_out) + sum(l d_l) by numeric differentiation.
void check_gradients(const AttentionCase& c) {
  SCOPED_TRACE(c.name);
  AttentionNumbers<double> x(c);
  x.forward();
  for (size_t n = 0; n < x.lse.size(); ++n) {  // an empty row's log-sum-exp has no gradient
    if (!std::isfinite(x.lse[n])) x.d_lse[n] = 0;
  }
  x.backward();
  const auto loss = [&] {
    x.forward();
    double sum = 0;
    for (size_t n = 0; n < x.out.size(); ++n) sum += x.out[n] * x.d_out[n];
    for (size_t n = 0; n < x.lse.size(); ++n) sum += x.d_lse[n] == 0 ? 0 : x.lse[n] * x.d_lse[n];
    return sum;
  };
  EXPECT_LT(gradient_error(x.d_q, numeric_gradient(loss, x.q)), 1e-6) << "d_q";
  EXPECT_LT(gradient_error(x.d_k, numeric_gradient(loss, x.k)), 1e-6) << "d_k";
  EXPECT_LT(gradient_error(x.d_v, numeric_gradient(loss, x.v)), 1e-6) << "d_v";
  if (c.bias != AttentionCase::Bias::none && c.minus_infinity == 0) {
    EXPECT_LT(gradient_error(x.d_bias, numeric_gradient(loss, x.bias)), 1e-6) << "d_bias";
  }
  if (c.sink) {
    EXPECT_LT(gradient_error(x.d_sink, numeric_gradient(loss, x.sink)), 1e-6) << "d_sink";
  }
}

TEST(AttentionReference, Gradients) {
  for (AttentionCase c : attention_options()) {
    c.B = 2, c.T = 6, c.S = 5, c.D = 3, c.E = 2;
    c.query_block = std::min<int64_t>(c.query_block, 4);
    c.key_block = std::min<int64_t>(c.key_block, 2);
    check_gradients(c);
  }
  check_gradients({.name = "ragged, grouped",
                   .H = 4,
                   .Hkv = 2,
                   .T = 7,
                   .S = 6,
                   .D = 2,
                   .E = 3,
                   .causal = true,
                   .query_starts = {0, 2, 2, 7},
                   .key_starts = {0, 1, 4, 6},
                   .sink = true});
  check_gradients({.name = "lengths, bias of keys",
                   .B = 2,
                   .T = 5,
                   .S = 6,
                   .D = 2,
                   .E = 3,
                   .query_lengths = {5, 2},
                   .key_lengths = {4, 0},
                   .bias = AttentionCase::Bias::keys});
}

TEST(AttentionReference, KeysWithoutMasksHaveNoGradientOfASharedBias) {
  // The same number added to all scores of a row changes its log-sum-exp alone.
  AttentionNumbers<double> x({.T = 4, .S = 6, .bias = AttentionCase::Bias::pairs});
  x.d_lse.assign(x.d_lse.size(), 0);
  x.forward();
  x.backward();
  for (size_t row = 0; row < 8; ++row) {
    double sum = 0;
    for (size_t j = 0; j < 6; ++j) sum += x.d_bias[row * 6 + j];
    EXPECT_NEAR(sum, 0, 1e-12);
  }
}

}  // namespace
}  // namespace regard::attention
