#pragma once
// The decoder of a Transformer alone, as a language model: Liu et al. (2018), "Generating Wikipedia by
// summarizing long sequences", arXiv:1801.10198, 4.2.3; Radford, Narasimhan, Salimans and Sutskever (2018),
// "Improving language understanding by generative pre-training".

#include <vector>

#include "regard/models/model.h"
#include "regard/models/sentences.h"
#include "regard/nn/attention.h"

namespace regard::models {

/// Layers of causal self-attention and feed-forward over the text so far. One table serves embeddings and
/// output unless separate_embeddings. With norm `before` a last norm follows the stack. Sources are empty.
class TransformerLm final : public EncoderDecoder {
 public:
  /// Throws UsageError if options do not fit each other (as Transformer::check).
  explicit TransformerLm(const ModelConfig& config);

  bool attends() const override { return false; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Memory encode(std::span<const std::span<const int32_t>> sources) const override;
  /// All positions of a text at once, unless a layer's attention is linear.
  State read(std::span<const std::span<const int32_t>> texts, const Memory& memory) const override;
  /// The last layer's weights, the mean over its heads; undefined if its attention is linear.
  Tensor own_attention(std::span<const int32_t> text) const override;
  /// The state is every layer's cache (nn::CachedStep), and the count of steps.
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override;

 private:
  struct Layer {
    nn::SelfAttention self_attention;
    nn::FeedForward feed_forward;
    nn::Residual first, second;
  };

  void visit(const ParameterVisitor& visitor) override;
  struct Shown {
    Tensor* weights = nullptr;              ///< receives what the top layer's positions attended to
    std::vector<Tensor>* caches = nullptr;  ///< receives every layer's keys and values, [T, 2D]
  };
  /// The top layer's output, [T, D].
  Tensor layers_of(std::span<const int32_t> words, const autograd::Ragged& T, const Dropout& dropout,
                   const Shown& shown) const;
  Tensor embed(std::span<const int32_t> words, std::span<const int32_t> positions) const;
  const Tensor& W_out() const { return config().separate_embeddings ? W_out_ : E_; }
  bool norm_at_end() const { return config().norm == nn::NormOrder::before; }

  Tensor E_;  // [V, D]
  nn::AddedPositions positions_;
  Tensor bias_;  // [buckets, H], of positions relative-bias
  std::vector<Layer> layers_;
  nn::LayerNorm norm_;
  Tensor W_out_, b_out_;  // [V, D] if separate, [V]
};

}  // namespace regard::models
