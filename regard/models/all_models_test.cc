// What every model must do, whatever its equations: walks over the registry.

#include "tests/support/all_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/support/every_gradient.h"

namespace regard::models {
namespace {

using tests::ModelVariant;

constexpr int64_t kV = 11;
const std::vector<std::vector<int32_t>> kSources{{3, 7, 3, 9, 0}, {7, 6, 0}, {0}, {5, 5, 2, 8, 4, 6, 0}};
const std::vector<std::vector<int32_t>> kTargets{{5, 1, 5, 8, 0}, {2, 0}, {4, 3, 0}, {0}};

double loss_of(const EncoderDecoder& model, const SentencePairs& sentences, const LossOptions& options = {}) {
  return model.loss(sentences, options).data<double>()[0];
}

using Sources = std::vector<std::span<const int32_t>>;

class AllModels : public testing::TestWithParam<ModelVariant> {
 protected:
  /// A language model's are empty.
  Sources sources(std::span<const size_t> which) const {
    Sources result;
    for (const size_t i : which)
      GetParam().is_language_model() ? result.emplace_back() : result.emplace_back(kSources[i]);
    return result;
  }
  Sources all_sources() const { return sources(std::vector<size_t>{0, 1, 2, 3}); }
  SentencePairs pairs(const std::vector<size_t>& which) const {
    SentencePairs result;
    result.sources = sources(which);
    for (const size_t i : which) {
      result.targets.emplace_back(kTargets[i]);
      result.numbers.push_back(i);
    }
    return result;
  }
  SentencePairs all_pairs() const { return pairs({0, 1, 2, 3}); }

  std::unique_ptr<EncoderDecoder> f64() const {
    auto model = tests::make(GetParam(), kV);
    model->convert(DType::f64);
    return model;
  }
};

TEST_P(AllModels, EveryParameterReceivesTheGradientOfTheLoss) {
  tests::expect_every_gradient(*f64(), all_pairs(), {.smoothing = 0.1});
}

TEST_P(AllModels, TheLossOfABatchIsTheSumOverItsSentences) {
  const auto model = f64();
  double sum = 0;
  for (size_t i = 0; i < kSources.size(); ++i) sum += loss_of(*model, pairs({i}), {.smoothing = 0.1});
  EXPECT_NEAR(loss_of(*model, all_pairs(), {.smoothing = 0.1}), sum, 1e-11);
  EXPECT_NEAR(loss_of(*model, pairs({2, 0, 3, 1}), {.smoothing = 0.1}), sum, 1e-11);
  EXPECT_NEAR(loss_of(*model, all_pairs(), {.smoothing = 0.1, .scale = 0.25}), sum / 4, 1e-11);
}

/// Log-probability of target i, step by step, with sentence i alone or with all as batch-mates.
double stepped(const EncoderDecoder& model, const Sources& sources, size_t i) {
  const Memory memory = model.encode(sources);
  State state = select(memory.initial_state, std::vector<int32_t>{static_cast<int32_t>(i)});
  std::vector<int32_t> previous{model.begin()};
  double total = 0;
  for (const int32_t y : kTargets[i]) {
    const Step step = model.step(previous, state, memory, std::vector<int32_t>{static_cast<int32_t>(i)});
    const double* logits = step.logits.data<double>();
    double sum = 0;
    for (int64_t v = 0; v < kV; ++v) sum += std::exp(logits[v]);
    total += logits[y] - std::log(sum);
    state = step.state;
    previous = {y};
  }
  return total;
}

TEST_P(AllModels, StepsGiveTheTeacherForcedLoss) {
  const auto model = f64();
  for (size_t i = 0; i < kSources.size(); ++i)
    EXPECT_NEAR(-stepped(*model, all_sources(), i), loss_of(*model, pairs({i})), 1e-11) << i;
}

/// Everything that the first two steps of sentences `which` return, in f32.
std::vector<std::vector<float>> two_steps(const EncoderDecoder& model, const Sources& sources,
                                          const std::vector<size_t>& which) {
  std::vector<int32_t> sentence_of;
  for (size_t i = 0; i < which.size(); ++i) sentence_of.push_back(static_cast<int32_t>(i));
  const Memory memory = model.encode(sources);
  const std::vector<int32_t> begin(which.size(), model.begin());
  std::vector<int32_t> next;
  for (const size_t i : which) next.push_back(kTargets[i][0]);
  const Step first = model.step(begin, memory.initial_state, memory, sentence_of);
  const Step second = model.step(next, first.state, memory, sentence_of);
  std::vector<std::vector<float>> rows(which.size());
  for (const Step* step : {&first, &second})
    for (size_t r = 0; r < which.size(); ++r) {
      const auto row = static_cast<int64_t>(r);
      const float* logits = step->logits.as_matrix<float>().row(row);
      rows[r].insert(rows[r].end(), logits, logits + kV);
      if (!step->alpha.defined()) continue;
      const float* alpha = step->alpha.as_matrix<float>().row(row);
      rows[r].insert(rows[r].end(), alpha, alpha + sources[r].size());
    }
  return rows;
}

TEST_P(AllModels, ASentencesBitsDoNotDependOnItsNeighbours) {
  const auto model = tests::make(GetParam(), kV);
  const std::vector<size_t> order{3, 1, 0, 2};
  const auto all = two_steps(*model, sources(order), order);
  for (size_t r = 0; r < order.size(); ++r)
    EXPECT_EQ(two_steps(*model, sources(std::span(&order[r], 1)), {order[r]})[0], all[r]);
  std::vector<std::vector<float>> other;
  std::thread([&] { other = two_steps(*model, sources(order), order); }).join();
  EXPECT_EQ(other, all);
}

void expect_same_bits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]) << i;
}

