#pragma once
// Parikh, Taeckstroem, Das and Uszkoreit (2016), "A decomposable attention model for natural language
// inference", arXiv:1606.01933: attend, compare, aggregate. No recurrence, no positions: a bag of alignments.

#include "regard/models/model.h"
#include "regard/models/sentences.h"
#include "regard/nn/layers.h"

namespace regard::models {

/// Two layers relu(W x + b), the paper's feed-forward networks F, G and H, with dropout before each.
struct TwoLayers {
  nn::Linear first, second;  // [N, K], [N, N]

  void visit(const ParameterVisitor& visitor, const std::string& name, int64_t K, int64_t N);
  Tensor operator()(const Tensor& x, const Dropout& dropout, uint64_t layer,
                    const autograd::Ragged& sentences) const;
};

/// Reads premise and hypothesis with one table of embeddings. The paper's NULL token, which a word may be
/// aligned to, is the end symbol here. With intra_sentence, words are first joined with what they attend to
/// in their own sentence (3.4).
class Decomposable final : public Classifier {
 public:
  using Classifier::Classifier;

  Tensor loss(const SentencePairs& pairs, const LossOptions& options) const override;
  Classified classify(const SentencePairs& pairs, bool with_attention) const override;

 private:
  struct Side {
    autograd::Ragged rows;
    Tensor words;  ///< [S, D] a_i
  };
  struct Aggregated {
    Tensor h;      ///< [B, N] H's last hidden layer
    Tensor alpha;  ///< [S, longest T] what the premise's words attend to
    autograd::Ragged premises, hypotheses;
  };

  void visit(const ParameterVisitor& visitor) override;
  Side read(std::span<const std::span<const int32_t>> sentences, const Dropout& dropout,
            uint64_t layer) const;
  Aggregated aggregate(const SentencePairs& pairs, const LossOptions& options) const;

  Tensor E_;             // [V, M]
  nn::Linear project_;   // [N, M]
  TwoLayers F_intra_;    // N -> N
  Tensor d_;             // [21, 1] by distance -10 .. 10
  TwoLayers F_, G_, H_;  // D -> N, 2D -> N, 2N -> N
  nn::Linear out_;       // [classes, N]
};

}  // namespace regard::models
