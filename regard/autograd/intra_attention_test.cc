// Whole sequences against their steps, and both against the paper's sums. Gradients: registry_test.cc.

#include "regard/autograd/intra_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "regard/autograd/operations.h"
#include "regard/base/random.h"

namespace regard::autograd {
namespace {

const Ragged kSources{{0, 2, 6, 7}}, kTargets{{0, 1, 5, 7}};

Tensor random_tensor(const Shape& shape, uint64_t stream) {
  Tensor x = Tensor::empty(shape, DType::f64);
  RandomStream random(8, stream);
  for (double& v : x.values<double>()) v = random.normal();
  return x;
}

struct Case {
  Tensor query = random_tensor({7, 3}, 1), keys = random_tensor({7, 3}, 2), values = random_tensor({7, 4}, 3);
};

double score(const Case& x, int64_t t, int64_t s) {
  double sum = 0;
  for (int64_t k = 0; k < 3; ++k) sum += x.query.as_matrix<double>()(t, k) * x.keys.as_matrix<double>()(s, k);
  return sum;
}

TEST(IntraTemporalAttention, IsAsPrinted) {
  const Case x;
  const Attended result = intra_temporal_attention(x.query, x.keys, x.values, kSources, kTargets);
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t t = kTargets.begin(b); t < kTargets.begin(b + 1); ++t) {
      double total = 0;
      std::vector<double> e;
      for (int64_t s = kSources.begin(b); s < kSources.begin(b + 1); ++s) {
        double earlier = 0;
        for (int64_t u = kTargets.begin(b); u < t; ++u) earlier += std::exp(score(x, u, s));
        e.push_back(std::exp(score(x, t, s)) / (t == kTargets.begin(b) ? 1 : earlier));
        total += e.back();
      }
      for (int64_t n = 0; n < 4; ++n) {
        double c = 0;
        for (size_t s = 0; s < e.size(); ++s)
          c += e[s] / total * x.values.as_matrix<double>()(kSources.begin(b) + static_cast<int64_t>(s), n);
        EXPECT_NEAR(result.context.as_matrix<double>()(t, n), c, 1e-13);
      }
      for (int64_t s = 0; s < 4; ++s)  // 0 behind the end of the sentence
        EXPECT_NEAR(result.weights.as_matrix<double>()(t, s),
                    s < kSources.length(b) ? e[static_cast<size_t>(s)] / total : 0, 1e-13);
    }
}

TEST(IntraTemporalAttention, EqualsItsSteps) {
  const Case x;
  const Attended whole = intra_temporal_attention(x.query, x.keys, x.values, kSources, kTargets);
  for (int32_t b = 0; b < 3; ++b) {
    Tensor sums = Tensor::full({1, 4}, -std::numeric_limits<double>::infinity(), DType::f64);
    for (int64_t i = kTargets.begin(b); i < kTargets.begin(b + 1); ++i) {
      const TemporalStep step = intra_temporal_step(x.query.row_range(i, i + 1), x.keys, x.values, sums,
                                                    kSources, std::vector<int32_t>{b});
      for (int64_t n = 0; n < 4; ++n) {
        EXPECT_NEAR(step.attended.context.data<double>()[n], whole.context.as_matrix<double>()(i, n), 1e-14);
        EXPECT_NEAR(step.attended.weights.data<double>()[n], whole.weights.as_matrix<double>()(i, n), 1e-14);
      }
      sums = step.sums;
    }
  }
}

TEST(IntraDecoderAttention, SeesEarlierRowsOnly) {
  const Ragged sentences{{0, 4, 4, 5, 7}};
  const Tensor query = random_tensor({7, 3}, 4), h = random_tensor({7, 3}, 5);
  const Tensor whole = intra_decoder_attention(query, h, sentences);
  const auto q = query.as_matrix<double>(), states = h.as_matrix<double>();
  for (int64_t b = 0; b < sentences.count(); ++b)
    for (int64_t t = sentences.begin(b); t < sentences.begin(b + 1); ++t) {
      std::array<double, 3> sum{};
      double total = 0;
      for (int64_t u = sentences.begin(b); u < t; ++u) {
        const double e = std::exp(q(t, 0) * states(u, 0) + q(t, 1) * states(u, 1) + q(t, 2) * states(u, 2));
        total += e;
        for (int64_t n = 0; n < 3; ++n) sum[static_cast<size_t>(n)] += e * states(u, n);
      }
      const int64_t before = t - sentences.begin(b);
      const Tensor step = intra_decoder_step(query.row_range(t, t + 1),
                                             h.row_range(sentences.begin(b), t).reshaped({1, before, 3}));
      for (int64_t n = 0; n < 3; ++n) {
        const double c = before > 0 ? sum[static_cast<size_t>(n)] / total : 0;
        EXPECT_NEAR(whole.as_matrix<double>()(t, n), c, 1e-14);
        EXPECT_NEAR(step.data<double>()[n], c, 1e-14);
      }
    }
}

TEST(IntraAttention, OperandsThatDoNotFitAreRefused) {
  const Case x;
  EXPECT_THROW(intra_temporal_attention(x.query, x.values, x.values, kSources, kTargets), ShapeError);
  EXPECT_THROW(intra_temporal_attention(x.query, x.keys, x.values, kSources, {{0, 7}}), ShapeError);
  EXPECT_THROW(intra_temporal_step(x.query, x.keys, x.values, random_tensor({7, 3}, 6), kSources,
                                   std::vector<int32_t>(7, 0)),
               ShapeError);
  EXPECT_THROW(intra_decoder_attention(x.query, x.values, kTargets), ShapeError);
  EXPECT_THROW(intra_decoder_step(x.query, random_tensor({7, 2, 4}, 6)), ShapeError);
}

}  // namespace
}  // namespace regard::autograd
