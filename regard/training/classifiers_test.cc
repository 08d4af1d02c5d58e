// Training of every registered classifier: it learns, resumes to the bit, and what cannot be is refused.

#include <gtest/gtest.h>

#include "regard/base/file.h"
#include "regard/decoding/classify.h"
#include "regard/models/directory.h"
#include "tests/support/small_session.h"
#include "tests/support/temporary_folder.h"

namespace regard::training {
namespace {

/// Two words of a line are the same, or they are not, or one of them is "no": a bag of alignments can tell.
Lines pairs(int count) {
  Lines lines;
  RandomStream random(5, 9);
  const auto word = [&] { return std::string(1, static_cast<char>('a' + random.below(6))); };
  for (int i = 0; i < count; ++i) {
    const std::string a = word(), b = word();
    const uint64_t kind = random.below(3);
    lines.source.push_back(a + " " + b);
    lines.target.push_back(kind == 2 ? "no " + a : kind == 1 ? "z " + a : a + " " + b);
    lines.labels.push_back(kind == 2 ? "contradiction" : kind == 1 ? "neutral" : "entailment");
  }
  lines.dev_source.assign(lines.source.end() - 60, lines.source.end());
  lines.dev_target.assign(lines.target.end() - 60, lines.target.end());
  lines.dev_labels.assign(lines.labels.end() - 60, lines.labels.end());
  return lines;
}

SessionOptions options_of(const tests::ModelVariant& variant, const std::filesystem::path& output,
                          int64_t steps) {
  auto options = tests::small_session(variant, output, steps);
  options.vocabulary.kind = text::VocabularyKind::words;
  options.training.batch_tokens = 200;
  return options;
}

class ClassifiersThreads : public testing::TestWithParam<tests::ModelVariant> {};

TEST_P(ClassifiersThreads, TwentyStepsEqualTenAndTenOnOtherThreads) {
  const tests::TemporaryFolder folder;
  const Lines lines = pairs(300);
  ThreadPool one(1), two(2);
  run_session(options_of(GetParam(), folder / "whole", 20), lines, {}, one);
  run_session(options_of(GetParam(), folder / "halves", 10), lines, {}, two);
  auto rest = options_of(GetParam(), folder / "halves", 20);
  rest.resume = true;
  run_session(rest, lines, {}, two);
  EXPECT_EQ(read_file(folder / "whole/model.safetensors"), read_file(folder / "halves/model.safetensors"));
}

TEST_P(ClassifiersThreads, LearnsWhatABagOfAlignmentsCanTell) {
  const tests::TemporaryFolder folder;
  const Lines lines = pairs(600);
  auto options = options_of(GetParam(), folder / "m", 200);
  options.config.embedding = options.config.width = 32;
  options.training.learning_rate = 5e-3;
  std::optional<double> reported;
  SessionHooks hooks;
  hooks.report = [&](const Report& report) {
    if (report.dev_accuracy) reported = report.dev_accuracy;
  };
  ThreadPool pool(2);
  run_session(options, lines, hooks, pool);
  const auto trained = models::load_classifier(folder / "m");
  EXPECT_EQ(trained.labels, (std::vector<std::string>{"contradiction", "entailment", "neutral"}));
  const auto premises = text::encode_lines(*trained.vocabulary, lines.dev_source, trained.longest);
  const auto hypotheses = text::encode_lines(*trained.vocabulary, lines.dev_target, trained.longest);
  const auto found = decoding::classify(*trained.model, premises, hypotheses, pool, true);
  int right = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    right += trained.labels[static_cast<size_t>(found[i].best)] == lines.dev_labels[i];
    EXPECT_EQ(found[i].alpha.size(), premises[static_cast<int64_t>(i)].size());
  }
  EXPECT_EQ(right, 60);
  EXPECT_EQ(reported, 1.0);
}

INSTANTIATE_TEST_SUITE_P(, ClassifiersThreads,
                         testing::ValuesIn(tests::all_model_variants(models::Task::classification)),
                         tests::variant_name);

TEST(Classifiers, LabelsAndModelsMustFit) {
  const tests::TemporaryFolder folder;
  const auto variant = tests::all_model_variants(models::Task::classification).at(0);
  ThreadPool pool(1);
  Lines lines = pairs(100);
  lines.dev_labels[7] = "maybe";
  EXPECT_THROW(run_session(options_of(variant, folder / "a", 5), lines, {}, pool), DataError);
  lines.labels.clear();
  lines.dev_labels.clear();
  EXPECT_THROW(run_session(options_of(variant, folder / "b", 5), lines, {}, pool), DataError);
  run_session(options_of(variant, folder / "c", 2), pairs(100), {}, pool);
  EXPECT_THROW(models::load_model(folder / "c"), UsageError);
}

}  // namespace
}  // namespace regard::training
