// A new model in one file: the encoder is the mean of the source words' embeddings (no order, no attention),
// the decoder a GRU that sees that mean at every step. docs/adding-a-model.md walks through it. Trains on the
// toy grammar for some seconds and prints what it makes of a sentence.

#include <cstdio>

#include "regard/autograd/score_attention.h"
#include "regard/decoding/search.h"
#include "regard/models/recurrent.h"
#include "regard/models/registry.h"
#include "regard/text/toy_grammar.h"
#include "regard/training/trainer.h"

namespace {

using namespace regard;
using autograd::add;
using autograd::linear;
using autograd::output_loss;
using autograd::rows;
using models::Memory;
using models::Step;

class MeanVector final : public models::EncoderDecoder {
 public:
  explicit MeanVector(const models::ModelConfig& config) : EncoderDecoder(config) {}

  bool attends() const override { return false; }

  Memory encode(std::span<const std::span<const int32_t>> sources) const override {
    Memory memory;
    std::vector<int32_t> words;
    for (const auto& source : sources) {
      memory.sources.push_back(static_cast<int64_t>(source.size()));
      words.insert(words.end(), source.begin(), source.end());
    }
    const Tensor Ex = rows(E_source_, words);           // E x_j     [S, N]
    const Tensor mean = autograd::linear(Ex, W_mean_);  // W E x_j   [S, N]
    memory.h = mean_rows(mean, memory.sources);         // v         [B, N]
    memory.initial_state = {autograd::tanh(memory.h)};  // s_0       [B, N]
    return memory;
  }

  Tensor loss(const models::SentencePairs& pairs, const models::LossOptions& options) const override {
    const Memory memory = encode(pairs.sources);
    const models::TargetRows target = models::target_rows(pairs.targets, begin());
    const Tensor Ey = rows(E_target_, target.previous.ids());                  // E y       [T', N]
    const Tensor x = add(rows(decoder_.project(Ey), target.previous.index()),  //           [T, 3N]
                         rows(linear(memory.h, C_), models::sentence_rows(target.targets)));
    const auto every_row = models::identity_index(target.targets.total());
    const Tensor s =
        nn::run(decoder_.cell(), x, every_row, target.targets, false, {memory.initial_state[0], {}})
            .h;  // s_t       [T, N]
    return output_loss(s, W_out_, b_out_, target.y, options.smoothing, options.scale);
  }

  Step step(std::span<const int32_t> y_prev, const models::State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override {
    const Tensor Ey = rows(E_target_, y_prev);     // E y_{t-1} [R, N]
    const Tensor v = rows(memory.h, sentence_of);  // v         [R, N]
    const nn::CellState s =
        nn::step(decoder_.cell(), add(decoder_.project(Ey), linear(v, C_)), {state[0], {}});
    return {linear(s.h, W_out_, b_out_), {s.h}, {}};  // logits    [R, V]
  }

 private:
  /// The one list of parameters: it serves the optimiser, the files and the tests.
  void visit(const models::ParameterVisitor& visitor) override {
    const int64_t N = config().width, V = config().target_vocabulary;
    visitor("embedding.source", E_source_, {config().source_vocabulary, N}, nn::Initial::normal(1));
    visitor("embedding.target", E_target_, {V, N}, nn::Initial::normal(1));
    visitor("encoder.W", W_mean_, {N, N}, nn::Initial::fan_in(N));
    visitor("decoder.C", C_, {3 * N, N}, nn::Initial::fan_in(N));
    decoder_.visit(visitor, "decoder", nn::CellKind::gru, N, N);
    visitor("output.W", W_out_, {V, N}, nn::Initial::fan_in(N));
    visitor("output.b", b_out_, {V}, nn::Initial::fan_in(N));
  }

  /// The mean of each sentence's rows: additive attention with equal scores (v = 0) is just that.
  static Tensor mean_rows(const Tensor& x, const autograd::Ragged& sentences) {
    const Tensor query = Tensor::zeros({sentences.count(), 1}, x.dtype());
    const Tensor keys = Tensor::zeros({x.rows(), 1}, x.dtype()), v = Tensor::zeros({1}, x.dtype());
    return autograd::additive_attention(query, keys, x, v, sentences, {}).context;
  }

  Tensor E_source_, E_target_;  // [V, N]
  Tensor W_mean_, C_;           // [N, N], [3N, N]
  models::RecurrentLayer decoder_;
  Tensor W_out_, b_out_;  // [V, N], [V]
};

/// What would stand in regard/models/registry.cc: name, summary, the options it reads, how it is made.
const models::ModelKind kMeanVector{"mean-vector",
                                    "the mean of the source's words, and a GRU",
                                    {"width"},
                                    [](const models::ModelConfig& config) -> std::unique_ptr<models::Model> {
                                      return std::make_unique<MeanVector>(config);
                                    }};

}  // namespace

int main() {
  std::vector<std::string> source, target;
  for (const auto& pair : text::toy_pairs(2000, 1)) {
    source.push_back(pair.source);
    target.push_back(pair.target);
  }
  const auto english = text::train_vocabulary(source, {.kind = text::VocabularyKind::words});
  const auto french = text::train_vocabulary(target, {.kind = text::VocabularyKind::words});
  training::Data data;
  data.source = text::encode_lines(*english, source, 128);
  data.target = text::encode_lines(*french, target, 128);

  models::ModelConfig config;
  config.source_vocabulary = english->size();
  config.target_vocabulary = french->size();
  config.width = 64;
  const auto model = models::make_encoder_decoder(kMeanVector, config, 1);
  ThreadPool pool(1);
  training::TrainingOptions options;
  options.steps = 300;
  options.batch_tokens = 500;
  options.learning_rate = 5e-3;
  options.warm_up = 50;
  training::Trainer trainer(*model, data, options, pool);
  double loss = 0;
  training::Hooks hooks;
  hooks.report = [&](const training::Report& report) { loss = report.loss.value_or(loss); };
  trainer.run(hooks);

  const std::vector<std::span<const int32_t>> one{data.source[0]};
  const auto best = decoding::search(*model, one, {}, pool)[0].at(0);
  std::printf("%lld weights, loss %.3f\n%s -> %s\n", static_cast<long long>(model->parameter_count()), loss,
              source[0].c_str(), french->decode(best.ids).c_str());
  return loss < 2.5 ? 0 : 1;
}
