// Models against independent float64 scripts: tests/golden/*.py and the numbers they wrote.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "regard/base/file.h"
#include "regard/models/registry.h"
#include "regard/storage/json.h"
#include "tests/support/leaf_gradient.h"
#include "tests/support/sentence_pairs.h"

namespace regard::models {
namespace {

const tests::Words kSources{{3, 7, 3, 9, 0}, {7, 6, 0}};
const tests::Words kTargets{{5, 1, 5, 8, 0}, {2, 0}};

SentencePairs golden_pairs() { return tests::sentence_pairs(kSources, kTargets); }

ModelConfig golden_config() {
  ModelConfig config;
  config.source_vocabulary = config.target_vocabulary = 11;
  config.embedding = 4;
  config.width = 5;
  config.alignment_width = 3;
  config.readout_width = 4;
  return config;
}

/// In f64; element i of parameter p is 0.3 sin(1 + 0.7 i + 1.3 p).
std::unique_ptr<EncoderDecoder> golden_model(const char* kind, const ModelConfig& config) {
  auto model = make_encoder_decoder(model_kind(kind), config, 1);
  model->convert(DType::f64);
  double p = 0;
  for (const auto& parameter : model->parameters()) {
    double i = 0;
    for (double& x : parameter.value.values<double>()) x = 0.3 * std::sin(1 + 0.7 * i++ + 1.3 * p);
    ++p;
  }
  return model;
}

boost::json::object golden(const std::string& file, const std::string& configuration) {
  const std::string path = std::string(REGARD_SOURCE_DIR) + "/tests/golden/" + file;
  const auto all = parse_json_object(read_file(path), path);
  return all.at("configurations").as_object().at(configuration).as_object();
}

void expect_golden(const EncoderDecoder& model, const boost::json::object& expected,
                   const SentencePairs& pairs = golden_pairs()) {
  autograd::Tape tape;
  for (const auto& p : model.parameters()) tape.watch(p.value);
  {
    const autograd::Tape::Recording recording(tape);
    const Tensor loss = model.loss(pairs, {.smoothing = 0.1});
    EXPECT_NEAR(loss.data<double>()[0], expected.at("loss").as_double(), 1e-11);
    tape.backward(loss);
  }
  EXPECT_NEAR(model.loss(pairs, {}).data<double>()[0], expected.at("plain").as_double(), 1e-11);
  const auto& list = expected.at("parameters").as_array();
  const auto parameters = model.parameters();
  ASSERT_EQ(list.size(), parameters.size());
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto& entry = list[p].as_object();
    ASSERT_EQ(parameters[p].name, entry.at("name").as_string());
    const Tensor g = leaf_gradient(tape, parameters[p].value);
    double squares = 0, dot = 0, i = 1;
    for (const double x : g.values<double>()) {
      squares += x * x;
      dot += x * std::sin(i++);
    }
    const auto& gradient = entry.at("gradient").as_object();
    const double norm = gradient.at("norm").to_number<double>();
    EXPECT_GT(norm, 0) << parameters[p].name;
    EXPECT_NEAR(std::sqrt(squares), norm, 1e-9 * (1 + norm)) << parameters[p].name;
    EXPECT_NEAR(dot, gradient.at("dot").to_number<double>(), 1e-9 * (1 + norm)) << parameters[p].name;
  }
}

/// The steps of the first sentence attend as the script says.
void expect_attention(const EncoderDecoder& model, const boost::json::object& expected) {
  const Memory memory = model.encode(golden_pairs().sources);
  State state = select(memory.initial_state, std::vector<int32_t>{0});
  int32_t y = model.begin();
  for (size_t i = 0; i < kTargets[0].size(); ++i) {
    const Step step = model.step(std::vector<int32_t>{y}, state, memory, std::vector<int32_t>{0});
    const auto& row = expected.at("attention").as_array()[i].as_array();
    ASSERT_EQ(row.size(), kSources[0].size());
    for (size_t j = 0; j < row.size(); ++j)
      EXPECT_NEAR(step.alpha.data<double>()[j], row[j].to_number<double>(), 1e-13);
    state = step.state;
    y = kTargets[0][i];
  }
}

TEST(BahdanauGolden, TheDefault) {
  const auto expected = golden("bahdanau.json", "default");
  const auto model = golden_model("bahdanau", golden_config());
  expect_golden(*model, expected);
  expect_attention(*model, expected);
}

TEST(BahdanauGolden, ThePapers) {
  const auto expected = golden("bahdanau.json", "paper");
  ModelConfig config = golden_config();
  config.cell = nn::CellKind::gru_2015;
  config.readout = Readout::maxout;
  const auto model = golden_model("bahdanau", config);
  expect_golden(*model, expected);
  expect_attention(*model, expected);
}

class FixedVectorGolden : public testing::TestWithParam<std::string> {};

TEST_P(FixedVectorGolden, LossAndEveryGradient) {
  const auto expected = golden("fixed_vector.json", GetParam());
  ModelConfig config = golden_config();
  config.cell = nn::cell_from_name(expected.at("cell").as_string());
  config.layers = expected.at("layers").as_int64();
  config.bidirectional = expected.at("both").as_bool();
  config.reverse_source = expected.at("reverse").as_bool();
  if (expected.at("maxout").as_bool()) config.readout = Readout::maxout;
  expect_golden(*golden_model("gru", config), expected);
}

INSTANTIATE_TEST_SUITE_P(, FixedVectorGolden,
                         testing::Values("gru", "gru_both_ways", "rnn_two_layers_both_ways",
                                         "lstm_two_layers_reversed", "gru_2014_maxout"),
                         [](const testing::TestParamInfo<std::string>& test) { return test.param; });

class LuongGolden : public testing::TestWithParam<std::string> {};

TEST_P(LuongGolden, LossAttentionAndEveryGradient) {
  const auto expected = golden("luong.json", GetParam());
  ModelConfig config = golden_config();
  const auto choose = [&](const char* field, const char* key) {
    const auto& choice = std::get<ChoiceField>(config_field(field).kind);
    const auto found = std::find(choice.names.begin(), choice.names.end(), expected.at(key).as_string());
    choice.set(config, static_cast<int>(found - choice.names.begin()));
  };
  choose("cell", "cell");
  choose("score", "score");
  choose("attention", "kind");
  config.layers = expected.at("layers").as_int64();
  config.bidirectional = expected.at("both").as_bool();
  config.window = expected.at("window").as_int64();
  config.longest_source = expected.at("positions").as_int64();
  config.input_feeding = expected.at("feeding").as_bool();
  const auto model = golden_model("luong", config);
  expect_golden(*model, expected);
  expect_attention(*model, expected);
}

INSTANTIATE_TEST_SUITE_P(, LuongGolden,
                         testing::Values("general", "general_both_ways_feeding",
                                         "dot_feeding_lstm_two_layers", "concat", "location", "local_m",
                                         "local_p", "local_p_dot_feeding"),
                         [](const testing::TestParamInfo<std::string>& test) { return test.param; });

struct TransformerCase {
  const char* name;
  void (*change)(ModelConfig&);
};
template <nn::PositionKind kind>
void with_positions(ModelConfig& config) {
  config.positions = kind;
}
const TransformerCase kTransformers[] = {
    {"after", [](ModelConfig&) {}},
    {"before", [](ModelConfig& c) { c.norm = nn::NormOrder::before; }},
    {"relu", [](ModelConfig& c) { c.activation = nn::FeedForwardActivation::relu; }},
    {"window", [](ModelConfig& c) { c.window = 1; }},
    {"block_sparse",
     [](ModelConfig& c) {
       c.self_attention = {nn::AttentionForm::block_sparse};
       c.block_size = 1;
     }},
    {"linear_window",
     [](ModelConfig& c) {
       c.self_attention = {nn::AttentionForm::linear, nn::AttentionForm::window};
       c.window = 1;
     }},
    {"learned", with_positions<nn::PositionKind::learned>},
    {"relative", with_positions<nn::PositionKind::relative>},
    {"relative_bias", with_positions<nn::PositionKind::relative_bias>},
    {"rotary", with_positions<nn::PositionKind::rotary>},
    {"alibi", with_positions<nn::PositionKind::alibi>},
    {"none", with_positions<nn::PositionKind::none>},
};
void PrintTo(const TransformerCase& c, std::ostream* out) { *out << c.name; }

ModelConfig transformer_config(const TransformerCase& c) {
  ModelConfig config = golden_config();
  config.width = 8;
  config.heads = 2;
  config.feed_forward = 6;
  config.layers = 2;
  c.change(config);
  return config;
}

class TransformerGolden : public testing::TestWithParam<TransformerCase> {};

TEST_P(TransformerGolden, LossEveryGradientAndAttention) {
  const auto expected = golden("transformer.json", GetParam().name);
  const auto model = golden_model("transformer", transformer_config(GetParam()));
  expect_golden(*model, expected);
  expect_attention(*model, expected);
}

INSTANTIATE_TEST_SUITE_P(, TransformerGolden, testing::ValuesIn(kTransformers),
                         [](const testing::TestParamInfo<TransformerCase>& test) { return test.param.name; });

class TransformerLmGolden : public testing::TestWithParam<TransformerCase> {};

TEST_P(TransformerLmGolden, LossAndEveryGradient) {
  expect_golden(*golden_model("transformer-lm", transformer_config(GetParam())),
                golden("transformer_lm.json", GetParam().name));
}

INSTANTIATE_TEST_SUITE_P(, TransformerLmGolden, testing::ValuesIn(kTransformers),
                         [](const testing::TestParamInfo<TransformerCase>& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Separate, TransformerLmGolden,
                         testing::Values(TransformerCase{
                             "separate", [](ModelConfig& c) { c.separate_embeddings = true; }}));

ModelConfig language_config(const boost::json::object& expected) {
  ModelConfig config = golden_config();
  config.layers = expected.at("layers").as_int64();
  config.tied_embeddings = expected.at("tied").as_bool();
  if (config.tied_embeddings) config.embedding = config.width;
  return config;
}

class RecurrentLmGolden : public testing::TestWithParam<std::string> {};

TEST_P(RecurrentLmGolden, LossAndEveryGradient) {
  const auto expected = golden("recurrent_lm.json", GetParam());
  ModelConfig config = language_config(expected);
  config.cell = nn::cell_from_name(expected.at("cell").as_string());
  expect_golden(*golden_model("lstm-lm", config), expected);
}

INSTANTIATE_TEST_SUITE_P(, RecurrentLmGolden,
                         testing::Values("elman", "lstm_two_layers", "gru_two_layers_tied", "gru_2014"),
                         [](const testing::TestParamInfo<std::string>& test) { return test.param; });

class LstmnGolden : public testing::TestWithParam<std::string> {};

TEST_P(LstmnGolden, LanguageModel) {
  const auto expected = golden("lstmn.json", "language" + GetParam());
  expect_golden(*golden_model("lstmn-lm", language_config(expected)), expected);
}

INSTANTIATE_TEST_SUITE_P(, LstmnGolden, testing::Values("", "_two_layers_tied"));

class LstmnEncoderGolden : public testing::TestWithParam<std::string> {};

TEST_P(LstmnEncoderGolden, LossAttentionAndEveryGradient) {
  const auto expected = golden("lstmn.json", "encoder" + GetParam());
  ModelConfig config = golden_config();
  config.layers = expected.at("layers").as_int64();
  config.bidirectional = expected.at("both").as_bool();
  const auto model = golden_model("lstmn", config);
  expect_golden(*model, expected);
  expect_attention(*model, expected);
}

INSTANTIATE_TEST_SUITE_P(, LstmnEncoderGolden, testing::Values("", "_two_layers_both_ways"));

class IntraDecoderGolden : public testing::TestWithParam<std::string> {};

TEST_P(IntraDecoderGolden, LossEveryGradientAttentionAndProbabilities) {
  const auto expected = golden("intra_decoder.json", GetParam());
  ModelConfig config = golden_config();
  for (const char* name : {"intra_attention", "pointer", "separate_embeddings"})
    config.*std::get<FlagField>(config_field(name).kind).member = expected.at(name).as_bool();
  const auto model = golden_model("intra-decoder", config);
  const std::vector<std::vector<int32_t>> targets{{3, 9, 5, 3, 0}, {7, 0}};  // words that are copied
  SentencePairs pairs = golden_pairs();
  pairs.targets.assign(targets.begin(), targets.end());
  expect_golden(*model, expected, pairs);
  const Memory memory = model->encode(pairs.sources);
  State state = select(memory.initial_state, std::vector<int32_t>{0});
  int32_t y = model->begin();
  for (size_t t = 0; t < targets[0].size(); ++t) {
    const Step step = model->step(std::vector<int32_t>{y}, state, memory, std::vector<int32_t>{0});
    const auto& alpha = expected.at("attention").as_array()[t].as_array();
    for (size_t s = 0; s < alpha.size(); ++s)
      EXPECT_NEAR(step.alpha.data<double>()[s], alpha[s].to_number<double>(), 1e-13);
    state = step.state;
    y = targets[0][t];
    double sum = 0;
    for (const double logit : step.logits.values<double>()) sum += std::exp(logit);
    EXPECT_NEAR(step.logits.data<double>()[y] - std::log(sum),
                expected.at("log_p").as_array()[t].to_number<double>(), 1e-13);
    if (config.pointer) {
      EXPECT_NEAR(sum, 1, 1e-13);  // log-probabilities as they are
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, IntraDecoderGolden,
                         testing::Values("whole", "no_intra_attention", "no_pointer", "separate_embeddings"),
                         [](const testing::TestParamInfo<std::string>& test) { return test.param; });

TEST(Models, WeightsOfAnotherShapeAreRefused) {
  ModelConfig wider = golden_config();
  wider.alignment_width = 6;
  const auto model = make_encoder_decoder(model_kind("bahdanau"), golden_config(), 3);
  const auto other = make_encoder_decoder(model_kind("bahdanau"), wider, 3);
  EXPECT_THROW(model->load(other->parameters()), DataError);
  EXPECT_THROW(model->load({}), DataError);
}

TEST(Models, AnUnknownNameListsTheKnownOnes) {
  try {
    model_kind("bahdanu");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("rnn, lstm, gru, bahdanau"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace regard::models
