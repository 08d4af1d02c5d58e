// Training as a user runs it: the trajectory, resuming, interruptions, and what the attention learns.

#include "regard/training/session.h"

#include <gtest/gtest.h>

#include <cmath>

#include "regard/base/file.h"
#include "regard/decoding/search.h"
#include "regard/storage/checksum.h"
#include "regard/text/toy_grammar.h"
#include "tests/support/letters.h"
#include "tests/support/temporary_folder.h"

namespace regard::training {
namespace {

using tests::letters;

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

/// Hooks that interrupt training when it asks for the n-th time.
SessionHooks interrupted_at(int n) {
  SessionHooks hooks;
  hooks.interrupted = [n, asked = 0]() mutable { return ++asked == n; };
  return hooks;
}

std::string weights_of(const std::filesystem::path& directory) {
  return read_file(directory / "model.safetensors");
}

// Case 24.
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

TEST(Session, OptionsThatDoNotFitAreRefusedBeforeAnythingIsWritten) {
  const tests::TemporaryFolder folder;
  Lines lines = letters(40, false);
  ThreadPool pool(1);
  auto options = small(folder / "m", 2);
  options.model = "luong";
  options.config.attention = models::Attention::local_p;
  EXPECT_THROW(run_session(options, lines, {}, pool), UsageError);
  options = small(folder / "m", 2);
  options.model = "gru";
  lines.links.resize(lines.source.size());
  EXPECT_THROW(run_session(options, lines, {}, pool), UsageError);
  options.model = "bahdanau";
  lines.links.pop_back();
  EXPECT_THROW(run_session(options, lines, {}, pool), DataError);
  EXPECT_FALSE(std::filesystem::exists(folder / "m"));
}

TEST(Session, InterruptedAnywhereItGoesOnToTheSameWeights) {
  const tests::TemporaryFolder folder;
  const Lines lines = letters(400, false);
  ThreadPool pool(1);
  run_session(small(folder / "whole", 12), lines, {}, pool);
  auto options = small(folder / "parts", 12);
  EXPECT_EQ(run_session(options, lines, interrupted_at(6), pool), Ending::interrupted);
  options.resume = true;
  EXPECT_EQ(run_session(options, lines, {}, pool), Ending::finished);
  EXPECT_EQ(weights_of(folder / "whole"), weights_of(folder / "parts"));
}

// Ctrl-C before the first evaluation.
TEST(Session, UntilTheFirstEvaluationTheLastWeightsAreKept) {
  const tests::TemporaryFolder folder;
  const Lines lines = letters(400, false);
  ThreadPool pool(1);
  run_session(small(folder / "whole", 3), lines, {}, pool);
  EXPECT_EQ(run_session(small(folder / "parts", 12), lines, interrupted_at(4), pool), Ending::interrupted);
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

TEST(Session, WeightsThatCouldNotBeWrittenAreWrittenWithTheNextSave) {
  const tests::TemporaryFolder folder;
  const Lines lines = letters(200, false);
  ThreadPool pool(1);
  run_session(small(folder / "whole", 7), lines, {}, pool);
  const auto obstacle = folder / "m/model.safetensors.tmp";  // a folder where the new file is to be written
  int warnings = 0;
  SessionHooks hooks;
  hooks.report = [&](const Report& report) {
    if (report.step == 5) std::filesystem::create_directory(obstacle);
  };
  hooks.warn = [&](const std::string& message) {
    EXPECT_NE(message.find("cannot write " + obstacle.string()), std::string::npos) << message;
    ++warnings;
    std::filesystem::remove(obstacle);
  };
  EXPECT_EQ(run_session(small(folder / "m", 7), lines, hooks, pool), Ending::finished);
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(weights_of(folder / "m"), weights_of(folder / "whole"));

  hooks.warn = [&](const std::string&) { ++warnings; };
  const auto again = [&] { run_session(small(folder / "n", 7), lines, hooks, pool); };
  const auto other = folder / "n/model.safetensors.tmp";
  hooks.report = [&](const Report& report) {
    if (report.step == 5) std::filesystem::create_directory(other);
  };
  EXPECT_THROW(again(), SystemError);  // although the state, written last, was written well
  EXPECT_EQ(warnings, 3);              // the evaluation's and the last save's
  EXPECT_NO_THROW(models::load_model(folder / "n"));
  std::filesystem::remove(other);
  auto rest = small(folder / "n", 8);
  rest.resume = true;
  EXPECT_EQ(run_session(rest, lines, {}, pool), Ending::finished);
}

TEST(Session, WhatFailsBeforeTheFirstStateLeavesNothing) {
  const tests::TemporaryFolder folder;
  ThreadPool pool(1);
  Lines blank;
  blank.source = blank.target = {" ", ""};
  EXPECT_THROW(run_session(small(folder / "m", 1), blank, {}, pool), DataError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Case 25: the only target of a batch is one token, or nothing but its end; so is a source.
TEST(Session, Case25SidesOfOneTokenTrain) {
  const tests::TemporaryFolder folder;
  ThreadPool pool(1);
  Lines lines;
  lines.source = {"a", "", "b", ""};
  lines.target = {"b", "a", "", ""};
  auto options = small(folder / "m", 8);
  options.training.batch_tokens = 1;  // a batch each
  std::vector<double> losses;
  SessionHooks hooks;
  hooks.report = [&](const Report& report) {
    if (report.loss) losses.push_back(*report.loss);
  };
  EXPECT_EQ(run_session(options, lines, hooks, pool), Ending::finished);
  EXPECT_FALSE(losses.empty());
  for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss)) << loss;
  EXPECT_NO_THROW(models::load_model(folder / "m"));
}

TEST(Session, ALanguageModelReadsTextAlone) {
  const tests::TemporaryFolder folder;
  ThreadPool pool(1);
  auto options = small(folder / "m", 2);
  options.model = "gru-lm";
  EXPECT_THROW(run_session(options, letters(40, false), {}, pool), DataError);
  EXPECT_THROW(run_session(options, {}, {}, pool), DataError);
  Lines lines;
  lines.target = {"the first line", "and one more"};
  run_session(options, lines, {}, pool);
  EXPECT_TRUE(models::load_model(folder / "m", models::Task::language).is_stream);
  EXPECT_THROW(models::load_model(folder / "m"), UsageError);
  options.text_lines = options.resume = true;
  EXPECT_THROW(run_session(options, lines, {}, pool), UsageError);
  options.resume = false;
  options.output = folder / "lines";
  options.longest = 13;
  std::vector<std::string> notes;
  SessionHooks hooks;
  hooks.note = [&](const std::string& message) { notes.push_back(message); };
  run_session(options, lines, hooks, pool);
  EXPECT_FALSE(models::load_model(folder / "lines", models::Task::language).is_stream);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0], "1 of 2 lines are longer than 13 pieces and were cut (the first is number 1)");
}

TEST(Session, CutSentencesAreCounted) {
  const tests::TemporaryFolder folder;
  ThreadPool pool(1);
  Lines lines = letters(50, false);
  lines.source[20] = lines.target[30] = std::string(200, 'a');
  std::vector<std::string> notes;
  SessionHooks hooks;
  hooks.note = [&](const std::string& message) { notes.push_back(message); };
  run_session(small(folder / "m", 1), lines, hooks, pool);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "2 of 50 pairs are longer than 128 pieces and were cut (the first is number 21)");
}

TEST(Session, ADamagedStateIsNamedOnResuming) {
  const tests::TemporaryFolder folder;
  ThreadPool pool(1);
  const Lines lines = letters(100, false);
  auto options = small(folder / "m", 1);
  run_session(options, lines, {}, pool);
  options.resume = true;
  const auto path = folder / "m/state/state.safetensors";
  const std::string whole = read_file(path);
  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() / 2), whole + "x"}) {
    write_file_atomically(path, damaged);
    EXPECT_THROW(run_session(options, lines, {}, pool), DataError);
  }
  std::filesystem::remove(path);
  EXPECT_THROW(run_session(options, lines, {}, pool), DataError);
  EXPECT_NO_THROW(models::load_model(folder / "m"));
}

}  // namespace
}  // namespace regard::training
