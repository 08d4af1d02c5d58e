#include "regard/attention/intra.h"

#include <gtest/gtest.h>

#include <cmath>
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
using tests::on_every_target;
using tests::Padded;

constexpr int64_t kSteps = 4;
const std::vector<int64_t> kOffsets = {0, 5, 5, 14};
const std::vector<int32_t> kSentences = {2, 0, 1, 2};

/// A decoder of four steps over three sentences, whose scores are given.
template <class T>
struct Decoder {
  static constexpr int64_t R = 4, longest = 9;
  int64_t E;
  std::vector<Padded<T>> scores, weights, contexts, sums, d_contexts, d_weights, d_scores;
  Padded<T> values, d_values;

  explicit Decoder(int64_t e) : E(e), values(14, e, uint64_t{1}), d_values(14, e, T{0}) {
    for (uint64_t t = 0; t < kSteps; ++t) {
      scores.emplace_back(R, longest, 2 + t);
      d_contexts.emplace_back(R, E, 20 + t);
      d_weights.emplace_back(R, longest, 30 + t);
      weights.emplace_back(R, longest, T{77});
      contexts.emplace_back(R, E, T{77});
      sums.emplace_back(R, longest, T{77});
      d_scores.emplace_back(R, longest, T{0});
    }
  }
  IntraOperands<T> operands(size_t t) {
    IntraOperands<T> o{scores[t].view(), {}, values.view(), kOffsets, kSentences};
    if (t > 0) o.before = sums[t - 1].view();
    return o;
  }
  void forward(ThreadPool* pool = nullptr) {
    for (size_t t = 0; t < kSteps; ++t)
      intra_forward(operands(t), weights[t].view(), contexts[t].view(), sums[t].view(), pool);
  }
  void backward(ThreadPool* pool = nullptr) {
    Padded<T> carry(R, longest, T{0});  // the gradient of the sums, from the last step to the first
    for (size_t t = kSteps; t-- > 0;)
      intra_backward(operands(t), weights[t].view(),
                     {d_contexts[t].view(), d_weights[t].view(), carry.view(), d_scores[t].view(),
                      carry.view(), d_values.view()},
                     pool);
  }
  static int64_t length(int64_t i) {
    const auto b = static_cast<size_t>(kSentences[static_cast<size_t>(i)]);
    return kOffsets[b + 1] - kOffsets[b];
  }
  double loss() {
    forward();
    double sum = 0;
    for (size_t t = 0; t < kSteps; ++t)
      for (int64_t i = 0; i < R; ++i) {
        for (int64_t s = 0; s < length(i); ++s) sum += weights[t](i, s) * d_weights[t](i, s);
        for (int64_t e = 0; e < E; ++e) sum += contexts[t](i, e) * d_contexts[t](i, e);
      }
    return sum;
  }
};

TEST(Intra, F64IsAsPrinted) {
  Decoder<double> p(3);
  p.forward();
  for (int64_t i = 0; i < 4; ++i)
    for (size_t t = 0; t < kSteps; ++t) {
      std::vector<double> share;
      double total = 0;
      for (int64_t s = 0; s < p.length(i); ++s) {
        double sum = 0;
        for (size_t u = 0; u < t; ++u) sum += std::exp(p.scores[u](i, s));
        share.push_back(t == 0 ? std::exp(p.scores[t](i, s)) : std::exp(p.scores[t](i, s)) / sum);
        total += share.back();
      }
      for (double& x : share) x /= total;
      const int64_t begin = kOffsets[static_cast<size_t>(kSentences[static_cast<size_t>(i)])];
      const reference::Vector c =
          reference::context(share, p.values.view().row_range(begin, begin + p.length(i)));
      for (int64_t s = 0; s < p.length(i); ++s)
        EXPECT_NEAR(p.weights[t](i, s), share[static_cast<size_t>(s)], 1e-14);
      for (int64_t e = 0; e < 3; ++e) EXPECT_NEAR(p.contexts[t](i, e), c[static_cast<size_t>(e)], 1e-14);
    }
}

TEST(Intra, GradientsThroughAllSteps) {
  Decoder<double> p(3);
  p.forward();
  p.backward();
  for (size_t t = 0; t < kSteps; ++t)
    EXPECT_LT(
        gradient_error(p.d_scores[t].data, numeric_gradient([&] { return p.loss(); }, p.scores[t].data)),
        1e-6);
  EXPECT_LT(gradient_error(p.d_values.data, numeric_gradient([&] { return p.loss(); }, p.values.data)), 1e-6);
}

