// Walks the registry: the gradient of every operation against numeric differentiation, in f64.

#include <gtest/gtest.h>

#include "regard/autograd/operations.h"
#include "regard/autograd/score_attention.h"
#include "regard/autograd/sequences.h"
#include "regard/autograd/tape.h"
#include "regard/base/numeric_gradient.h"
#include "regard/base/random.h"
#include "tests/support/leaf_gradient.h"

namespace regard::autograd {
namespace {

/// A scalar of any tensor: a fixed random weighting of its elements.
Tensor weighted_sum(const Tensor& y) {
  Tensor weights = Tensor::empty(y.shape(), DType::f64);
  RandomStream random(3, 4);
  for (double& w : weights.values<double>()) w = random.normal();
  return sum(multiply(y, weights));
}

TEST(GradientRegistry, EveryOperationEverySample) {
  ASSERT_GE(all_operations().size(), 40u);
  for (const Operation* operation : all_operations()) {
    const auto samples = operation->samples();
    ASSERT_FALSE(samples.empty()) << operation->name();
    for (const auto& sample : samples) {
      Tape tape;
      for (const Tensor& x : sample.inputs) tape.watch(x);
      {
        const Tape::Recording recording(tape);
        tape.backward(weighted_sum(sample.compute(sample.inputs)));
      }
      for (size_t i = 0; i < sample.inputs.size(); ++i) {
        const Tensor& x = sample.inputs[i];
        const Tensor analytic = leaf_gradient(tape, x);
        const auto numeric =
            numeric_gradient([&] { return weighted_sum(sample.compute(sample.inputs)).data<double>()[0]; },
                             x.values<double>());
        EXPECT_LE(gradient_error(analytic.values<double>(), numeric), 1e-6)
            << operation->name() << " (" << sample.name << "), input " << i;
      }
    }
  }
}

std::vector<Tensor> random_tensors(std::initializer_list<Shape> shapes, DType dtype = DType::f64) {
  RandomStream random(5, 6);
  std::vector<Tensor> result;
  for (const Shape& shape : shapes) {
    Tensor x = Tensor::empty(shape, DType::f64);
    for (double& v : x.values<double>()) v = 0.5 * random.normal();
    result.push_back(x.to(dtype));
  }
  return result;
}

TEST(AttentionDecoder, EqualsItsSteps) {
  const auto in = random_tensors({{3, 2}, {6, 3}, {6, 5}, {3, 2}, {3}, {4, 6}, {6, 5}, {6, 2}, {6}});
  const Ragged sources{{0, 2, 5, 6}}, targets{{0, 1, 4, 6}};
  const std::vector<int32_t> index{0, 1, 2, 3, 1, 0};
  const Tensor fused = attention_decoder({in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8]},
                                         index, sources, targets);
  for (int32_t b = 0; b < 3; ++b) {
    Tensor s = rows(in[0], std::vector<int32_t>{b});
    for (int64_t k = 0; k < targets.length(b); ++k) {
      const int64_t row = targets.begin(b) + k;
      const Tensor c =
          additive_attention(linear(s, in[3]), in[1], in[2], in[4], sources, std::vector<int32_t>{b}).context;
      const Tensor y = rows(in[5], std::vector<int32_t>{index[static_cast<size_t>(row)]});
      s = gru_step(add(y, linear(c, in[6])), s, in[7], in[8]);
      for (int64_t n = 0; n < 2; ++n)
        EXPECT_NEAR(fused.as_matrix<double>()(row, n), s.values<double>()[static_cast<size_t>(n)], 1e-14);
      for (int64_t e = 0; e < 5; ++e)
        EXPECT_NEAR(fused.as_matrix<double>()(row, 2 + e), c.values<double>()[static_cast<size_t>(e)], 1e-14);
    }
  }
}

TEST(OutputLoss, KnownValueAndShapes) {
  const Tensor x = Tensor::from<double>({1, 1}, {1.0}), W = Tensor::from<double>({2, 1}, {0.0, 1.0});
  const Tensor b = Tensor::zeros({2}, DType::f64);
  // lse(0, 1) - 0.9 * 1 - 0.05 * (0 + 1)
  const double expected = std::log(1 + std::exp(1.0)) - 0.95;
  EXPECT_NEAR(output_loss(x, W, b, std::vector<int32_t>{1}, 0.1, 2.0).data<double>()[0], 2 * expected, 1e-14);
  EXPECT_THROW(output_loss(x, W, b, std::vector<int32_t>{2}, 0.1, 1.0), ShapeError);
  EXPECT_THROW(linear(x, Tensor::zeros({2, 3}, DType::f64)), ShapeError);
}

}  // namespace
}  // namespace regard::autograd
