// What holds for a Transformer beyond what every model must do.

#include "regard/models/transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "regard/models/registry.h"

namespace regard::models {
namespace {

constexpr int64_t kV = 11;
using Ids = std::vector<int32_t>;
const std::vector<Ids> kSources{{3, 7, 3, 9, 0}, {7, 6, 0}, {5, 5, 2, 8, 4, 6, 0}};

ModelConfig small(nn::PositionKind positions = nn::PositionKind::sinusoid) {
  ModelConfig config = model_kind("transformer").defaults;
  config.source_vocabulary = config.target_vocabulary = kV;
  config.width = 24;
  config.heads = 4;
  config.feed_forward = 20;
  config.layers = 2;
  config.positions = positions;
  return config;
}

std::vector<std::span<const int32_t>> sources() { return {kSources.begin(), kSources.end()}; }

std::vector<nn::PositionKind> all_positions() {
  std::vector<nn::PositionKind> kinds;
  for (int i = 0; i <= static_cast<int>(nn::PositionKind::none); ++i)
    kinds.push_back(static_cast<nn::PositionKind>(i));
  return kinds;
}

class TransformerPositions : public testing::TestWithParam<nn::PositionKind> {
 protected:
  std::unique_ptr<EncoderDecoder> model_ =
      make_encoder_decoder(model_kind("transformer"), small(GetParam()), 5);
};
void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]) << i;
}

/// Feeds words one by one to rows that all belong to one sentence.
Step after(const EncoderDecoder& model, const Memory& memory, const Ids& words, int32_t sentence) {
  State state = select(memory.initial_state, Ids{sentence});
  Step step;
  for (const int32_t y : words) {
    step = model.step(Ids{y}, state, memory, Ids{sentence});
    state = step.state;
  }
  return step;
}

TEST_P(TransformerPositions, AGrownCacheEqualsARecomputedOneToTheBit) {
  const Memory memory = model_->encode(sources());
  const Ids words{10, 4, 4, 1, 7, 2};
  // Grown among others, reordered at every step; rows of a step belong to sentences in any order.
  State state = select(memory.initial_state, Ids{2, 0, 1, 0});
  Step grown;
  for (size_t t = 0; t < words.size(); ++t) {
    const int32_t other = static_cast<int32_t>(t % 5);
    grown = model_->step(Ids{other, words[t], 3, other}, state, memory, Ids{2, 0, 1, 0});
    state = select(grown.state, Ids{3, 1, 2, 1});
    state = select(state, Ids{2, 1, 2, 0});
  }
  const Step recomputed = after(*model_, memory, words, 0);
  const State row = select(grown.state, Ids{1});
  for (size_t l = 0; l < row.size(); ++l) expect_same(row[l], recomputed.state[l]);
  expect_same(grown.logits.row_range(1, 2), recomputed.logits);
  expect_same(grown.alpha.row_range(1, 2), recomputed.alpha);
}

TEST_P(TransformerPositions, TheLossInF32IsThatInF64) {
  const std::vector<Ids> targets{{5, 1, 5, 8, 0}, {2, 0}, {4, 3, 0}};
  SentencePairs pairs{sources(), {targets.begin(), targets.end()}};
  const auto f32 = static_cast<double>(model_->loss(pairs, {.smoothing = 0.1}).data<float>()[0]);
  model_->convert(DType::f64);
  EXPECT_NEAR(f32, model_->loss(pairs, {.smoothing = 0.1}).data<double>()[0], 1e-5 * f32);
}

TEST_P(TransformerPositions, WordsInAnotherOrderAreAnotherSentence) {
  const Ids forward{3, 7, 9, 0}, backward{9, 7, 3, 0}, target{5, 0};
  const auto loss = [&](const Ids& source) {
    SentencePairs pairs;
    pairs.sources.emplace_back(source);
    pairs.targets.emplace_back(target);
    return model_->loss(pairs, {}).data<double>()[0];
  };
  model_->convert(DType::f64);
  for (const auto& p : model_->parameters())  // tables of biases begin at zero
    if (p.name.ends_with("relative"))
      for (int64_t i = 0; i < p.value.size(); ++i)
        p.value.data<double>()[i] = std::sin(static_cast<double>(i));
  const double difference = std::abs(loss(forward) - loss(backward));
  if (GetParam() == nn::PositionKind::none)
    EXPECT_LT(difference, 1e-12);
  else
    EXPECT_GT(difference, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(, TransformerPositions, testing::ValuesIn(all_positions()));

TEST(Transformer, PositionsBehindTheLearnedTableShareItsLastRow) {
  const auto model = make_encoder_decoder(model_kind("transformer"), small(nn::PositionKind::learned), 5);
  Ids source(600, 4);
  source.push_back(0);
  const std::vector<std::span<const int32_t>> one{source};
  const Tensor h = model->encode(one).h;
  for (int64_t i = 0; i < h.dim(1); ++i)
    EXPECT_EQ(h.as_matrix<float>()(511, i), h.as_matrix<float>()(550, i));
  EXPECT_NE(h.as_matrix<float>()(510, 0), h.as_matrix<float>()(511, 0));
}

TEST(Transformer, AWindowHidesWhatIsFartherAway) {
  ModelConfig config = small();
  config.window = 1;
  config.layers = 1;
  const auto model = make_encoder_decoder(model_kind("transformer"), config, 5);
  const Ids a{3, 7, 3, 9, 0}, b{3, 7, 3, 2, 0};  // position 3 differs: 0 and 1 cannot see it
  const Tensor h = model->encode(std::vector<std::span<const int32_t>>{a}).h;
  const Tensor other = model->encode(std::vector<std::span<const int32_t>>{b}).h;
  expect_same(h.row_range(0, 2), other.row_range(0, 2));
  EXPECT_NE(h.as_matrix<float>()(2, 0), other.as_matrix<float>()(2, 0));
}

std::string refusal(ModelConfig config) {
  try {
    make_encoder_decoder(model_kind("transformer"), config, 1);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Transformer, WhatDoesNotFitIsRefused) {
  ModelConfig config = small();
  config.heads = 5;
  EXPECT_EQ(refusal(config), "--width 24 does not divide into --heads 5");
  config = small(nn::PositionKind::rotary);
  config.heads = 8;
  EXPECT_NE(refusal(config).find("rotary"), std::string::npos);
  config = small();
  config.source_vocabulary = 12;
  EXPECT_NE(refusal(config).find("one vocabulary"), std::string::npos);
}

}  // namespace
}  // namespace regard::models
