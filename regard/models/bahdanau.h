#pragma once
// Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and translate",
// arXiv:1409.0473: a bidirectional encoder whose every state the decoder may look back at.

#include "regard/models/attention_decoder.h"

namespace regard::models {

/// The encoder of the paper and its decoder (attention_decoder.h), of which cell and readout may be chosen.
class Bahdanau final : public EncoderDecoder {
 public:
  explicit Bahdanau(const ModelConfig& config) : EncoderDecoder(config) {}

  bool attends() const override { return true; }
  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override {
    const Dropout dropout(config().dropout, pairs, options);
    return decoder_.loss(encode(pairs.sources, dropout), pairs, options, dropout, begin());
  }
  Memory encode(std::span<const std::span<const int32_t>> sources) const override {
    return encode(sources, Dropout());
  }
  /// The state is s_i [R, N], of an LSTM s_i and its memory.
  Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
            std::span<const int32_t> sentence_of) const override {
    return decoder_.step(y_prev, state, memory, sentence_of);
  }

 private:
  void visit(const ParameterVisitor& visitor) override;
  Memory encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const;

  Tensor E_source_;  // [V, D]
  RecurrentEncoder encoder_;
  AttentionDecoder decoder_;  // over annotations [S, 2N]
};

}  // namespace regard::models
