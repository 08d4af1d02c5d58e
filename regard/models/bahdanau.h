#pragma once
// Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and translate",
// arXiv:1409.0473: a bidirectional encoder whose every state the decoder may look back at.

#include "regard/models/model.h"

namespace regard::models {

class Dropout;

class Bahdanau final : public EncoderDecoder {
 public:
  explicit Bahdanau(const ModelConfig& config) : EncoderDecoder(config) {}

  bool attends() const override { return true; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// The state is s_i [R, N].
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  struct Cell {
    Tensor W, U, b_ih, b_hh;  // [3N, D], [3N, N], [3N], [3N]
  };
  void visit(const ParameterVisitor& visitor) override;
  Memory encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const;

  Tensor E_source_, E_target_;  // [V, D]
  Cell forward_, backward_;
  Tensor W_s_, b_s_;                // [N, N], [N]
  Tensor W_a_, U_a_, b_a_, v_a_;    // [A, N], [A, 2N], [A], [A]
  Tensor W_, C_, U_, b_ih_, b_hh_;  // [3N, D], [3N, 2N], [3N, N], [3N], [3N]
  Tensor S_o_, C_o_, V_o_, b_o_;    // [R, N], [R, 2N], [R, D], [R]
  Tensor W_out_, b_out_;            // [V, R], [V]
};

}  // namespace regard::models
