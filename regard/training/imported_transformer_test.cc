// A Transformer that another program trained (../shared/data/models/README.md), Arabic to Latin letters: its
// weights under our names give its outputs.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "regard/base/file.h"
#include "regard/decoding/search.h"
#include "regard/models/registry.h"
#include "regard/storage/json.h"
#include "regard/storage/safetensors.h"
#include "regard/text/vocabulary.h"

namespace regard::training {
namespace {

constexpr int64_t kLayers = 6, kHeads = 8, kWidth = 32, kHeadWidth = kWidth / kHeads;

std::filesystem::path folder() {
  return std::filesystem::path(REGARD_SHARED_DIR) / "data/models/aren_transliteration";
}

/// Tokens by our numbers: of the target the end symbol is first and the begin symbol last.
struct Tokens {
  std::vector<std::string> names;  // by our number; the unknown word has none
  std::vector<int32_t> rows;       // of the file's tables, by our number

  Tokens(const char* file, bool target) {
    std::ifstream in(folder() / file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    lines.emplace_back();  // the unknown word
    const auto push = [&](size_t row) {
      names.push_back(lines[row]);
      rows.push_back(static_cast<int32_t>(row));
    };
    const auto is = [&](size_t row, const char* name) { return target && lines[row] == name; };
    for (size_t i = 0; i < lines.size(); ++i)
      if (is(i, "</s>")) push(i);
    for (size_t i = 0; i < lines.size(); ++i)
      if (!is(i, "</s>") && !is(i, "<s>")) push(i);
    for (size_t i = 0; i < lines.size(); ++i)
      if (is(i, "<s>")) push(i);
  }
  int32_t number(std::string_view name) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return static_cast<int32_t>(i);
    return static_cast<int32_t>(names.size() - 1);  // of the source, where the unknown word is last
  }
  Tensor of(const Tensor& table) const {
    return table.rank() == 2
               ? autograd::rows(table, rows)
               : autograd::rows(table.reshaped({table.size(), 1}), rows).reshaped({table.size()});
  }
};

/// Its sinusoids begin at position 1 and divide by exp(-log(10000) i / 15): a table of positions.
Tensor positions() {
  const int64_t half = kWidth / 2;
  Tensor table = Tensor::zeros({512, kWidth});
  for (int64_t p = 0; p < 512; ++p)
    for (int64_t i = 0; i < half; ++i) {
      const double rate =
          std::exp(-std::log(10000.0) * static_cast<double>(i) / static_cast<double>(half - 1));
      const double angle = static_cast<double>(p + 1) * rate;
      table.as_matrix<float>()(p, i) = static_cast<float>(std::sin(angle));
      table.as_matrix<float>()(p, half + i) = static_cast<float>(std::cos(angle));
    }
  return table;
}

/// Our name of one of its layers' weights.
std::string our_name(const std::string& stack, int64_t layer, const std::string& rest) {
  static const std::map<std::string, std::string> names{
      {"self_attention/layer_norm/", "self.norm."}, {"self_attention/linear_0/", "self.qkv."},
      {"self_attention/linear_1/", "self.out."},    {"attention/layer_norm/", "cross.norm."},
      {"attention/linear_0/", "cross.q."},          {"attention/linear_1/", "cross.kv."},
      {"attention/linear_2/", "cross.out."},        {"ffn/layer_norm/", "feed_forward.norm."},
      {"ffn/linear_0/", "feed_forward.first."},     {"ffn/linear_1/", "feed_forward.second."}};
  static const std::map<std::string, std::string> parts{
      {"weight", "W"}, {"bias", "b"}, {"gamma", "gain"}, {"beta", "bias"}};
  const size_t slash = rest.rfind('/') + 1;
  return stack + "." + std::to_string(layer + 1) + "." + names.at(rest.substr(0, slash)) +
         parts.at(rest.substr(slash));
}

class ImportedTransformer : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder())) GTEST_SKIP() << "no " << folder();
    file_ = read_safetensors(folder() / "model.f32.safetensors");
    source_ = std::make_unique<Tokens>("source_vocabulary.txt", false);
    target_ = std::make_unique<Tokens>("target_vocabulary.txt", true);
    std::ifstream in(folder() / "reference.jsonl");
    for (std::string line; std::getline(in, line);) {
      references_.push_back(parse_json_object(line, "reference.jsonl"));
      sources_.emplace_back();
      for (const auto& letter : references_.back().at("source").as_array())
        sources_.back().push_back(source_->number(std::string(letter.as_string())));
    }
  }

  /// With `decoder_layers` above the file's six, the last one is repeated.
  std::vector<nn::Parameter> weights(int64_t decoder_layers) const {
    std::vector<nn::Parameter> list{{"embedding.source", source_->of(file_.at("encoder/embeddings/weight"))},
                                    {"embedding", target_->of(file_.at("decoder/embeddings/weight"))},
                                    {"output.W", target_->of(file_.at("decoder/projection/weight"))},
                                    {"output.b", target_->of(file_.at("decoder/projection/bias"))},
                                    {"positions", positions()}};
    for (const std::string stack : {"encoder", "decoder"}) {
      list.push_back({stack + ".norm.gain", file_.at(stack + "/layer_norm/gamma")});
      list.push_back({stack + ".norm.bias", file_.at(stack + "/layer_norm/beta")});
      for (int64_t layer = 0; layer < decoder_layers; ++layer) {
        const std::string prefix = stack + "/layer_" + std::to_string(std::min(layer, kLayers - 1)) + "/";
        for (const auto& tensor : file_.tensors)
          if (tensor.name.starts_with(prefix))
            list.push_back({our_name(stack, layer, tensor.name.substr(prefix.size())), tensor.tensor.copy()});
      }
    }
    return list;
  }

  std::unique_ptr<models::EncoderDecoder> model(int64_t layers, std::span<const nn::Parameter> values) const {
    models::ModelConfig config;
    config.source_vocabulary = static_cast<int64_t>(source_->rows.size());
    config.target_vocabulary = static_cast<int64_t>(target_->rows.size());
    config.width = kWidth;
    config.heads = kHeads;
    config.feed_forward = 128;
    config.layers = layers;
    config.norm = nn::NormOrder::before;
    config.positions = nn::PositionKind::learned;
    config.activation = nn::FeedForwardActivation::relu;
    config.separate_embeddings = true;
    auto made = models::make_encoder_decoder(models::model_kind("transformer"), config, 1);
    made->load(values);
    return made;
  }

  std::vector<std::span<const int32_t>> sources() const { return {sources_.begin(), sources_.end()}; }
  std::vector<std::string> names(std::span<const int32_t> ids) const {
    std::vector<std::string> list;
    for (const int32_t id : ids) list.push_back(target_->names[static_cast<size_t>(id)]);
    return list;
  }

  SafeTensors file_;
  std::unique_ptr<Tokens> source_, target_;
  std::vector<boost::json::object> references_;
  std::vector<std::vector<int32_t>> sources_;
};

