#include "regard/models/registry.h"

#include <fmt/format.h>

#include "regard/models/bahdanau.h"
#include "regard/models/decomposable.h"
#include "regard/models/fixed_vector.h"
#include "regard/models/intra_decoder.h"
#include "regard/models/lstmn.h"
#include "regard/models/luong.h"
#include "regard/models/recurrent_lm.h"
#include "regard/models/transformer.h"
#include "regard/models/transformer_lm.h"

namespace regard::models {
namespace {

template <class Kind>
std::unique_ptr<Model> make(const ModelConfig& config) {
  return std::make_unique<Kind>(config);
}

ModelKind fixed_vector(const char* name, const char* summary, nn::CellKind cell) {
  ModelKind kind{name,
                 summary,
                 {"embedding", "width", "readout_width", "layers", "residual", "cell", "readout",
                  "bidirectional", "reverse_source", "dropout"},
                 make<FixedVector>};
  kind.defaults.cell = cell;
  kind.check = check_recurrent;
  return kind;
}

ModelKind transformer() {
  ModelKind kind{
      "transformer",
      "attention and feed-forward layers alone (Vaswani et al. 2017)",
      {"width", "layers", "heads", "feed_forward", "norm", "positions", "activation", "self_attention",
       "window", "block_size", "separate_embeddings", "dropout", "attention_dropout"},
      make<Transformer>};
  kind.defaults.layers = 3;
  kind.defaults.dropout = 0.1;
  kind.check = Transformer::check;
  kind.learning_rate = 1.5e-3;
  return kind;
}

ModelKind decomposable() {
  ModelKind kind{"decomposable",
                 "does a sentence follow from another: attend, compare, aggregate (Parikh et al. 2016)",
                 {"embedding", "width", "intra_sentence", "dropout"},
                 make<Decomposable>};
  kind.task = Task::classification;
  kind.defaults.embedding = 300;
  kind.defaults.width = 200;
  kind.defaults.dropout = 0.2;
  return kind;
}

/// A language model predicts text as it is: its loss is not smoothed.
ModelKind language(ModelKind kind) {
  kind.task = Task::language;
  kind.label_smoothing = 0;
  return kind;
}

ModelKind recurrent_lm(const char* name, const char* summary, nn::CellKind cell) {
  ModelKind kind{name,
                 summary,
                 {"embedding", "width", "layers", "cell", "tied_embeddings", "dropout"},
                 make<RecurrentLm>};
  kind.defaults.cell = cell;
  kind.check = RecurrentLm::check;
  return language(kind);
}

ModelKind lstmn_lm() {
  ModelKind kind{"lstmn-lm",
                 "language model: an LSTM that attends to its own past (Cheng, Dong and Lapata 2016)",
                 {"embedding", "width", "alignment_width", "layers", "tied_embeddings", "dropout"},
                 make<LstmnLm>};
  kind.check = RecurrentLm::check;
  return language(kind);
}

ModelKind transformer_lm() {
  ModelKind kind = transformer();
  kind.name = "transformer-lm";
  kind.summary = "language model: causal self-attention and feed-forward layers (Liu et al. 2018)";
  kind.make = make<TransformerLm>;
  return language(kind);
}

ModelKind intra_decoder() {
  ModelKind kind{
      "intra-decoder",
      "summaries: attention away from what was seen, and a pointer (Paulus, Xiong and Socher 2017)",
      {"embedding", "width", "intra_attention", "pointer", "separate_embeddings", "dropout"},
      make<IntraDecoder>};
  kind.defaults.embedding = kind.defaults.width = 128;
  kind.defaults.dropout = 0.2;
  kind.learning_rate = 3e-3;
  return kind;
}

std::vector<ModelKind> make_list() {
  return {
      fixed_vector("rnn", "one vector a sentence, Elman cells (Cho et al. 2014, Sutskever et al. 2014)",
                   nn::CellKind::elman),
      fixed_vector("lstm", "one vector a sentence, LSTM cells (Sutskever, Vinyals and Le 2014)",
                   nn::CellKind::lstm),
      fixed_vector("gru", "one vector a sentence, gated units (Cho et al. 2014)", nn::CellKind::gru),
      {"bahdanau",
       "a bidirectional encoder that the decoder looks back at (Bahdanau, Cho and Bengio 2015)",
       {"embedding", "width", "alignment_width", "readout_width", "cell", "readout", "dropout"},
       make<Bahdanau>},
      {"luong",
       "attention after the recurrent step, global or local (Luong, Pham and Manning 2015)",
       {"embedding", "width", "alignment_width", "readout_width", "layers", "residual", "cell",
        "bidirectional", "score", "attention", "window", "longest_source", "input_feeding", "dropout"},
       make<Luong>,
       {},
       Luong::check},
      {"lstmn",
       "an encoder that attends to its own past, Bahdanau's decoder (Cheng, Dong and Lapata 2016)",
       {"embedding", "width", "alignment_width", "readout_width", "layers", "cell", "readout",
        "bidirectional", "dropout"},
       make<Lstmn>},
      transformer(),
      intra_decoder(),
      recurrent_lm("rnn-lm", "language model of Elman cells (Mikolov et al. 2010)", nn::CellKind::elman),
      recurrent_lm("lstm-lm", "language model of LSTM cells (Sundermeyer, Schlueter and Ney 2012)",
                   nn::CellKind::lstm),
      recurrent_lm("gru-lm", "language model of gated units", nn::CellKind::gru),
      lstmn_lm(),
      transformer_lm(),
      decomposable(),
  };
}

}  // namespace

std::span<const ModelKind> all_models() {
  static const std::vector<ModelKind> list = make_list();
  return list;
}

const ModelKind& model_kind(std::string_view name) {
  std::string names;
  for (const ModelKind& kind : all_models()) {
    if (name == kind.name) return kind;
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw UsageError(fmt::format("there is no model \"{}\"; expected one of {}", name, names));
}

void check_config(const ModelKind& kind, const ModelConfig& config) {
  if (kind.check) kind.check(config);
}

namespace {

std::unique_ptr<Model> make_unset(const ModelKind& kind, const ModelConfig& config) {
  check_config(kind, config);
  return kind.make(config);
}

template <class Wanted>
std::unique_ptr<Wanted> make_as(const ModelKind& kind, const ModelConfig& config,
                                std::optional<uint64_t> seed, const char* what) {
  auto model = make_unset(kind, config);
  auto* wanted = dynamic_cast<Wanted*>(model.get());
  if (!wanted) throw UsageError(fmt::format("the model {} {}", kind.name, what));
  if (seed) model->initialise(*seed);
  model.release();
  return std::unique_ptr<Wanted>(wanted);
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelKind& kind, const ModelConfig& config, uint64_t seed) {
  auto model = make_unset(kind, config);
  model->initialise(seed);
  return model;
}

std::unique_ptr<EncoderDecoder> make_encoder_decoder(const ModelKind& kind, const ModelConfig& config,
                                                     std::optional<uint64_t> seed) {
  return make_as<EncoderDecoder>(kind, config, seed, "classifies and writes no text");
}

std::unique_ptr<Classifier> make_classifier(const ModelKind& kind, const ModelConfig& config,
                                            std::optional<uint64_t> seed) {
  return make_as<Classifier>(kind, config, seed, "writes text and does not classify");
}

}  // namespace regard::models
