#pragma once
// Paulus, Xiong and Socher (2017), "A deep reinforced model for abstractive summarization", arXiv:1705.04304:
// attention that turns away from what it has seen, on both sides, and a pointer that copies source words.
// Trained by maximum likelihood alone (the paper's 3.1); there is no reinforcement learning.

#include "regard/autograd/pointer.h"
#include "regard/models/recurrent.h"

namespace regard::models {

/// With h^e_i the annotations of a bidirectional LSTM and h^d_t the state of an LSTM that has read y_{t-1}:
///   e_ti = h^d_t' W^e h^e_i                                    2.1 intra-temporal attention
///   e'_ti = exp(e_ti) at the first step, else exp(e_ti) / sum_{u<t} exp(e_ui)
///   alpha^e_ti = e'_ti / sum_j e'_tj
///   c^e_t = sum_i alpha^e_ti h^e_i
///   alpha^d_tu = softmax_{u<t}(h^d_t' W^d h^d_u)               2.2 intra-decoder attention
///   c^d_t = sum_{u<t} alpha^d_tu h^d_u,  c^d_1 = 0
///   p(y_t | u_t = 0) = softmax(W_out [h^d_t; c^e_t; c^d_t] + b_out)      2.3 generated
///   p(y_t = x_i | u_t = 1) = alpha^e_ti                        copied
///   p(u_t = 1) = sigmoid(W_u [h^d_t; c^e_t; c^d_t] + b_u)
///   p(y_t) = p(u_t = 1) p(y_t | u_t = 1) + p(u_t = 0) p(y_t | u_t = 0)
///   W_out = tanh(W_emb W_proj)                                 2.4 one table of embeddings
/// The paper is told at training which words are copied; here nobody says so, and the loss is - log p(y_t),
/// summed over both ways (autograd/pointer.h, where label smoothing stands too). A word can be copied if it
/// has a number in the one vocabulary of both sides, as every word has that is made of pieces.
///
/// h^d_0 is h^e_n, read as the last state of either direction (at position n the one that reads backward
/// knows the end symbol only), and likewise the LSTM's memory. So N = width in each direction and 2N in the
/// decoder.
class IntraDecoder final : public EncoderDecoder {
 public:
  /// Throws UsageError if pointer or shared embeddings have two vocabularies.
  explicit IntraDecoder(const ModelConfig& config);

  bool attends() const override { return true; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// The state is h^d_t and its memory [R, 2N], log sum_{u<=t} exp(e_ui) [R, longest S], and the decoder's
  /// states so far [R, t, 2N]. With the pointer, logits are log p(y_t). alpha is alpha^e_t.
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  void visit(const ParameterVisitor& visitor) override;
  Memory encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const;
  bool shared() const { return !config().separate_embeddings; }
  const Tensor& E_source() const { return shared() ? W_emb_ : E_source_; }
  const Tensor& E_target() const { return shared() ? W_emb_ : E_target_; }
  /// Of what the output layer sees, [R, K].
  autograd::PointerInputs pointer(const Tensor& seen, const Tensor& alpha, const Memory& memory) const;

  Tensor W_emb_, W_proj_;               // [V, D], [K, D] = W_proj'
  Tensor E_source_, E_target_, W_out_;  // [V, D], [V, D], [V, K], separate ones
  RecurrentEncoder encoder_;
  RecurrentLayer decoder_;
  Tensor W_e_, W_d_;  // [2N, 2N] = (W^e)', (W^d)'
  Tensor W_u_, b_u_;  // [1, K], [1]
  Tensor b_out_;      // [V]
};

}  // namespace regard::models