/// Grown among others and reordered at every step, as beam search does it, and word by word alone.
TEST_P(AllModels, AGrownStateEqualsARecomputedOneToTheBit) {
  const auto model = tests::make(GetParam(), kV);
  const Memory memory = model->encode(all_sources());
  const std::vector<int32_t> words{model->begin(), 4, 4, 1, 7, 2}, sentences{3, 0, 1, 0};
  State state = select(memory.initial_state, sentences);
  State alone = select(memory.initial_state, std::vector<int32_t>{0});
  Step grown, recomputed;
  for (size_t t = 0; t < words.size(); ++t) {
    const auto other = static_cast<int32_t>(t % 5);
    grown = model->step(std::vector<int32_t>{other, words[t], 3, other}, state, memory, sentences);
    state = select(grown.state, std::vector<int32_t>{3, 1, 2, 1});
    state = select(state, std::vector<int32_t>{2, 1, 2, 0});
    recomputed = model->step(std::vector<int32_t>{words[t]}, alone, memory, std::vector<int32_t>{0});
    alone = recomputed.state;
  }
  const State row = select(grown.state, std::vector<int32_t>{1});
  ASSERT_EQ(row.size(), alone.size());
  for (size_t i = 0; i < row.size(); ++i) expect_same_bits(row[i], alone[i]);
  expect_same_bits(grown.logits.row_range(1, 2), recomputed.logits);
}

TEST_P(AllModels, ATextReadAtOnceLeavesTheStateOfItsStepsToTheBit) {
  const auto model = tests::make(GetParam(), kV);
  const Memory memory = model->encode(sources(std::vector<size_t>{3, 0}));
  std::vector<std::vector<int32_t>> texts(2, {model->begin()});
  for (int32_t t = 0; t < 70; ++t)
    for (int32_t r = 0; r < 2; ++r) texts[static_cast<size_t>(r)].push_back((t * t + 3 * r + t / 7) % 9);
  const std::vector<std::span<const int32_t>> spans(texts.begin(), texts.end());
  const State read = model->read(spans, memory), stepped = model->EncoderDecoder::read(spans, memory);
  ASSERT_EQ(read.size(), stepped.size());
  for (size_t i = 0; i < read.size(); ++i) expect_same_bits(read[i], stepped[i]);
}

