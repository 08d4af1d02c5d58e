// The pointer's distribution and loss against the formula. Gradients: registry_test.cc.

#include "regard/autograd/pointer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "regard/autograd/operations.h"
#include "regard/base/random.h"

namespace regard::autograd {
namespace {

constexpr int64_t kV = 6;
const Ragged kSources{{0, 3, 5}};
const std::vector<int32_t> kWords{2, 0, 2, 4, 0}, kSentenceOf{0, 1, 1, 0}, kY{2, 3, 4, 5};
const PointedWords kPointed{kWords, kSources, kSentenceOf};

Tensor random_tensor(const Shape& shape, uint64_t stream, double size = 1) {
  Tensor x = Tensor::empty(shape, DType::f64);
  RandomStream random(8, stream);
  for (double& v : x.values<double>()) v = size * random.normal();
  return x;
}

/// Rows that point, each adding up to 1 over its source.
Tensor weights() {
  return Tensor::from<double>({4, 3}, {0.5, 0.2, 0.3, 0.9, 0.1, 0, 0.25, 0.75, 0, 0, 1, 0});
}

PointerInputs inputs() {
  return {random_tensor({4, 3}, 1), random_tensor({kV, 3}, 2), random_tensor({kV}, 3),
          random_tensor({4, 1}, 4), weights()};
}

/// p(u = 1) of a row and its softmax.
struct Parts {
  double copies;
  std::vector<double> generated;
};
Parts parts(const PointerInputs& in, int64_t r) {
  const Tensor logits = linear(in.x, in.W, in.b);
  Parts result{1 / (1 + std::exp(-in.z.data<double>()[r])), {}};
  double sum = 0;
  for (int64_t v = 0; v < kV; ++v) {
    result.generated.push_back(std::exp(logits.as_matrix<double>()(r, v)));
    sum += result.generated.back();
  }
  for (double& p : result.generated) p /= sum;
  return result;
}
double probability(const PointerInputs& in, int64_t r, int32_t word) {
  const Parts p = parts(in, r);
  const int64_t b = kSentenceOf[static_cast<size_t>(r)];
  double pointed = 0;
  for (int64_t s = 0; s < kSources.length(b); ++s)
    if (kWords[static_cast<size_t>(kSources.begin(b) + s)] == word)
      pointed += in.alpha.as_matrix<double>()(r, s);
  return p.copies * pointed + (1 - p.copies) * p.generated[static_cast<size_t>(word)];
}

TEST(Pointer, MixesCopiesWithWhatIsGenerated) {
  const PointerInputs in = inputs();
  const Tensor log_p = pointer_log_probabilities(in, kPointed);
  for (int64_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (int32_t v = 0; v < kV; ++v) {
      EXPECT_NEAR(std::exp(log_p.as_matrix<double>()(r, v)), probability(in, r, v), 1e-15);
      sum += std::exp(log_p.as_matrix<double>()(r, v));
    }
    EXPECT_NEAR(sum, 1, 1e-14);
  }
}

TEST(Pointer, TheLossSmoothsWhatIsGenerated) {
  const PointerInputs in = inputs();
  for (const double smoothing : {0.0, 0.1}) {
    double expected = 0;
    for (int64_t r = 0; r < 4; ++r) {
      expected -= (1 - smoothing) * std::log(probability(in, r, kY[static_cast<size_t>(r)]));
      for (const double p : parts(in, r).generated) expected -= smoothing / kV * std::log(p);
    }
    EXPECT_NEAR(pointer_loss(in, kPointed, kY, smoothing, 0.5).data<double>()[0], expected / 2, 1e-13);
  }
}

TEST(Pointer, ASwitchThatIsSureStaysFinite) {
  // Sure of copying what cannot be copied, and of generating what only a copy would make likely.
  PointerInputs in = inputs();
  for (const double z : {800.0, -800.0}) {
    in.z = Tensor::full({4, 1}, z, DType::f64);
    const Tensor log_p = pointer_log_probabilities(in, kPointed);
    for (const double x : log_p.values<double>()) EXPECT_TRUE(std::isfinite(x));
    EXPECT_TRUE(std::isfinite(pointer_loss(in, kPointed, kY, 0, 1).data<double>()[0]));
  }
  // Row 1 points at word 4 (0.9) and 0; its target 3 is not in the source: log p = log p(u = 0) + log
  // softmax.
  in.z = Tensor::full({4, 1}, 800, DType::f64);
  EXPECT_NEAR(pointer_log_probabilities(in, kPointed).as_matrix<double>()(1, 3),
              -800 + std::log(parts(in, 1).generated[3]), 1e-12);
  EXPECT_NEAR(pointer_log_probabilities(in, kPointed).as_matrix<double>()(1, 4), std::log(0.9), 1e-12);
}

TEST(Pointer, OperandsThatDoNotFitAreRefused) {
  const PointerInputs in = inputs();
  const std::vector<int32_t> large{2, 0, 2, 6, 0}, few{2, 3};
  EXPECT_THROW(pointer_log_probabilities(in, {large, kSources, kSentenceOf}), ShapeError);
  EXPECT_THROW(pointer_log_probabilities(in, {kWords, kSources, few}), ShapeError);
  EXPECT_THROW(pointer_loss(in, kPointed, few, 0, 1), ShapeError);
  EXPECT_THROW(pointer_loss(in, kPointed, std::vector<int32_t>{2, 3, 4, 6}, 0, 1), ShapeError);
}

}  // namespace
}  // namespace regard::autograd
