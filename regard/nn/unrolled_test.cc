#include "regard/nn/unrolled.h"

#include <gtest/gtest.h>

#include <vector>

#include "regard/autograd/operations.h"
#include "regard/autograd/score_attention.h"
#include "regard/autograd/tape.h"
#include "regard/base/random.h"
#include "tests/support/leaf_gradient.h"

namespace regard::nn {
namespace {

using autograd::Ragged;

std::vector<double> numbers(const Tensor& t) {
  return {t.values<double>().begin(), t.values<double>().end()};
}

/// Lengths 2, 0, 3, 2.
const Ragged kSentences{{0, 2, 2, 5, 7}};

TEST(Unroll, StepsOverTheActiveSentencesLongestFirst) {
  std::vector<std::vector<int32_t>> sentences, positions;
  const Tensor initial = Tensor::zeros({4, 1}, DType::f64);
  const auto note = [&](const ActiveRows& active, const Tensor& previous) {
    EXPECT_EQ(active.k, static_cast<int64_t>(sentences.size()));
    sentences.emplace_back(active.sentences.begin(), active.sentences.end());
    positions.emplace_back(active.positions.begin(), active.positions.end());
    return previous;
  };
  unroll(kSentences, false, initial, note);
  EXPECT_EQ(sentences, (std::vector<std::vector<int32_t>>{{2, 0, 3}, {2, 0, 3}, {2}}));
  EXPECT_EQ(positions, (std::vector<std::vector<int32_t>>{{2, 0, 5}, {3, 1, 6}, {4}}));
  sentences.clear();
  positions.clear();
  unroll(kSentences, true, initial, note);
  EXPECT_EQ(positions, (std::vector<std::vector<int32_t>>{{4, 1, 6}, {3, 0, 5}, {2}}));
}

/// s_k = 2 s_{k-1} + (number of the sentence): a recurrence whose values are plain to see.
Tensor doubling(const ActiveRows& active, const Tensor& previous) {
  Tensor number = Tensor::empty({previous.dim(0), 1}, DType::f64);
  for (int64_t r = 0; r < number.size(); ++r)
    number.data<double>()[r] = active.sentences[static_cast<size_t>(r)];
  return autograd::add(autograd::add(previous, previous), number);
}

TEST(Unroll, StatesStandWhereTheirPositionsDo) {
  const Tensor initial = Tensor::from<double>({4, 1}, {1, 10, 100, 1000});
  const Tensor forward = unroll(kSentences, false, initial, doubling);
  EXPECT_EQ(numbers(forward), (std::vector<double>{2, 4, 202, 406, 814, 2003, 4009}));
  EXPECT_EQ(numbers(last_states(forward, kSentences, false, initial)),
            (std::vector<double>{4, 10, 814, 4009}));
  const Tensor backward = unroll(kSentences, true, initial, doubling);
  EXPECT_EQ(numbers(backward), (std::vector<double>{4, 2, 814, 406, 202, 4009, 2003}));
  EXPECT_EQ(numbers(last_states(backward, kSentences, true)), (std::vector<double>{4, 0, 814, 4009}));
}

TEST(Unroll, GradientsReachTheInitialStates) {
  const Tensor initial = Tensor::from<double>({4, 1}, {1, 10, 100, 1000});
  autograd::Tape tape;
  tape.watch(initial);
  const autograd::Tape::Recording recording(tape);
  // The states have the factors 2, 4, 8, and every sentence's last one counts twice.
  const Tensor scaled = autograd::multiply(initial, Tensor::full({4, 1}, 1.0, DType::f64));
  const Tensor states = unroll(kSentences, false, scaled, doubling);
  const Tensor last = last_states(states, kSentences, false, scaled);
  tape.backward(autograd::add(autograd::sum(states), autograd::sum(last)));
  EXPECT_EQ(numbers(tape.leaf(initial)->gradient),
            (std::vector<double>{2 + 4 + 4, 1, 2 + 4 + 8 + 8, 2 + 4 + 4}));
}

/// The attention decoder's recurrence in terms of unroll: a state is [s | c].
Tensor unrolled_decoder(const autograd::AttentionDecoderInputs& in, std::span<const int32_t> index,
                        const Ragged& sources, const Ragged& targets) {
  const int64_t N = in.s0.dim(1), E = in.values.dim(1);
  const Tensor no_context = Tensor::zeros({in.s0.dim(0), E}, in.s0.dtype());
  const Tensor initial = autograd::concat_columns(std::vector{in.s0, no_context});
  return unroll(targets, false, initial, [&](const ActiveRows& active, const Tensor& previous) {
    std::vector<int32_t> words;
    for (const int32_t position : active.positions) words.push_back(index[static_cast<size_t>(position)]);
    const Tensor s_before = autograd::columns(previous, 0, N);  // s_{i-1} [R, N]
    const Tensor query = autograd::linear(s_before, in.W_a);    // [R, A]
    const Tensor c =
        autograd::additive_attention(query, in.keys, in.values, in.v, sources, active.sentences).context;
    const Tensor x = autograd::add(autograd::rows(in.y, words), autograd::linear(c, in.C));  // [R, 3N]
    const Tensor s = autograd::gru_step(x, s_before, in.U, in.b);                            // s_i [R, N]
    return autograd::concat_columns(std::vector{s, c});
  });
}

TEST(Unroll, AnAttentionDecoderEqualsItsFusedOperation) {
  const Ragged sources{{0, 2, 5, 6}}, targets{{0, 1, 4, 6}};
  const std::vector<int32_t> index{0, 1, 2, 3, 1, 0};
  std::vector<Tensor> in;
  RandomStream random(5, 6);
  for (const Shape& shape : {Shape{3, 2}, Shape{6, 3}, Shape{6, 5}, Shape{3, 2}, Shape{3}, Shape{4, 6},
                             Shape{6, 5}, Shape{6, 2}, Shape{6}}) {
    in.push_back(Tensor::empty(shape, DType::f64));
    for (double& v : in.back().values<double>()) v = 0.5 * random.normal();
  }
  const autograd::AttentionDecoderInputs operands{in[0], in[1], in[2], in[3], in[4],
                                                  in[5], in[6], in[7], in[8]};
  const auto gradients = [&](auto decoder) {
    autograd::Tape tape;
    for (const Tensor& x : in) tape.watch(x);
    const autograd::Tape::Recording recording(tape);
    const Tensor result = decoder(operands, index, sources, targets);
    tape.backward(autograd::sum(autograd::multiply(result, result)));
    std::vector<Tensor> all{result};
    for (const Tensor& x : in) all.push_back(leaf_gradient(tape, x));
    return all;
  };
  const auto fused = gradients(autograd::attention_decoder), unrolled = gradients(unrolled_decoder);
  for (size_t i = 0; i < fused.size(); ++i)
    for (int64_t j = 0; j < fused[i].size(); ++j)
      EXPECT_NEAR(fused[i].data<double>()[j], unrolled[i].data<double>()[j], 1e-13) << i << ", " << j;
}

TEST(Unroll, ShapesThatDoNotFitAreRefused) {
  const Tensor initial = Tensor::zeros({4, 2}, DType::f64);
  const auto same = [](const ActiveRows&, const Tensor& previous) { return previous; };
  const auto narrower = [](const ActiveRows&, const Tensor& s) { return autograd::columns(s, 0, 1); };
  EXPECT_THROW(unroll(kSentences, false, Tensor::zeros({3, 2}, DType::f64), same), ShapeError);
  EXPECT_THROW(unroll(kSentences, false, initial, narrower), ShapeError);
  EXPECT_THROW(last_states(initial, kSentences, false), ShapeError);
  EXPECT_THROW(
      last_states(Tensor::zeros({7, 2}, DType::f64), kSentences, false, Tensor::zeros({4, 3}, DType::f64)),
      ShapeError);
}

}  // namespace
}  // namespace regard::nn
