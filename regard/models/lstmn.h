#pragma once
// Cheng, Dong and Lapata (2016), "Long short-term memory-networks for machine reading", arXiv:1601.06733: an
// LSTM that, in place of its last state, reads from all earlier ones by attention; as an encoder and as a
// language model. The recurrence: regard/autograd/lstmn.h.

#include <string>
#include <vector>

#include "regard/autograd/lstmn.h"
#include "regard/models/attention_decoder.h"

namespace regard::models {

/// One layer of K inputs: N state, A attention.
struct LstmnLayer {
  Tensor W, U, b;           // [4N, K], [4N, N], [4N]
  Tensor W_h, W_x, W_s, v;  // [A, N], [A, K], [A, N], [A]

  void visit(const ParameterVisitor& visitor, const std::string& name, int64_t K, int64_t N, int64_t A);
  /// h_t | c_t of every position [total, 2N]; row index[i] of y [D, K] belongs to position i.
  Tensor run(const Tensor& y, std::span<const int32_t> index, const autograd::Ragged& sentences,
             bool reverse) const;
};

/// An LSTMN reads the source, in one direction (the paper's) or both, and Bahdanau's decoder looks back at
/// its h_j. As in the paper's shallow fusion (3.2) the encoder stands where a recurrent one stood and the
/// decoder knows of it by attention alone; the paper's decoder is an LSTMN too.
class Lstmn final : public EncoderDecoder {
 public:
  explicit Lstmn(const ModelConfig& config) : EncoderDecoder(config) {}

  bool attends() const override { return true; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override {
    return encode(sources, Dropout());
  }
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override {
    return decoder_.step(y_prev, state, memory, sentence_of);
  }

 private:
  void visit(const ParameterVisitor& visitor) override;
  Memory encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const;

  struct Layer {
    LstmnLayer forward, backward;
  };
  Tensor E_source_;  // [V, D]
  std::vector<Layer> encoder_;
  AttentionDecoder decoder_;
};

/// LSTMN layers over the embeddings of the text so far, and an output layer on the last one's h_t. Sources
/// are empty.
class LstmnLm final : public EncoderDecoder {
 public:
  explicit LstmnLm(const ModelConfig& config);

  bool attends() const override { return false; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// The last layer's weights s; row t is of positions before t, row 0 is 0.
  Tensor own_attention(std::span<const int32_t> text) const override;
  /// The state is, layer by layer, the tapes h | c [R, t, 2N], their keys [R, t, A] and h~_t [R, N].
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  void visit(const ParameterVisitor& visitor) override;
  Step step(std::span<const int32_t> y_prev, const State& state, Tensor* weights) const;
  const Tensor& W_out() const { return config().tied_embeddings ? E_ : W_out_; }

  Tensor E_;  // [V, D]
  std::vector<LstmnLayer> layers_;
  Tensor W_out_, b_out_;  // [V, N], [V]
};

}  // namespace regard::models
