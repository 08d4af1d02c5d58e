// That the paper's scores are what the model composes them of. Gradients: registry_test.cc.

#include "regard/autograd/score_attention.h"

#include <gtest/gtest.h>

#include "regard/attention/scores.h"
#include "regard/autograd/operations.h"
#include "regard/base/random.h"

namespace regard::autograd {
namespace {

const Ragged kSources{{0, 2, 6, 7}};
const std::vector<int32_t> kRows{0, 1, 2, 1, 1};

Tensor random_tensor(const Shape& shape, uint64_t stream) {
  Tensor x = Tensor::empty(shape, DType::f64);
  RandomStream random(8, stream);
  for (double& v : x.values<double>()) v = random.normal();
  return x;
}

void expect_near(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a.data<double>()[i], b.data<double>()[i], 1e-13) << i;
}

/// The paper's matrix [N, E] (or [A, N + E]) acts inside the kernel; the model's projects the source outside.
struct Case {
  Tensor s = random_tensor({5, 3}, 1), h = random_tensor({7, 4}, 2);
  Tensor context = Tensor::zeros({5, 4}, DType::f64), weights = Tensor::zeros({5, 4}, DType::f64);
};

TEST(ScoreAttention, DotOverProjectedKeysIsGeneral) {
  const Case x;
  const Tensor W = random_tensor({3, 4}, 3), query = Tensor::empty({5, 4}, DType::f64);
  attention::general_forward(
      attention::GeneralOperands<double>{x.s.as_matrix<double>(), W.as_matrix<double>(),
                                         x.h.as_matrix<double>(), x.h.as_matrix<double>(), kSources.offsets,
                                         kRows},
      query.as_matrix<double>(), x.weights.as_matrix<double>(), x.context.as_matrix<double>());
  const Attended result = dot_attention(x.s, linear(x.h, W), x.h, kSources, kRows);
  expect_near(result.context, x.context);
  expect_near(result.weights, x.weights);
}

TEST(ScoreAttention, AdditiveOverProjectedKeysIsConcat) {
  const Case x;
  const Tensor W = random_tensor({6, 7}, 3), v = random_tensor({6}, 4);
  const Tensor query = Tensor::empty({5, 6}, DType::f64), keys = linear(x.h, columns(W, 3, 7));
  attention::concat_forward(
      attention::ConcatOperands<double>{x.s.as_matrix<double>(), W.as_matrix<double>(), v.data<double>(),
                                        keys.as_matrix<double>(), x.h.as_matrix<double>(), kSources.offsets,
                                        kRows},
      query.as_matrix<double>(), x.weights.as_matrix<double>(), x.context.as_matrix<double>());
  const Attended result = additive_attention(linear(x.s, columns(W, 0, 3)), keys, x.h, v, kSources, kRows);
  expect_near(result.context, x.context);
  expect_near(result.weights, x.weights);
}

TEST(ScoreAttention, AWideWindowIsNoWindow) {
  const Case x;
  const Tensor keys = random_tensor({7, 3}, 5), centres = Tensor::zeros({5, 1}, DType::f64);
  const Attended local = local_attention(x.s, keys, x.h, centres, {9, false}, kSources, kRows);
  const Attended global = dot_attention(x.s, keys, x.h, kSources, kRows);
  expect_near(local.context, global.context);
  expect_near(local.weights, global.weights);
}

TEST(ScoreAttention, OperandsThatDoNotFitAreRefused) {
  const Case x;
  EXPECT_THROW(dot_attention(x.s, x.h, x.h, kSources, kRows), ShapeError);
  EXPECT_THROW(location_attention(x.s, random_tensor({6, 4}, 3), x.h, kSources, kRows), ShapeError);
  EXPECT_THROW(local_attention(x.h, x.h, x.h, random_tensor({5, 1}, 6), {1, false}, kSources, kRows),
               ShapeError);
  EXPECT_THROW(local_centres(x.s, random_tensor({2, 3}, 3), random_tensor({3}, 4), kSources, kRows),
               ShapeError);
  EXPECT_THROW(dot_attention(x.s, x.s, x.s, kSources, std::vector<int32_t>{0, 1}), ShapeError);
}

}  // namespace
}  // namespace regard::autograd
