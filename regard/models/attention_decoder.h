#pragma once
// The decoder of Bahdanau, Cho and Bengio (2015), arXiv:1409.0473, over annotations of any encoder.

#include "regard/models/recurrent.h"

namespace regard::models {

/// s_i = cell(E y_{i-1} + C c_i, s_{i-1}), c_i what additive attention of s_{i-1} finds in the annotations
/// h_j. By default a GRU that resets after the product and a tanh readout of s_i, which is what later systems
/// use. The paper's own decoder is cell gru-2015 with readout maxout: that readout sees s_{i-1} and, as in
/// the paper's appendix, there are no biases in s_0, the scores and the readout. Shape letters: E annotation.
class AttentionDecoder {
 public:
  /// The embeddings and, behind an encoder's parameters, the rest, for annotations of E numbers.
  void visit_embedding(const ParameterVisitor& visitor, const ModelConfig& config);
  void visit(const ParameterVisitor& visitor, const ModelConfig& config, int64_t E);

  /// h_j [S, E] with what depends on them alone, and s_0 = tanh(W_s last), last [B, N].
  Memory memory(const autograd::Ragged& sources, const Tensor& h, const Tensor& last) const;
  /// As Model::loss and EncoderDecoder::step.
  Tensor loss(const Memory& memory, const SentencePairs& pairs, const LossOptions& options,
              const Dropout& dropout, int32_t begin) const;
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const;

 private:
  Tensor decode(const Memory& memory, const Tensor& WEy, const TargetRows& target) const;
  nn::Cell cell() const { return {kind_, U_, b_hh_}; }

  nn::CellKind kind_ = nn::CellKind::gru;
  Tensor E_target_;                 // [V, D]
  Tensor W_s_, b_s_;                // [N, N], [N]
  Tensor W_a_, U_a_, b_a_, v_a_;    // [A, N], [A, E], [A], [A]
  Tensor W_, C_, U_, b_ih_, b_hh_;  // [gN, D], [gN, E], [gN, N], [gN], [gN]
  ReadoutLayer readout_;
  Tensor W_out_, b_out_;  // [V, R], [V]
};

}  // namespace regard::models
