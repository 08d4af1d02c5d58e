#pragma once
// The encoder-decoder whose decoder gets one vector, however long the sentence: what attention was invented
// to beat. Cho et al. (2014), arXiv:1406.1078, "Learning phrase representations using RNN encoder-decoder";
// Sutskever, Vinyals and Le (2014), arXiv:1409.3215, "Sequence to sequence learning with neural networks"
// (several layers, LSTM, the source read in reverse).

#include "regard/models/recurrent.h"

namespace regard::models {

/// v is the encoder's last state (in both directions: both last states). Decoder layer l starts from
/// tanh(W_s^l v + b), an LSTM's memory from zero; the first layer reads the previous word and v at every
/// step, and so does the layer before the output (Cho et al. 2014, A.1.2).
class FixedVector final : public EncoderDecoder {
 public:
  explicit FixedVector(const ModelConfig& config) : EncoderDecoder(config) {}

  bool attends() const override { return false; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// The state is h^l [R, N] of every layer, of an LSTM h^l and c^l.
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  struct Initial {
    Tensor W, b;  // [N, E], [N]
  };
  void visit(const ParameterVisitor& visitor) override;
  Memory encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const;
  nn::CellState initial(const Memory& memory, size_t layer) const;

  Tensor E_source_, E_target_;  // [V, D]
  RecurrentEncoder encoder_;
  std::vector<Initial> initial_;
  Tensor C_;                             // [gN, E]
  std::vector<RecurrentLayer> decoder_;  // the first reads Ey, the others the layer below
  ReadoutLayer readout_;
  Tensor W_out_, b_out_;  // [V, R], [V]
};

}  // namespace regard::models
