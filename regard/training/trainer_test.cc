// The loop itself: gradients over several batches, and means of weights.

#include "regard/training/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "regard/base/file.h"
#include "regard/models/registry.h"
#include "regard/training/session.h"
#include "tests/support/error_message.h"
#include "tests/support/letters.h"
#include "tests/support/temporary_folder.h"

namespace regard::training {
namespace {

using Weights = std::vector<std::vector<float>>;

Weights weights_of(std::span<const nn::Parameter> parameters) {
  Weights weights;
  for (const auto& p : parameters)
    weights.emplace_back(p.value.values<float>().begin(), p.value.values<float>().end());
  return weights;
}

/// A small model and its data.
class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    const Lines lines = tests::letters(60, false);
    std::vector<std::string> both = lines.source;
    const auto vocabulary = text::train_vocabulary(both, {.kind = text::VocabularyKind::characters});
    data_.source = text::encode_lines(*vocabulary, lines.source, 128);
    data_.target = text::encode_lines(*vocabulary, lines.target, 128);
    data_.dev_source = text::encode_lines(*vocabulary, lines.dev_source, 128);
    data_.dev_target = text::encode_lines(*vocabulary, lines.dev_target, 128);
    config_ = models::model_kind("gru").defaults;
    config_.source_vocabulary = config_.target_vocabulary = vocabulary->size();
    config_.embedding = config_.width = config_.readout_width = 16;
    options_.warm_up = 1;
    options_.adam.clip = 0;
  }

  std::unique_ptr<models::EncoderDecoder> model() const {
    return models::make_encoder_decoder(models::model_kind("gru"), config_, 3);
  }

  Data data_;
  models::ModelConfig config_;
  TrainingOptions options_;
  ThreadPool pool_{1};
};

TEST_F(TrainerTest, AStepOfSeveralBatchesIsAStepOfTheirUnion) {
  options_.steps = 1;
  const auto once = model(), accumulated = model();
  options_.batch_tokens = 100'000;
  Trainer(*once, data_, options_, pool_).run({});
  options_.batch_tokens = 50;
  options_.accumulate = 1000;
  Trainer trainer(*accumulated, data_, options_, pool_);
  trainer.run({});
  EXPECT_EQ(trainer.progress().step, 1);
  EXPECT_EQ(trainer.progress().epoch, 1);
  EXPECT_GT(text::make_batches(data_.source, data_.target, {.tokens = 50}, 1, 0).size(), 5U);
  const auto a = weights_of(once->parameters()), b = weights_of(accumulated->parameters());
  // Adam's first step is the sign of a gradient times the rate: where a gradient is rounding alone it may
  // turn.
  size_t differing = 0, all = 0;
  for (size_t p = 0; p < a.size(); ++p)
    for (size_t i = 0; i < a[p].size(); ++i, ++all) differing += std::abs(a[p][i] - b[p][i]) > 1e-5F;
  EXPECT_LT(differing, all / 500);
  EXPECT_GT(all, 1000U);
}

TEST_F(TrainerTest, ALossThatIsNoNumberStopsWithTheLinesAndTheLastGoodCheckpoint) {
  options_.batch_tokens = 50;
  options_.steps = 20;
  options_.evaluate_every = 2;
  options_.save_every = 0;
  const auto broken = model();
  Trainer trainer(*broken, data_, options_, pool_);
  Weights kept;
  Hooks hooks;
  hooks.improved = [&] { kept = weights_of(broken->parameters()); };
  hooks.save = [&](const Progress& progress) {
    if (progress.step == 3) broken->parameters().back().value.data<float>()[0] = std::nanf("");
  };
  const std::string message = tests::error_message<DataError>([&] { trainer.run(hooks); });
  const std::string before = "training stopped at step 4: the loss is not a finite number (lines",
                    after = "; the last good checkpoint, of step 2, is kept; try a lower --learning-rate";
  ASSERT_TRUE(message.starts_with(before)) << message;
  EXPECT_NE(message.find(after), std::string::npos) << message;
  std::istringstream lines(message.substr(before.size()));
  size_t named = 0;
  for (int64_t line = 0; lines >> line; ++named) {
    EXPECT_GE(line, 1);
    EXPECT_LE(line, data_.source.size());
  }
  EXPECT_GT(named, 0U);
  ASSERT_FALSE(kept.empty());
  for (const auto& tensor : kept)
    for (const float weight : tensor) ASSERT_TRUE(std::isfinite(weight));
}

