// Draws: what a number stands for, how often what is drawn, and that nothing but (seed, line, place) decides.

#include "regard/decoding/sampling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "regard/decoding/forced.h"
#include "regard/text/vocabulary.h"
#include "tests/support/all_models.h"

namespace regard::decoding {
namespace {

using Ids = std::vector<int32_t>;

/// Probabilities 0.1, 0.4, 0.2, 0.3, and a begin symbol that would be the most probable.
const std::vector<float> kLogits{std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.3F), 5};

TEST(Draw, ANumberStandsForTheShareThatItFallsInto) {
  EXPECT_EQ(draw(kLogits, {}, 0), 0);
  EXPECT_EQ(draw(kLogits, {}, 0.099), 0);
  EXPECT_EQ(draw(kLogits, {}, 0.101), 1);
  EXPECT_EQ(draw(kLogits, {}, 0.499), 1);
  EXPECT_EQ(draw(kLogits, {}, 0.501), 2);
  EXPECT_EQ(draw(kLogits, {}, 0.701), 3);
  EXPECT_EQ(draw(kLogits, {}, 1 - 1e-16), 3);
}

TEST(Draw, TemperatureSharpensAndFlattens) {
  // Squares 0.01, 0.16, 0.04, 0.09 of 0.30.
  EXPECT_EQ(draw(kLogits, {.temperature = 0.5}, 0.033), 0);
  EXPECT_EQ(draw(kLogits, {.temperature = 0.5}, 0.034), 1);
  EXPECT_EQ(draw(kLogits, {.temperature = 0.5}, 0.56), 1);
  EXPECT_EQ(draw(kLogits, {.temperature = 0.5}, 0.57), 2);
  for (const double u : {0.0, 0.3, 0.999}) EXPECT_EQ(draw(kLogits, {.temperature = 0}, u), 1);
  EXPECT_EQ(draw(kLogits, {.temperature = 1e-300}, 0.7), 1);
}

TEST(Draw, TopKLeavesTheMostProbable) {
  // In falling order 1, 3, 2, 0: of the first two 0.4 and 0.3.
  EXPECT_EQ(draw(kLogits, {.top_k = 1}, 0.99), 1);
  EXPECT_EQ(draw(kLogits, {.top_k = 2}, 0.57), 1);
  EXPECT_EQ(draw(kLogits, {.top_k = 2}, 0.58), 3);
  EXPECT_EQ(draw(kLogits, {.top_k = 100}, 0.95), 0);
  const std::vector<float> equal{1, 1, 1, 0};
  EXPECT_EQ(draw(equal, {.top_k = 1}, 0.99), 0);
}

TEST(Draw, TheNucleusIsTheFewestThatReachTheShare) {
  EXPECT_EQ(draw(kLogits, {.top_p = 0.39}, 0.99), 1);
  EXPECT_EQ(draw(kLogits, {.top_p = 0.41}, 0.99), 3);
  EXPECT_EQ(draw(kLogits, {.top_p = 0.71}, 0.99), 2);
  EXPECT_EQ(draw(kLogits, {.top_p = 0.91}, 0.99), 0);
  EXPECT_EQ(draw(kLogits, {.top_k = 2, .top_p = 0.5}, 0.99), 1);  // 0.4 of the 0.7 that top_k leaves
}

tests::ModelVariant language_model(std::string_view name) {
  for (const auto& variant : tests::all_model_variants(models::Task::language))
    if (variant.name == name) return variant;
  throw Error(ErrorKind::internal, "no such model");
}

constexpr int64_t kV = 9;

std::vector<std::span<const int32_t>> spans(const std::vector<Ids>& list) {
  return {list.begin(), list.end()};
}

class SamplingThreads : public testing::TestWithParam<tests::ModelVariant> {};

TEST_P(SamplingThreads, ALineIsTheSameInAnyBatchAndForAnyNumberOfThreads) {
  const auto model = tests::make(GetParam(), kV);
  std::vector<Ids> prompts;
  for (int32_t i = 0; i < 13; ++i) prompts.push_back(Ids(static_cast<size_t>(i % 4), 2 + i % 5));
  prompts.emplace_back(90, 4);
  prompts.emplace_back(110, 3);
  ThreadPool one(1), two(2);
  const SamplingOptions options{.temperature = 0.8, .top_p = 0.95, .max_length = 20, .seed = 3};
  SamplingOptions few = options;
  few.sentences = 3;
  const auto all = sample(*model, spans(prompts), 40, options, one);
  const auto parted = sample(*model, spans(prompts), 40, few, two);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<std::span<const int32_t>> single{prompts[i]};
    const auto alone = sample(*model, single, 40 + static_cast<int64_t>(i), options, one);
    for (const Hypothesis* other : {&parted[i], &alone[0]}) {
      EXPECT_EQ(other->ids, all[i].ids);
      EXPECT_EQ(other->score, all[i].score);
      EXPECT_EQ(other->complete, all[i].complete);
    }
    EXPECT_TRUE(std::equal(prompts[i].begin(), prompts[i].end(), all[i].ids.begin()));
    EXPECT_LE(all[i].ids.size(), prompts[i].size() + 20);
    for (const int32_t id : all[i].ids) EXPECT_LT(id, kV - 1);
  }
  SamplingOptions other = options;
  other.seed = 4;
  EXPECT_NE(sample(*model, spans(prompts), 40, other, one)[0].ids, all[0].ids);
  EXPECT_NE(sample(*model, spans(prompts), 41, options, one)[0].ids, all[0].ids);
}