TEST(Intra, F32EqualsF64) {
  on_every_target([] {
    for (const int64_t E : {1, 7, 16, 40, 150}) {
      Decoder<float> f32(E);
      Decoder<double> f64(E);
      f32.forward();
      f32.backward();
      f64.forward();
      f64.backward();
      for (size_t t = 0; t < kSteps; ++t) {
        for (size_t n = 0; n < f64.weights[t].data.size(); ++n) {
          EXPECT_NEAR(f32.weights[t].data[n], f64.weights[t].data[n], 2e-6);
          EXPECT_NEAR(f32.d_scores[t].data[n], f64.d_scores[t].data[n], 2e-5);
        }
        for (size_t n = 0; n < f64.contexts[t].data.size(); ++n)
          EXPECT_NEAR(f32.contexts[t].data[n], f64.contexts[t].data[n], 5e-6);
      }
    }
  });
}

TEST(Intra, LargeScoresAndMaskedPositions) {
  // exp(1000) would overflow; a position at -infinity weighs nothing and counts as not yet scored.
  const double nothing = -std::numeric_limits<double>::infinity();
  const std::vector<double> first = {1000, 1001, nothing}, second = {1000, 1000, 0}, h = {1, 2, 3};
  std::vector<double> weights(3), c(1), L1(3), L2(3);
  const std::vector<int64_t> offsets = {0, 3};
  const auto row = [](auto& x) { return matrix(x.data(), 1, static_cast<int64_t>(x.size())); };
  IntraOperands<double> o{row(first), {}, matrix(h.data(), 3, 1), offsets, {}};
  intra_forward(o, row(weights), row(c), row(L1));
  EXPECT_NEAR(weights[1], 1 / (1 + std::exp(-1.)), 1e-12);
  EXPECT_EQ(weights[2], 0);
  EXPECT_EQ(L1, first);
  o.scores = row(second);
  o.before = matrix<const double>(L1.data(), 1, 3);
  intra_forward(o, row(weights), row(c), row(L2));  // e' = (1, exp(-1), 1)
  EXPECT_NEAR(weights[0], 1 / (2 + std::exp(-1.)), 1e-12);
  EXPECT_NEAR(weights[2], weights[0], 1e-12);
  EXPECT_NEAR(L2[0], 1000 + std::log(2.), 1e-12);
  EXPECT_EQ(L2[2], 0);
  const std::vector<double> dc = {1}, d_after = {1, 1, 1};
  std::vector<double> d_scores(3), d_before(3);
  o.scores = row(first);
  o.before = {};
  intra_backward(o, matrix<const double>(weights.data(), 1, 3),
                 {row(dc), {}, row(d_after), row(d_scores), row(d_before), {}});
  for (const double g : d_scores) EXPECT_TRUE(std::isfinite(g));
  EXPECT_EQ(d_before[2], 0);
}

TEST(IntraThreads, AnyNumberGivesTheSameBits) {
  Decoder<float> expected(20);
  expected.forward();
  expected.backward();
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    Decoder<float> p(20);
    p.forward(&pool);
    p.backward(&pool);
    for (size_t t = 0; t < kSteps; ++t) {
      EXPECT_EQ(p.weights[t].data, expected.weights[t].data);
      EXPECT_EQ(p.d_scores[t].data, expected.d_scores[t].data);
    }
    EXPECT_EQ(p.d_values.data, expected.d_values.data);
  }
}

TEST(Intra, ShapeErrors) {
  Decoder<float> p(3);
  IntraOperands<float> o = p.operands(1);
  const auto run = [&] { intra_forward(o, p.weights[0].view(), p.contexts[0].view(), p.sums[1].view()); };
  o.scores.columns = 8;
  expect_shape_error(run, "[intra-temporal attention] scores [4, 8], expected [4, 9]");
  o = p.operands(1);
  o.before.rows = 3;
  expect_shape_error(run, "before [3, 9], expected [4, 9]");
  o = p.operands(1);
  p.contexts[0].columns = 2;
  expect_shape_error(run, "context [4, 2], expected [4, 3]");
}

}  // namespace
}  // namespace regard::attention
