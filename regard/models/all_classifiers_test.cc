// What every classifier must do, whatever its equations: walks over the registry.

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "regard/base/file.h"
#include "regard/storage/json.h"
#include "tests/support/all_models.h"
#include "tests/support/every_gradient.h"

namespace regard::models {
namespace {

constexpr int64_t kV = 11, kClasses = 3;
const std::vector<std::vector<int32_t>> kPremises{
    {3, 7, 3, 9, 1, 2, 8, 4, 5, 6, 3, 7, 0}, {7, 6, 0}, {0}, {5, 5, 2, 8, 4, 6, 0}};
const std::vector<std::vector<int32_t>> kHypotheses{{5, 1, 5, 8, 0}, {2, 0}, {4, 3, 0}, {0}};
const std::vector<int32_t> kLabels{2, 0, 1, 1};

SentencePairs pairs(std::span<const size_t> which) {
  SentencePairs result;
  for (const size_t i : which) {
    result.sources.emplace_back(kPremises[i]);
    result.targets.emplace_back(kHypotheses[i]);
    result.labels.push_back(kLabels[i]);
    result.numbers.push_back(i);
  }
  return result;
}
SentencePairs all_pairs() { return pairs(std::vector<size_t>{0, 1, 2, 3}); }

class AllClassifiers : public testing::TestWithParam<tests::ModelVariant> {
 protected:
  static std::unique_ptr<Classifier> f64(double dropout = 0) {
    tests::ModelVariant variant = GetParam();
    variant.config.dropout = dropout;
    auto model = tests::make_classifier(variant, kV, kClasses);
    model->convert(DType::f64);
    return model;
  }
};

double loss_of(const Model& model, const SentencePairs& some, const LossOptions& options = {}) {
  return model.loss(some, options).data<double>()[0];
}

TEST_P(AllClassifiers, EveryParameterReceivesTheGradientOfTheLoss) {
  tests::expect_every_gradient(*f64(), all_pairs(), {.smoothing = 0.1});
}

TEST_P(AllClassifiers, TheLossIsTheCrossEntropyOfTheLabels) {
  const auto model = f64();
  const Tensor logits = model->classify(all_pairs()).logits;
  double expected = 0;
  for (size_t i = 0; i < kLabels.size(); ++i) {
    const double* row = logits.as_matrix<double>().row(static_cast<int64_t>(i));
    double sum = 0;
    for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(row[c]);
    expected += std::log(sum) - row[kLabels[i]];
  }
  EXPECT_NEAR(loss_of(*model, all_pairs()), expected, 1e-11);
  EXPECT_NEAR(loss_of(*model, all_pairs(), {.scale = 0.25}), expected / 4, 1e-11);
}

TEST_P(AllClassifiers, DropoutDependsOnThePairAndTheStepAlone) {
  const auto model = f64(0.4);
  const LossOptions options{.dropout = DropoutKey{3, 17}}, later{.dropout = DropoutKey{3, 18}};
  double sum = 0;
  for (size_t i = 0; i < kLabels.size(); ++i) sum += loss_of(*model, pairs(std::vector<size_t>{i}), options);
  EXPECT_NEAR(loss_of(*model, all_pairs(), options), sum, 1e-11);
  EXPECT_GT(std::abs(loss_of(*model, all_pairs(), later) - sum), 1e-6);
  EXPECT_GT(std::abs(loss_of(*model, all_pairs()) - sum), 1e-6);
}

std::vector<std::vector<float>> logits_of(const Classifier& model, const std::vector<size_t>& which) {
  const Tensor logits = model.classify(pairs(which)).logits;
  std::vector<std::vector<float>> rows;
  for (int64_t i = 0; i < logits.rows(); ++i) {
    const float* row = logits.as_matrix<float>().row(i);
    rows.emplace_back(row, row + kClasses);
  }
  return rows;
}

TEST_P(AllClassifiers, APairsBitsDoNotDependOnItsNeighbours) {
  const auto model = tests::make_classifier(GetParam(), kV, kClasses);
  const std::vector<size_t> order{3, 1, 0, 2};
  const auto all = logits_of(*model, order);
  for (size_t r = 0; r < order.size(); ++r) EXPECT_EQ(logits_of(*model, {order[r]})[0], all[r]);
  std::vector<std::vector<float>> other;
  std::thread([&] { other = logits_of(*model, order); }).join();
  EXPECT_EQ(other, all);
}

TEST_P(AllClassifiers, AttentionIsADistributionOverTheHypothesis) {
  const auto model = f64();
  const Classified found = model->classify(all_pairs(), true);
  ASSERT_EQ(found.alpha.size(), kLabels.size());
  for (size_t p = 0; p < kLabels.size(); ++p) {
    ASSERT_EQ(found.alpha[p].rows(), static_cast<int64_t>(kPremises[p].size()));
    ASSERT_EQ(found.alpha[p].dim(1), static_cast<int64_t>(kHypotheses[p].size()));
    for (int64_t i = 0; i < found.alpha[p].rows(); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < found.alpha[p].dim(1); ++j) sum += found.alpha[p].as_matrix<double>()(i, j);
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, AllClassifiers, testing::ValuesIn(tests::all_model_variants(Task::classification)),
                         tests::variant_name);

/// Against tests/golden/decomposable.py, which is in float64.
class DecomposableGolden : public testing::TestWithParam<bool> {};

TEST_P(DecomposableGolden, LossAttentionAndEveryGradient) {
  const std::string path = std::string(REGARD_SOURCE_DIR) + "/tests/golden/decomposable.json";
  const auto all = parse_json_object(read_file(path), path);
  const auto& expected = all.at("configurations").at(GetParam() ? "intra_sentence" : "words").as_object();
  ModelConfig config;
  config.source_vocabulary = kV;
  config.target_vocabulary = kClasses;
  config.embedding = 4;
  config.width = 5;
  config.intra_sentence = GetParam();
  const auto model = make_classifier(model_kind("decomposable"), config, 1);
  model->convert(DType::f64);
  double p = 0;
  for (const auto& parameter : model->parameters()) {
    double i = 0;
    for (double& x : parameter.value.values<double>()) x = 0.9 * std::sin(1 + 0.7 * i++ + 1.3 * p);
    ++p;
  }
  SentencePairs two = pairs(std::vector<size_t>{0, 1});
  autograd::Tape tape;
  for (const auto& parameter : model->parameters()) tape.watch(parameter.value);
  {
    const autograd::Tape::Recording recording(tape);
    const Tensor loss = model->loss(two, {.smoothing = 0.1});
    EXPECT_NEAR(loss.data<double>()[0], expected.at("loss").as_double(), 1e-11);
    tape.backward(loss);
  }
  EXPECT_NEAR(loss_of(*model, two), expected.at("plain").as_double(), 1e-11);
  const auto& list = expected.at("parameters").as_array();
  ASSERT_EQ(list.size(), model->parameters().size());
  for (size_t k = 0; k < list.size(); ++k) {
    const auto& parameter = model->parameters()[k];
    ASSERT_EQ(parameter.name, list[k].at("name").as_string());
    const Tensor gradient = leaf_gradient(tape, parameter.value);
    double dot = 0, i = 1;
    for (const double x : gradient.values<double>()) dot += x * std::sin(i++);
    const double norm = list[k].at("gradient").at("norm").to_number<double>();
    EXPECT_NEAR(dot, list[k].at("gradient").at("dot").to_number<double>(), 1e-9 * (1 + norm))
        << parameter.name;
  }
  const Tensor alpha = model->classify(two, true).alpha[0];
  for (int64_t i = 0; i < alpha.rows(); ++i)
    for (int64_t j = 0; j < alpha.dim(1); ++j)
      EXPECT_NEAR(alpha.as_matrix<double>()(i, j),
                  expected.at("attention")
                      .as_array()[static_cast<size_t>(i)]
                      .as_array()[static_cast<size_t>(j)]
                      .to_number<double>(),
                  1e-12);
}

INSTANTIATE_TEST_SUITE_P(, DecomposableGolden, testing::Bool());

}  // namespace
}  // namespace regard::models
