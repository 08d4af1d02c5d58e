#pragma once
// Luong, Pham and Manning (2015), "Effective approaches to attention-based neural machine translation",
// arXiv:1508.04025: the decoder steps first and attends with the state that it has reached.

#include "regard/autograd/score_attention.h"
#include "regard/models/recurrent.h"

namespace regard::models {

/// With h_t the decoder's top state after reading y_{t-1}, h_s the annotations and S the source's length:
///   score    dot       h_t' h_s                 general   h_t' W_a h_s
///            concat    v_a' tanh(W_a [h_t; h_s])   location  W_a h_t, one score a position
///   global   a_t(s) = softmax_s score
///   local-m  the same over |s - t| <= D, t counted from 0
///   local-p  over |s - p_t| <= D, then times exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2,
///            p_t = S sigmoid(v_p' tanh(W_p h_t))
///   c_t = sum_s a_t(s) h_s      h~_t = tanh(W_c [c_t; h_t])      p(y_t) = softmax(W_out h~_t + b)
/// With input feeding the decoder's first layer reads y_{t-1} and h~_{t-1}, which is 0 at first. Every
/// decoder layer starts from the last state of the encoder's layer, in both directions of that which read to
/// the first word.
///
/// Row t of alpha is computed after y_{t-1} was read and before y_t is known, the score's only view of the
/// target being h_t. It may speak of the word just fed, y_{t-1}, or of the one to be written, y_t; Bahdanau's
/// row i is that of y_i. Which it is, training decides (docs/models.md has a measurement); guided alignment
/// teaches row t the links of y_t. No row is shifted or left out here, the end symbol's included.
class Luong final : public EncoderDecoder {
 public:
  explicit Luong(const ModelConfig& config) : EncoderDecoder(config) {}
  /// Throws UsageError if options do not fit each other, with the reason.
  static void check(const ModelConfig& config);

  bool attends() const override { return true; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// The state is, of every layer, h^l [R, N] and an LSTM's c^l; for local-m t [R, 1]; with input feeding
  /// h~_t [R, R].
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  /// What one step of R hypotheses makes.
  struct Next {
    State state;
    Tensor h_tilde;  // [R, R]
    Tensor alpha;    // [R, longest S]
  };

  void visit(const ParameterVisitor& visitor) override;
  Memory encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const;
  /// Of all target positions.
  struct Decoded {
    Tensor h_t;      // [T, N]
    Tensor h_tilde;  // [T, R]
  };
  /// From W E y + b of the distinct previous words.
  Decoded decode_at_once(const Memory& memory, const Tensor& WEy, const TargetRows& target,
                         const Dropout& dropout) const;
  Decoded decode_step_by_step(const Memory& memory, const Tensor& WEy, const TargetRows& target,
                              const Dropout& dropout) const;
  /// x = W E y_{t-1} + b [R, gN]; masks: dropout of the layers but the last, [R, N], may be empty.
  Next next(const Tensor& WEy, const State& before, const Memory& memory,
            std::span<const int32_t> sentence_of, std::span<const Tensor> masks) const;
  /// Rows h_t [R, N] at target positions t [R, 1] (read by local-m only).
  autograd::Attended attend(const Tensor& h_t, const Tensor& t, const Memory& memory,
                            std::span<const int32_t> sentence_of) const;
  Tensor combine(const Tensor& c_t, const Tensor& h_t) const;  // h~_t  [R, R]
  nn::CellState of_layer(const State& state, size_t layer) const;
  size_t layers() const { return decoder_.size(); }
  size_t tensors_of_layers() const { return layers() * (nn::has_memory(config().cell) ? 2 : 1); }

  Tensor E_source_, E_target_;  // [V, D]
  RecurrentEncoder encoder_;
  std::vector<RecurrentLayer> decoder_;  // the first reads E y, the others the layer below
  Tensor F_;                             // [gN, R]  of h~_{t-1}, with input feeding
  Tensor W_a_;                           // general [N, E], location [L, N]
  Tensor W_a_t_, W_a_s_, v_a_;           // concat: W_a = [W_a_t | W_a_s]  [A, N], [A, E], [A]
  Tensor W_p_, v_p_;                     // local-p  [A, N], [A]
  Tensor W_c_;                           // [R, E + N]
  Tensor W_out_, b_out_;                 // [V, R], [V]
};

}  // namespace regard::models