// The loss before the step is a number, what the step leaves is not.
TEST_F(TrainerTest, WeightsThatAreNoNumbersAreNeitherKeptNorSaved) {
  options_.batch_tokens = 50;
  options_.steps = 20;
  options_.learning_rate = 1e39;  // an infinite step in f32
  options_.save_every = 0;
  for (const bool with_dev : {true, false})
    for (const int64_t evaluate_every : {1, 100}) {
      SCOPED_TRACE(testing::Message() << with_dev << evaluate_every);
      options_.evaluate_every = evaluate_every;
      Data data = data_;
      if (!with_dev) data.dev_source = data.dev_target = {};
      const auto broken = model();
      Trainer trainer(*broken, data, options_, pool_);
      Hooks hooks;
      hooks.improved = [] { ADD_FAILURE(); };
      hooks.save = [](const Progress&) { ADD_FAILURE(); };
      const std::string message = tests::error_message<DataError>([&] { trainer.run(hooks); });
      EXPECT_TRUE(message.starts_with("training stopped at step 1: the weights embedding")) << message;
      EXPECT_NE(message.find("are not finite numbers; the last good checkpoint, of step 0, is kept"),
                std::string::npos)
          << message;
    }
}

TEST_F(TrainerTest, TheMeanOfTheLastEvaluationsWeightsIsEvaluatedAndTrainingGoesOnFromTheLast) {
  options_.steps = 20;
  options_.evaluate_every = 5;
  options_.average = 3;
  options_.batch_tokens = 60;
  const auto averaged = model(), plain = model();
  Trainer trainer(*averaged, data_, options_, pool_);
  std::vector<Weights> evaluated;
  Hooks hooks;
  hooks.dev_quality = [&](Report&) { evaluated.push_back(weights_of(averaged->parameters())); };
  trainer.run(hooks);
  ASSERT_EQ(evaluated.size(), 4U);
  ASSERT_EQ(trainer.checkpoints().size(), 3U);
  for (size_t p = 0; p < evaluated[3].size(); ++p)
    for (size_t i = 0; i < evaluated[3][p].size(); ++i) {
      float mean = 0;
      for (const auto& checkpoint : trainer.checkpoints()) mean += checkpoint[p].data<float>()[i] / 3;
      ASSERT_NEAR(evaluated[3][p][i], mean, 1e-6F);
    }
  options_.average = 1;
  Trainer(*plain, data_, options_, pool_).run({});
  EXPECT_EQ(weights_of(averaged->parameters()), weights_of(plain->parameters()));
  EXPECT_EQ(evaluated[0], [&] {
    const auto again = model();
    options_.steps = 5;
    Trainer(*again, data_, options_, pool_).run({});
    return weights_of(again->parameters());
  }());
}

TEST(TrainerThreads, AccumulatedAndAveragedItResumesToTheBit) {
  const tests::TemporaryFolder folder;
  const Lines lines = tests::letters(400, false);
  const auto options = [&](const char* name, int64_t steps) {
    SessionOptions session;
    session.output = folder / name;
    session.model = "gru";
    session.config.embedding = session.config.width = session.config.readout_width = 16;
    session.config.residual = true;
    session.config.layers = 2;
    session.vocabulary.kind = text::VocabularyKind::characters;
    session.training.steps = steps;
    session.training.batch_tokens = 100;
    session.training.evaluate_every = 4;
    session.training.accumulate = 3;
    session.training.average = 3;
    return session;
  };
  ThreadPool one(1), two(2);
  run_session(options("whole", 20), lines, {}, one);
  run_session(options("parts", 10), lines, {}, two);
  auto rest = options("parts", 20);
  rest.resume = true;
  run_session(rest, lines, {}, two);
  EXPECT_EQ(read_file(folder / "whole/model.safetensors"), read_file(folder / "parts/model.safetensors"));
  EXPECT_NE(read_file(folder / "parts/state/state.safetensors").find("mean.2."), std::string::npos);
  rest.training.average = 1;
  rest.training.steps = 30;
  try {
    run_session(rest, lines, {}, one);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("training.average was 3 and is now the default"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace regard::training