std::vector<tests::ModelVariant> one_of_each() {
  std::vector<tests::ModelVariant> list;
  for (const auto& variant : tests::all_model_variants(models::Task::language))
    if (variant.name == tests::name_of(*variant.kind)) list.push_back(variant);
  return list;
}
INSTANTIATE_TEST_SUITE_P(, SamplingThreads, testing::ValuesIn(one_of_each()), tests::variant_name);

TEST(Sampling, TheScoreIsTheModelsWhateverTheTemperature) {
  const auto model = tests::make(language_model("gru_lm"), kV);
  ThreadPool pool(1);
  const std::vector<Ids> prompts(20);
  for (const Hypothesis& drawn :
       sample(*model, spans(prompts), 0, {.temperature = 3, .max_length = 40}, pool)) {
    if (!drawn.complete) continue;
    const std::vector<std::span<const int32_t>> nothing(1), text{drawn.ids};
    EXPECT_NEAR(drawn.score, force(*model, nothing, text, pool)[0].score, 1e-6);
  }
}

TEST(Sampling, DrawsAreAsFrequentAsTheModelSays) {
  const auto model = tests::make(language_model("lstm_lm"), kV);
  ThreadPool pool(1);
  constexpr int kDraws = 4000;
  const std::vector<Ids> prompts(kDraws, Ids{3, 5});
  std::vector<int> counts(kV);
  for (const Hypothesis& drawn : sample(*model, spans(prompts), 0, {.max_length = 1}, pool))
    ++counts[drawn.complete ? 0 : static_cast<size_t>(drawn.ids.at(2))];
  const std::vector<std::span<const int32_t>> nothing(1);
  const models::Memory memory = model->encode(nothing);
  models::Step step;
  models::State state = memory.initial_state;
  for (const int32_t y : {model->begin(), 3, 5}) {
    step = model->step(Ids{y}, state, memory, Ids{0});
    state = step.state;
  }
  double total = 0, chi_square = 0;
  for (int64_t v = 0; v < kV - 1; ++v) total += std::exp(static_cast<double>(step.logits.data<float>()[v]));
  for (int64_t v = 0; v < kV - 1; ++v) {
    const double expected = kDraws * std::exp(static_cast<double>(step.logits.data<float>()[v])) / total;
    chi_square += std::pow(counts[static_cast<size_t>(v)] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 24.3);  // of 7 degrees of freedom, exceeded once in a thousand
}

TEST(Sampling, OptionsThatMeanNothingAreRefused) {
  const auto model = tests::make(language_model("rnn_lm"), kV);
  ThreadPool pool(1);
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = -1}, SamplingOptions{.top_k = -1}, SamplingOptions{.top_p = 0},
        SamplingOptions{.top_p = 1.5}, SamplingOptions{.max_length = 0}})
    EXPECT_THROW(sample(*model, {}, 0, options, pool), UsageError);
}

}  // namespace
}  // namespace regard::decoding
