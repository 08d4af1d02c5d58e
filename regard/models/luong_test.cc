// What is Luong's alone: options that fit, two ways to compute the same, and where a window lets a row look.
// Everything else that a model must do: all_models_test.cc, golden_test.cc.

#include "regard/models/luong.h"

#include <gtest/gtest.h>

#include <cmath>

#include "regard/models/registry.h"
#include "tests/support/sentence_pairs.h"

namespace regard::models {
namespace {

const tests::Words kSources{{3, 7, 3, 9, 0}, {7, 6, 0}, {0}, {5, 5, 2, 8, 4, 6, 0}};
const tests::Words kTargets{{5, 1, 5, 8, 0}, {2, 0}, {4, 3, 0}, {0}};

SentencePairs pairs() { return tests::sentence_pairs(kSources, kTargets); }

ModelConfig small() {
  ModelConfig config;
  config.source_vocabulary = config.target_vocabulary = 11;
  config.embedding = 4;
  config.width = 5;
  config.alignment_width = 3;
  config.readout_width = 6;
  return config;
}

std::unique_ptr<EncoderDecoder> make(const ModelConfig& config) {
  auto model = make_encoder_decoder(model_kind("luong"), config, 5);
  model->convert(DType::f64);
  return model;
}

std::vector<ModelConfig> kinds_of_attention() {
  std::vector<ModelConfig> list;
  for (const Score score : {Score::dot, Score::general, Score::concat, Score::location})
    for (const Attention attention : {Attention::global, Attention::local_m, Attention::local_p}) {
      if (attention != Attention::global && score != Score::dot && score != Score::general) continue;
      ModelConfig config = small();
      config.score = score;
      config.attention = attention;
      config.window = attention == Attention::global ? 0 : 2;
      config.longest_source = score == Score::location ? 6 : 0;
      list.push_back(config);
    }
  return list;
}

/// With F = 0 the decoder steps one by one but reads nothing of h~: the same numbers as all steps at once,
/// with dropout too, for several layers and cells.
TEST(Luong, StepByStepAndAtOnceAreTheSame) {
  const LossOptions options{.smoothing = 0.1, .dropout = DropoutKey{3, 17}};
  for (ModelConfig config : kinds_of_attention()) {
    config.dropout = 0.3;
    config.layers = 3;
    config.cell = config.score == Score::general ? nn::CellKind::lstm : nn::CellKind::gru;
    const auto at_once = make(config);
    config.input_feeding = true;
    const auto step_by_step = make(config);
    std::vector<nn::Parameter> values = at_once->parameters();
    for (const auto& parameter : step_by_step->parameters())
      if (parameter.name == "decoder.F")
        values.push_back({parameter.name, Tensor::zeros(parameter.value.shape(), DType::f64)});
    step_by_step->load(values);
    EXPECT_NEAR(step_by_step->loss(pairs(), options).data<double>()[0],
                at_once->loss(pairs(), options).data<double>()[0], 1e-11);
  }
}

/// Log-probability of target i, step by step, and where the rows looked.
double stepped(const EncoderDecoder& model, size_t i, std::vector<std::vector<double>>& alpha) {
  const Memory memory = model.encode(pairs().sources);
  const std::vector<int32_t> sentence{static_cast<int32_t>(i)};
  State state = select(memory.initial_state, sentence);
  int32_t previous = model.begin();
  double total = 0;
  for (const int32_t y : kTargets[i]) {
    const Step step = model.step(std::vector<int32_t>{previous}, state, memory, sentence);
    double sum = 0;
    for (const double logit : step.logits.values<double>()) sum += std::exp(logit);
    total += step.logits.data<double>()[y] - std::log(sum);
    alpha.emplace_back(step.alpha.data<double>(), step.alpha.data<double>() + kSources[i].size());
    state = step.state;
    previous = y;
  }
  return total;
}

TEST(Luong, EveryCombinationStepsAsItIsTrained) {
  for (ModelConfig config : kinds_of_attention())
    for (const bool feeding : {false, true})
      for (const bool both_ways : {false, true}) {
        if (both_ways && config.score == Score::dot) continue;
        config.input_feeding = feeding;
        config.bidirectional = both_ways;
        config.layers = 2;
        config.cell = both_ways ? nn::CellKind::lstm : nn::CellKind::gru_2014;
        const auto model = make(config);
        double sum = 0;
        std::vector<std::vector<double>> alpha;
        for (size_t i = 0; i < kSources.size(); ++i) sum -= stepped(*model, i, alpha);
        EXPECT_NEAR(model->loss(pairs(), {}).data<double>()[0], sum, 1e-11);
      }
}

TEST(Luong, LocalMLooksAroundTheTargetsPosition) {
  ModelConfig config = small();
  config.attention = Attention::local_m;
  config.window = 1;
  const auto model = make(config);
  std::vector<std::vector<double>> alpha;
  stepped(*model, 0, alpha);
  ASSERT_EQ(alpha.size(), 5U);
  for (size_t t = 0; t < alpha.size(); ++t)
    for (size_t s = 0; s < alpha[t].size(); ++s)
      EXPECT_EQ(alpha[t][s] > 0, s + 1 >= t && s <= t + 1) << t << " " << s;
  alpha.clear();
  stepped(*model, 2, alpha);  // a source of one position: from the third step on the window is empty
  EXPECT_EQ(alpha, (std::vector<std::vector<double>>{{1}, {1}, {0}}));
}

/// What the refusal says; empty if nothing is refused.
template <class Change>
std::string refusal(const Change& change) {
  ModelConfig config = small();
  change(config);
  try {
    make_encoder_decoder(model_kind("luong"), config, 1);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Luong, OptionsThatDoNotFitAreRefusedWithTheReason) {
  EXPECT_EQ(refusal([](ModelConfig&) {}), "");
  EXPECT_EQ(refusal([](ModelConfig& c) { c.attention = Attention::local_p; }),
            "--attention local-p needs --window D, the half width of its window");
  EXPECT_EQ(refusal([](ModelConfig& c) { c.attention = Attention::local_m; }),
            "--attention local-m needs --window D, the half width of its window");
  EXPECT_EQ(refusal([](ModelConfig& c) { c.window = 3; }),
            "--window says nothing to --attention global, which sees all of the source");
  EXPECT_EQ(refusal([](ModelConfig& c) {
              c.attention = Attention::local_p;
              c.window = 3;
              c.score = Score::concat;
            }),
            "--attention local-p goes with --score dot or general, not with concat");
  EXPECT_EQ(refusal([](ModelConfig& c) { c.score = Score::location; }),
            "--score location needs --longest-source L: it has weights for so many positions");
  EXPECT_EQ(refusal([](ModelConfig& c) { c.longest_source = 9; }),
            "--longest-source says nothing to --score general");
  EXPECT_EQ(refusal([](ModelConfig& c) {
              c.score = Score::dot;
              c.bidirectional = true;
            }),
            "--score dot needs states and annotations of one width, and --bidirectional makes annotations of "
            "twice --width; use --score general");
}

}  // namespace
}  // namespace regard::models
