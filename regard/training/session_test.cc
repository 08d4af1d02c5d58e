// Training as a user runs it: the trajectory, resuming, interruptions, and what the attention learns.

#include "regard/training/session.h"

#include <gtest/gtest.h>

#include "regard/base/file.h"
#include "regard/decoding/search.h"
#include "regard/storage/checksum.h"
#include "regard/text/toy_grammar.h"
#include "tests/support/temporary_folder.h"

namespace regard::training {
namespace {

/// `count` lines of letters and the same (or reversed) as targets.
Lines letters(int count, bool reverse) {
  Lines lines;
  RandomStream random(5, 9);
  for (int i = 0; i < count; ++i) {
    std::string source, target;
    const auto length = 2 + random.below(5);
    for (uint64_t k = 0; k < length; ++k) {
      const auto letter = static_cast<char>('a' + random.below(8));
      source += letter;
      target = reverse ? letter + target : target + letter;
    }
    lines.source.push_back(source);
    lines.target.push_back(target);
  }
  lines.dev_source.assign(lines.source.begin(), lines.source.begin() + 30);
  lines.dev_target.assign(lines.target.begin(), lines.target.begin() + 30);
  return lines;
}

SessionOptions small(const std::filesystem::path& output, int64_t steps) {
  SessionOptions options;
  options.output = output;
  options.config = {0, 0, 16, 16, 16, 16};
  options.vocabulary.kind = text::VocabularyKind::characters;
  options.training.steps = steps;
  options.training.batch_tokens = 300;
  options.training.evaluate_every = 7;
  options.training.warm_up = 10;
  options.training.report_every = 5;
  return options;
}

std::string weights_of(const std::filesystem::path& directory) {
  return read_file(directory / "model.safetensors");
}

TEST(SessionThreads, TwentyStepsEqualTenAndTenOnOtherThreads) {
  const tests::TemporaryFolder folder;
  const Lines lines = letters(400, false);
  ThreadPool one(1), two(2);
  run_session(small(folder / "whole", 20), lines, {}, one);
  run_session(small(folder / "halves", 10), lines, {}, two);
  auto rest = small(folder / "halves", 20);
  rest.resume = true;
  run_session(rest, lines, {}, two);
  EXPECT_EQ(weights_of(folder / "whole"), weights_of(folder / "halves"));
}

TEST(Session, InterruptedAnywhereItGoesOnToTheSameWeights) {
  const tests::TemporaryFolder folder;
  const Lines lines = letters(400, false);
  ThreadPool pool(1);
  run_session(small(folder / "whole", 12), lines, {}, pool);
  int asked = 0;
  SessionHooks hooks;
  hooks.interrupted = [&] { return ++asked == 6; };
  auto options = small(folder / "parts", 12);
  EXPECT_EQ(run_session(options, lines, hooks, pool), Ending::interrupted);
  options.resume = true;
  EXPECT_EQ(run_session(options, lines, {}, pool), Ending::finished);
  EXPECT_EQ(weights_of(folder / "whole"), weights_of(folder / "parts"));
}

TEST(Session, WhatCannotBeResumedIsRefused) {
  const tests::TemporaryFolder folder;
  const Lines lines = letters(200, false);
  ThreadPool pool(1);
  auto options = small(folder / "m", 2);
  run_session(options, lines, {}, pool);
  EXPECT_THROW(run_session(options, lines, {}, pool), UsageError);  // not empty
  options.resume = true;
  options.training.learning_rate = 0.5;
  try {
    run_session(options, lines, {}, pool);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("learning_rate was"), std::string::npos) << error.what();
  }
  options = small(folder / "m", 4);
  options.resume = true;
  EXPECT_THROW(run_session(options, letters(201, false), {}, pool), UsageError);  // other data
  Lines unequal = lines;
  unequal.target.pop_back();
  EXPECT_THROW(run_session(small(folder / "n", 1), unequal, {}, pool), DataError);
  EXPECT_THROW(run_session(small(folder / "n", 1), {}, {}, pool), DataError);
}

TEST(Session, ADamagedFileIsNamedAtLoad) {
  const tests::TemporaryFolder folder;
  ThreadPool pool(1);
  run_session(small(folder / "m", 1), letters(100, false), {}, pool);
  for (const std::string name :
       {"config.json", "model.safetensors", "source.vocab.json", "target.vocab.json", "manifest.json"}) {
    const std::string whole = read_file(folder / "m" / name);
    std::string flipped = whole;
    flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 4);
    for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() / 2), flipped}) {
      write_file_atomically(folder / "m" / name, damaged);
      try {
        models::load_model(folder / "m");
        ADD_FAILURE() << name << " was accepted";
      } catch (const DataError& error) {
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
    }
    write_file_atomically(folder / "m" / name, whole);
  }
  EXPECT_NO_THROW(models::load_model(folder / "m"));
}

class SlowTask : public testing::TestWithParam<bool> {};

TEST_P(SlowTask, CopyAndReverseReachAHundredPercent) {
  const tests::TemporaryFolder folder;
  const Lines lines = letters(3000, GetParam());
  auto options = small(folder / "m", 900);
  options.config = {0, 0, 48, 48, 48, 48};
  options.training.learning_rate = 6e-3;
  options.training.warm_up = 100;
  options.training.batch_tokens = 600;
  options.training.evaluate_every = 300;
  options.training.label_smoothing = 0.1;
  ThreadPool pool(2);
  run_session(options, lines, {}, pool);
  const auto trained = models::load_model(folder / "m");
  std::vector<std::vector<int32_t>> ids;
  for (size_t i = 0; i < 200; ++i) {
    ids.push_back(trained.source->encode(lines.source[i]));
    ids.back().push_back(0);
  }
  const std::vector<std::span<const int32_t>> sources(ids.begin(), ids.end());
  const auto greedy = decoding::search(*trained.model, sources, {.beam = 1}, pool);
  int right = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    right += trained.target->decode(greedy[i].at(0).ids) == lines.target[i];
  EXPECT_EQ(right, 200);

  // Alone and in any batch, on one thread and two: the same tokens and the same bits of the score.
  ThreadPool one(1);
  for (const int64_t beam : {1, 4}) {
    const auto all = decoding::search(*trained.model, sources, {.beam = beam}, pool);
    for (size_t i = 0; i < 20; ++i) {
      const auto alone =
          decoding::search(*trained.model, std::span(&sources[i], 1), {.beam = beam, .sentences = 1}, one);
      ASSERT_EQ(alone[0].size(), all[i].size());
      for (size_t h = 0; h < all[i].size(); ++h) {
        EXPECT_EQ(alone[0][h].ids, all[i][h].ids);
        EXPECT_EQ(alone[0][h].score, all[i][h].score);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, SlowTask, testing::Bool());

}  // namespace
}  // namespace regard::training
