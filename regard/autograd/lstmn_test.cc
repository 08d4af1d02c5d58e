// The fused recurrence of the LSTMN against its unfused steps, values and gradients, and what it promises.

#include "regard/autograd/lstmn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "regard/autograd/operations.h"
#include "regard/base/random.h"
#include "tests/support/leaf_gradient.h"

namespace regard::autograd {
namespace {

const std::vector<int32_t> kIndex{0, 1, 2, 3, 1, 0, 3, 2, 2};
const Ragged kSentences{{0, 3, 4, 4, 9}};

std::vector<Tensor> random_operands(int64_t N, int64_t A, DType dtype) {
  std::vector<Tensor> result;
  RandomStream random(5, 6);
  for (const Shape& shape :
       {Shape{4, 4 * N}, Shape{4, A}, Shape{4 * N, N}, Shape{A, N}, Shape{A, N}, Shape{A}}) {
    Tensor x = Tensor::empty(shape, DType::f64);
    for (double& v : x.values<double>()) v = 0.5 * random.normal();
    result.push_back(x.to(dtype));
  }
  return result;
}

Tensor fused(const std::vector<Tensor>& in, const Ragged& sentences, std::span<const int32_t> index,
             bool reverse) {
  return lstmn_sequence({in[0], in[1], index, in[2], in[3], in[4], in[5]}, sentences, reverse);
}

/// Sentence by sentence, step by step, on a tape that grows.
Tensor stepped(const std::vector<Tensor>& in, bool reverse) {
  const int64_t N = in[2].dim(1), A = in[5].size();
  const DType type = in[0].dtype();
  std::vector<Tensor> rows_of_states;
  std::vector<int32_t> row_of(static_cast<size_t>(kSentences.total()));
  for (int64_t b = 0; b < kSentences.count(); ++b) {
    LstmnTape tape{Tensor::empty({0, 2 * N}, type), Tensor::empty({0, A}, type), {}};
    tape.positions.push_back(0);
    Tensor summary = Tensor::zeros({1, N}, type);
    for (int64_t k = 0; k < kSentences.length(b); ++k) {
      const auto position = static_cast<size_t>(kSentences.position(b, k, reverse));
      const std::vector<int32_t> word{kIndex[position]};
      const LstmnStep next =
          lstmn_step(rows(in[0], word), rows(in[1], word), summary, tape, in[2], in[3], in[4], in[5]);
      summary = next.summary;
      tape.states = concat_rows(std::vector{tape.states, next.state});
      tape.keys = concat_rows(std::vector{tape.keys, next.key});
      tape.positions = Ragged{{0, k + 1}};
      row_of[position] = static_cast<int32_t>(rows_of_states.size());
      rows_of_states.push_back(next.state);
    }
  }
  return rows(concat_rows(rows_of_states), row_of);
}

TEST(Lstmn, ValuesAndGradientsAreThoseOfItsSteps) {
  for (const bool reverse : {false, true}) {
    const auto in = random_operands(3, 2, DType::f64);
    const auto gradients = [&](auto sequence) {
      Tape tape;
      for (const Tensor& x : in) tape.watch(x);
      const Tape::Recording recording(tape);
      const Tensor states = sequence();
      tape.backward(sum(multiply(states, states)));
      std::vector<Tensor> all{states};
      for (const Tensor& x : in) all.push_back(leaf_gradient(tape, x));
      return all;
    };
    const auto a = gradients([&] { return fused(in, kSentences, kIndex, reverse); });
    const auto b = gradients([&] { return stepped(in, reverse); });
    for (size_t i = 0; i < a.size(); ++i)
      for (int64_t j = 0; j < a[i].size(); ++j)
        EXPECT_NEAR(a[i].data<double>()[j], b[i].data<double>()[j], 1e-13) << i << ", " << j;
  }
}

TEST(Lstmn, SinglePrecisionIsNearDouble) {
  for (const bool reverse : {false, true}) {
    const Tensor single = fused(random_operands(37, 19, DType::f32), kSentences, kIndex, reverse);
    const Tensor accurate = fused(random_operands(37, 19, DType::f64), kSentences, kIndex, reverse);
    for (int64_t i = 0; i < single.size(); ++i)
      ASSERT_NEAR(single.data<float>()[i], accurate.data<double>()[i], 1e-5);
  }
}

/// The two positions of a sentence whose scores are all 0: the second reads the first, the third the mean.
TEST(Lstmn, WithoutScoresThePastIsItsMean) {
  auto in = random_operands(2, 2, DType::f64);
  in[5] = Tensor::zeros({2}, DType::f64);
  const Tensor states = fused(in, kSentences, kIndex, false);
  const auto s = states.as_matrix<double>();
  const Tensor mean = Tensor::empty({1, 4}, DType::f64);
  for (int64_t n = 0; n < 4; ++n) mean.data<double>()[n] = (s(0, n) + s(1, n)) / 2;
  const LstmState third = lstm_step(rows(in[0], std::vector<int32_t>{kIndex[2]}),
                                    {columns(mean, 0, 2), columns(mean, 2, 4)}, in[2], {});
  for (int64_t n = 0; n < 2; ++n) {
    EXPECT_NEAR(s(2, n), third.h.data<double>()[n], 1e-15);
    EXPECT_NEAR(s(2, 2 + n), third.c.data<double>()[n], 1e-15);
  }
}

TEST(Lstmn, ASentencesBitsDoNotDependOnTheOthers) {
  const auto in = random_operands(21, 11, DType::f32);
  const Tensor all = fused(in, kSentences, kIndex, false);
  for (int64_t b = 0; b < kSentences.count(); ++b) {
    const auto begin = static_cast<size_t>(kSentences.begin(b)),
               length = static_cast<size_t>(kSentences.length(b));
    const Tensor alone =
        fused(in, Ragged{{0, kSentences.length(b)}}, std::span(kIndex).subspan(begin, length), false);
    for (int64_t i = 0; i < alone.size(); ++i)
      EXPECT_EQ(alone.data<float>()[i], all.data<float>()[kSentences.begin(b) * 42 + i]);
  }
}

TEST(Lstmn, OperandsThatDoNotFitAreNamed) {
  const auto in = random_operands(3, 2, DType::f64);
  for (const size_t wrong : {0, 1, 2, 3, 4, 5}) {
    auto changed = in;
    changed[wrong] = Tensor::zeros({5, 5}, DType::f64);
    EXPECT_THROW(fused(changed, kSentences, kIndex, false), ShapeError) << wrong;
  }
  EXPECT_THROW(fused(in, kSentences, std::vector<int32_t>{0, 1}, false), ShapeError);
  EXPECT_THROW(fused(in, kSentences, std::vector<int32_t>{0, 1, 2, 4, 1, 0, 3, 2, 2}, false), ShapeError);
}

}  // namespace
}  // namespace regard::autograd
