#pragma once
// A recurrent language model: the probability of every symbol given all before it. Mikolov, Karafiat, Burget,
// Cernocky and Khudanpur (2010), "Recurrent neural network based language model", Interspeech; with LSTM
// cells: Sundermeyer, Schlueter and Ney (2012), "LSTM neural networks for language modeling", Interspeech.

#include "regard/models/recurrent.h"

namespace regard::models {

/// Recurrent layers over the embeddings of the text so far, and an output layer on the last one's state, with
/// dropout on the states that a layer hands up and not along time (Zaremba, Sutskever and Vinyals 2014,
/// arXiv:1409.2329). With tied_embeddings the output layer's weights are the embeddings (Press and Wolf 2017,
/// arXiv:1608.05859). Sources are empty.
class RecurrentLm final : public EncoderDecoder {
 public:
  /// Throws UsageError if embeddings are tied and not as wide as the states.
  static void check(const ModelConfig& config);
  explicit RecurrentLm(const ModelConfig& config) : EncoderDecoder(config) {}

  bool attends() const override { return false; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// The state is h^l [R, N] of every layer, of an LSTM h^l and c^l.
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  void visit(const ParameterVisitor& visitor) override;
  const Tensor& W_out() const { return config().tied_embeddings ? E_ : W_out_; }

  Tensor E_;                            // [V, D]
  std::vector<RecurrentLayer> layers_;  // the first reads E y, the others the layer below
  Tensor W_out_, b_out_;                // [V, N], [V]
};

}  // namespace regard::models
