// Bahdanau's model against the independent float64 script tests/golden/bahdanau.py.

#include <gtest/gtest.h>

#include <cmath>

#include "regard/base/file.h"
#include "regard/models/registry.h"
#include "regard/storage/json.h"

namespace regard::models {
namespace {

const std::vector<std::vector<int32_t>> kSources{{3, 7, 3, 9, 0}, {7, 6, 0}};
const std::vector<std::vector<int32_t>> kTargets{{5, 1, 5, 8, 0}, {2, 0}};

/// The tiny model of the golden values, in f64: element i of parameter p is 0.3 sin(1 + 0.7 i + 1.3 p).
std::unique_ptr<EncoderDecoder> golden_model() {
  auto model = make_model(model_kind("bahdanau"), {11, 11, 4, 5, 3, 4}, 1);
  model->convert(DType::f64);
  double p = 0;
  for (const auto& parameter : model->parameters()) {
    double i = 0;
    for (double& x : parameter.value.values<double>()) x = 0.3 * std::sin(1 + 0.7 * i++ + 1.3 * p);
    ++p;
  }
  return model;
}

SentencePairs golden_pairs() {
  SentencePairs pairs;
  for (const auto& s : kSources) pairs.sources.emplace_back(s);
  for (const auto& t : kTargets) pairs.targets.emplace_back(t);
  return pairs;
}

boost::json::object golden() {
  const std::string path = std::string(REGARD_SOURCE_DIR) + "/tests/golden/bahdanau.json";
  const auto all = parse_json_object(read_file(path), path);
  return all.at("configurations").as_object().at("default").as_object();
}

TEST(BahdanauGolden, LossAndEveryGradient) {
  const auto model = golden_model();
  const auto expected = golden();
  autograd::Tape tape;
  for (const auto& p : model->parameters()) tape.watch(p.value);
  {
    const autograd::Tape::Recording recording(tape);
    const Tensor loss = model->loss(golden_pairs(), {.smoothing = 0.1});
    EXPECT_NEAR(loss.data<double>()[0], expected.at("loss").as_double(), 1e-11);
    tape.backward(loss);
  }
  EXPECT_NEAR(model->loss(golden_pairs(), {}).data<double>()[0], expected.at("plain").as_double(), 1e-11);
  const auto& list = expected.at("parameters").as_array();
  const auto parameters = model->parameters();
  ASSERT_EQ(list.size(), parameters.size());
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto& entry = list[p].as_object();
    ASSERT_EQ(parameters[p].name, entry.at("name").as_string());
    const auto node = tape.leaf(parameters[p].value);
    Tensor g = node->gradient.defined() ? node->gradient.copy()
                                        : Tensor::zeros(parameters[p].value.shape(), DType::f64);
    for (const auto& part : node->sparse)
      for (size_t r = 0; r < part.ids.size(); ++r)
        for (int64_t c = 0; c < g.dim(-1); ++c)
          g.as_matrix<double>()(part.ids[r], c) += part.rows.as_matrix<double>()(static_cast<int64_t>(r), c);
    double squares = 0, dot = 0, i = 1;
    for (double x : g.values<double>()) {
      squares += x * x;
      dot += x * std::sin(i++);
    }
    const auto& gradient = entry.at("gradient").as_object();
    const double norm = gradient.at("norm").to_number<double>();
    EXPECT_GT(norm, 0) << parameters[p].name << " receives no gradient";
    EXPECT_NEAR(std::sqrt(squares), norm, 1e-9 * (1 + norm)) << parameters[p].name;
    EXPECT_NEAR(dot, gradient.at("dot").to_number<double>(), 1e-9 * (1 + norm)) << parameters[p].name;
  }
}

TEST(BahdanauGolden, AttentionOfTheSteps) {
  const auto model = golden_model();
  const auto expected = golden();
  const auto pairs = golden_pairs();
  const Memory memory = model->encode(pairs.sources);
  State s = select(memory.initial_state, std::vector<int32_t>{0});
  int32_t y = 10;
  for (size_t i = 0; i < kTargets[0].size(); ++i) {
    const Step step = model->step(std::vector<int32_t>{y}, s, memory, std::vector<int32_t>{0});
    const auto& row = expected.at("attention").as_array()[i].as_array();
    ASSERT_EQ(row.size(), kSources[0].size());
    for (size_t j = 0; j < row.size(); ++j)
      EXPECT_NEAR(step.alpha.data<double>()[j], row[j].as_double(), 1e-13);
    s = step.state;
    y = kTargets[0][i];
  }
}

TEST(Bahdanau, ALossOfOneTokenIsFinite) {
  const auto model = make_model(model_kind("bahdanau"), {9, 9, 4, 5, 3, 4}, 3);
  const std::vector<int32_t> only{0};
  const Tensor loss = model->loss({{only}, {only}}, {.smoothing = 0.1});
  EXPECT_TRUE(std::isfinite(loss.data<float>()[0]));
}

TEST(Bahdanau, WeightsOfAnotherShapeAreRefused) {
  const auto model = make_model(model_kind("bahdanau"), {9, 9, 4, 5, 3, 4}, 3);
  const auto other = make_model(model_kind("bahdanau"), {9, 9, 4, 6, 3, 4}, 3);
  EXPECT_THROW(model->load(other->parameters()), DataError);
  EXPECT_THROW(model->load({}), DataError);
}

}  // namespace
}  // namespace regard::models
