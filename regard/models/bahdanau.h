#pragma once
// Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and translate",
// arXiv:1409.0473: a bidirectional encoder whose every state the decoder may look back at.

#include "regard/models/recurrent.h"

namespace regard::models {

/// By default a GRU that resets after the product and a tanh readout of s_i, which is what later systems use.
/// The paper's own model is cell gru-2015 with readout maxout: that readout sees s_{i-1} and, as in the
/// paper's appendix, there are no biases in s_0, the scores and the readout.
class Bahdanau final : public EncoderDecoder {
 public:
  explicit Bahdanau(const ModelConfig& config) : EncoderDecoder(config) {}

  bool attends() const override { return true; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// The state is s_i [R, N], of an LSTM s_i and its memory.
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  void visit(const ParameterVisitor& visitor) override;
  Memory encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const;
  Tensor decode(const Memory& memory, const Tensor& WEy, const TargetRows& target) const;
  nn::Cell decoder() const { return {config().cell, U_, b_hh_}; }

  Tensor E_source_, E_target_;  // [V, D]
  RecurrentEncoder encoder_;
  Tensor W_s_, b_s_;                // [N, N], [N]
  Tensor W_a_, U_a_, b_a_, v_a_;    // [A, N], [A, 2N], [A], [A]
  Tensor W_, C_, U_, b_ih_, b_hh_;  // [gN, D], [gN, 2N], [gN, N], [gN], [gN]
  ReadoutLayer readout_;
  Tensor W_out_, b_out_;  // [V, R], [V]
};

}  // namespace regard::models
