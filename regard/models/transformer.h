#pragma once
// Vaswani et al. (2017), "Attention is all you need", arXiv:1706.03762: encoder and decoder of attention and
// feed-forward layers alone, all positions at once.

#include <vector>

#include "regard/models/model.h"
#include "regard/models/sentences.h"
#include "regard/nn/attention.h"

namespace regard::models {

/// One table of embeddings E serves source, target and output (3.4 of the paper; Press and Wolf 2017,
/// arXiv:1608.05859), so both sides need one vocabulary; with separate_embeddings there are three. With norm
/// `before` a last norm follows each stack.
class Transformer final : public EncoderDecoder {
 public:
  /// Throws UsageError if options do not fit each other.
  static void check(const ModelConfig& config);
  /// How layer `l` attends to its own side.
  static nn::SelfAttentionSizes self_attention(const ModelConfig& config, bool causal, size_t l);
  /// Throws UsageError likewise, and if shared embeddings have two vocabularies.
  explicit Transformer(const ModelConfig& config);

  bool attends() const override { return true; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// The state is every layer's keys and values so far, [R, t, 2D]. alpha is the mean over the heads of the
  /// last layer but one, whose attention is closest to alignments (Garg et al. 2019, arXiv:1909.02074).
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  struct EncoderLayer {
    nn::SelfAttention self_attention;
    nn::FeedForward feed_forward;
    nn::Residual first, second;
  };
  struct DecoderLayer {
    nn::SelfAttention self_attention;
    nn::CrossAttention cross_attention;
    nn::FeedForward feed_forward;
    nn::Residual first, second, third;
  };

  void visit(const ParameterVisitor& visitor) override;
  Tensor embed(const Tensor& E, std::span<const int32_t> words, std::span<const int32_t> positions) const;
  const Tensor& E_source() const { return config().separate_embeddings ? E_source_ : E_; }
  const Tensor& W_out() const { return config().separate_embeddings ? W_out_ : E_; }
  Tensor encode(std::span<const std::span<const int32_t>> sources, const autograd::Ragged& ragged,
                const Dropout& dropout) const;
  struct Decoded {
    Tensor t;      // [T, D]
    Tensor alpha;  // [T, longest S], undefined unless guided
  };
  Decoded decode(const Tensor& y, const Tensor& h, const autograd::Ragged& targets,
                 const autograd::Ragged& sources, const Dropout& dropout, bool guided) const;
  size_t shown_layer() const { return decoder_.size() > 1 ? decoder_.size() - 2 : 0; }
  bool norm_at_end() const { return config().norm == nn::NormOrder::before; }

  Tensor E_;                 // [V, D]
  Tensor E_source_, W_out_;  // [V, D], separate ones
  nn::AddedPositions positions_;
  Tensor encoder_bias_, decoder_bias_;  // [buckets, H], of positions relative-bias
  std::vector<EncoderLayer> encoder_;
  std::vector<DecoderLayer> decoder_;
  nn::LayerNorm encoder_norm_, decoder_norm_;
  Tensor b_out_;  // [V]
};

}  // namespace regard::models