std::vector<std::string> strings(const boost::json::value& array) {
  std::vector<std::string> list;
  for (const auto& s : array.as_array()) list.emplace_back(s.as_string());
  return list;
}

TEST_F(ImportedTransformer, GivesAllItsReferenceOutputs) {
  const auto imported = model(kLayers, weights(kLayers));
  ThreadPool pool(1);
  const auto greedy =
      decoding::search(*imported, sources(), {.beam = 1, .length_penalty = 0, .max_length = 250}, pool);
  const auto beam =
      decoding::search(*imported, sources(), {.beam = 4, .length_penalty = 0, .max_length = 250}, pool);
  ASSERT_EQ(references_.size(), 63U);
  for (size_t i = 0; i < references_.size(); ++i) {
    auto expected = strings(references_[i].at("greedy"));
    if (!expected.empty() && expected.back() == "</s>") expected.pop_back();
    EXPECT_EQ(names(greedy[i][0].ids), expected) << i;
    EXPECT_NEAR(greedy[i][0].score, references_[i].at("greedy_logprob").to_number<double>(), 1e-3) << i;
    const auto& best = references_[i].at("beam4").as_array()[0].as_object();
    EXPECT_EQ(names(beam[i][0].ids), strings(best.at("tokens"))) << i;
    EXPECT_NEAR(beam[i][0].score, best.at("logprob").to_number<double>(), 1e-3) << i;
  }
}

/// Its attention is that of head 0 of the last layer. We show the mean over the heads of the last layer but
/// one. With a seventh layer, which in the encoder adds nothing, and the queries and keys of all heads of the
/// sixth set to those of head 0 that is the same.
TEST_F(ImportedTransformer, AttendsAsItsReferencesSay) {
  auto values = weights(kLayers + 1);
  for (auto& p : values) {
    if (p.name.starts_with("encoder.7.self.out.") || p.name.starts_with("encoder.7.feed_forward.second."))
      std::fill_n(p.value.data<float>(), p.value.size(), 0.f);
    if (p.name.starts_with("decoder.6.cross.q.") || p.name.starts_with("decoder.6.cross.kv.")) {
      const int64_t numbers = kHeadWidth * (p.value.rank() == 2 ? kWidth : 1);
      for (int64_t h = 1; h < kHeads; ++h)
        std::copy_n(p.value.data<float>(), numbers, p.value.data<float>() + h * numbers);
    }
  }
  const auto shown = model(kLayers + 1, values);
  const models::Memory memory = shown->encode(sources());
  for (size_t i = 0; i < references_.size(); ++i) {
    const std::vector<int32_t> sentence{static_cast<int32_t>(i)};
    models::State state = models::select(memory.initial_state, sentence);
    int32_t y = shown->begin();
    const auto& rows = references_[i].at("attention").as_array();
    const auto tokens = strings(references_[i].at("greedy"));
    for (size_t t = 0; t < rows.size(); ++t) {
      const models::Step step = shown->step(std::vector<int32_t>{y}, state, memory, sentence);
      for (size_t j = 0; j < sources_[i].size(); ++j)
        EXPECT_NEAR(static_cast<double>(step.alpha.data<float>()[j]),
                    rows[t].as_array()[j].to_number<double>(), 1e-3)
            << i << " " << t << " " << j;
      state = step.state;
      y = target_->number(tokens[t]);
    }
  }
}

}  // namespace
}  // namespace regard::training