TEST_P(AllModels, AttentionIsADistributionOverTheSource) {
  const auto model = tests::make(GetParam(), kV);
  const Memory memory = model->encode(all_sources());
  const std::vector<int32_t> begin(kSources.size(), model->begin()), sentence_of{0, 1, 2, 3};
  const Step step = model->step(begin, memory.initial_state, memory, sentence_of);
  ASSERT_EQ(step.alpha.defined(), model->attends());
  if (!model->attends()) return;
  for (int64_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (int64_t j = 0; j < memory.sources.length(r); ++j)
      sum += static_cast<double>(step.alpha.as_matrix<float>().row(r)[j]);
    if (GetParam().config.attention == Attention::local_p) {  // its Gaussian takes weight away
      EXPECT_GT(sum, 0);
      EXPECT_LT(sum, 1);
    } else {
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

/// Rows are distributions over what stands before them; a text's beginning has the rows that it has alone.
TEST_P(AllModels, OwnAttentionIsADistributionOverThePast) {
  const auto model = f64();
  const std::vector<int32_t> text{5, 1, 5, 8, 2};
  const Tensor whole = model->own_attention(text);
  if (!whole.defined()) GTEST_SKIP() << "the model looks back at nothing of its own";
  ASSERT_EQ(whole.shape(), (Shape{6, 6}));
  const Tensor part = model->own_attention(std::span(text).first(3));
  const auto w = whole.as_matrix<double>(), p = part.as_matrix<double>();
  for (int64_t t = 0; t < 6; ++t) {
    double sum = 0;
    for (int64_t i = 0; i < 6; ++i) {
      sum += w(t, i);
      EXPECT_TRUE(i <= t || w(t, i) == 0) << t << ", " << i;
      EXPECT_NEAR(w(t, i), t < 4 && i < 4 ? p(t, i) : w(t, i), 1e-15);
    }
    EXPECT_NEAR(sum, t == 0 ? w(0, 0) : 1, 1e-12);
  }
}

/// Target i's row t of alpha, as the steps show it.
std::vector<std::vector<double>> rows_of_alpha(const EncoderDecoder& model, size_t i) {
  const std::vector<std::span<const int32_t>> source{kSources[i]};
  const Memory memory = model.encode(source);
  State state = memory.initial_state;
  int32_t previous = model.begin();
  std::vector<std::vector<double>> alpha;
  for (const int32_t y : kTargets[i]) {
    const Step step = model.step(std::vector<int32_t>{previous}, state, memory, std::vector<int32_t>{0});
    alpha.emplace_back(step.alpha.values<double>().begin(), step.alpha.values<double>().end());
    state = step.state;
    previous = y;
  }
  return alpha;
}

TEST_P(AllModels, GuidedAlignmentAddsTheLogarithmOfTheLinksWeights) {
  const auto model = f64();
  if (!model->attends()) GTEST_SKIP() << "the model has no attention";
  const std::vector<GuidedLink> first{{0, 1, 1}, {1, 0, 0.5F}, {1, 2, 0.5F}}, second{{0, 1, 1}}, none;
  SentencePairs guided = all_pairs();
  guided.guidance = {first, second, none, none};
  double expected = 0;
  for (size_t i = 0; i < guided.guidance.size(); ++i) {
    const auto alpha = rows_of_alpha(*model, i);
    for (const GuidedLink& link : guided.guidance[i]) {
      const double weight = alpha[static_cast<size_t>(link.target)][static_cast<size_t>(link.source)];
      if (weight > 0) expected -= static_cast<double>(link.share) * std::log(weight);  // 0: outside a window
    }
  }
  const LossOptions options{.smoothing = 0.1, .scale = 0.25, .guided_weight = 2};
  EXPECT_NEAR(loss_of(*model, guided, options) - loss_of(*model, all_pairs(), options), 0.5 * expected,
              1e-11);
  tests::expect_every_gradient(*model, guided, options);
}

TEST_P(AllModels, DropoutDependsOnTheSentenceAndTheStepAlone) {
  ModelVariant variant = GetParam();
  if (!variant.reads("dropout")) GTEST_SKIP() << "the model has no dropout";
  variant.config.dropout = 0.4;
  const auto model = tests::make(variant, kV);
  model->convert(DType::f64);
  const LossOptions options{.dropout = DropoutKey{3, 17}}, later{.dropout = DropoutKey{3, 18}};
  double sum = 0;
  for (size_t i = 0; i < kSources.size(); ++i) sum += loss_of(*model, pairs({i}), options);
  EXPECT_NEAR(loss_of(*model, all_pairs(), options), sum, 1e-11);
  EXPECT_GT(std::abs(loss_of(*model, all_pairs(), later) - sum), 1e-6);
  EXPECT_GT(std::abs(loss_of(*model, all_pairs()) - sum), 1e-6);
}

TEST_P(AllModels, TheConfigurationIsWrittenAndReadBack) {
  const ModelVariant& variant = GetParam();
  models::ModelConfig config = variant.config;
  config.source_vocabulary = config.target_vocabulary = kV;
  const auto json = config_json(config, variant.kind->options);
  EXPECT_EQ(config_json(config_from_json(json, variant.kind->options, "config.json"), variant.kind->options),
            json);
}

INSTANTIATE_TEST_SUITE_P(, AllModels, testing::ValuesIn(tests::all_writer_variants()), tests::variant_name);

}  // namespace
}  // namespace regard::models
