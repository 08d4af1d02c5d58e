#pragma once
// Bahdanau, Cho and Bengio (2015), "Neural machine translation by jointly learning to align and translate",
// arXiv:1409.0473: a bidirectional encoder whose every state the decoder may look back at.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regard/autograd/sequences.h"
#include "regard/nn/parameter.h"
#include "regard/text/batches.h"

namespace regard::models {

/// Sizes. Letters as in the code: V vocabularies, D embedding, N state (per direction), A alignment, R
/// readout.
struct BahdanauConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t embedding = 256, width = 256, alignment = 256, readout = 256;
};

/// Source and target sentences of one piece of a batch, end symbols included.
struct SentencePairs {
  std::vector<std::span<const int32_t>> sources, targets;
};

/// What the encoder hands to the decoder: a value, so that beam search may do with it what it likes.
struct Memory {
  Tensor h;     ///< [S, 2N] annotations of all sentences
  Tensor Ua_h;  ///< [S, A] projected once
  autograd::Ragged sources;
  Tensor s0;  ///< [B, N] initial states
};

/// One decoder step for R hypotheses.
struct Step {
  Tensor logits;  ///< [R, V]
  Tensor s;       ///< [R, N]
  Tensor alpha;   ///< [R, longest S]
};

class Bahdanau {
 public:
  Bahdanau(const BahdanauConfig& config, uint64_t seed);

  const BahdanauConfig& config() const { return config_; }
  /// Handles that share storage with the model.
  std::vector<nn::Parameter> parameters() const;
  /// Replaces storage by that of `values`, by name. Throws DataError if a name is missing or a shape differs.
  void load(std::span<const nn::Parameter> values);
  /// The same numbers in another type (f64 for tests).
  void convert(DType dtype);

  /// scale * the sum over all target positions of the smoothed cross-entropy, nats. Fused.
  Tensor loss(const SentencePairs& pairs, double smoothing, double scale) const;

  Memory encode(std::span<const std::span<const int32_t>> sources) const;
  /// y_prev [R], s [R, N], sentence_of [R] into the memory's sentences.
  Step step(std::span<const int32_t> y_prev, const Tensor& s, const Memory& memory,
            std::span<const int32_t> sentence_of) const;

 private:
  struct Cell {
    Tensor W, U, b_ih, b_hh;  // [3N, D], [3N, N], [3N], [3N]
  };
  template <class Self, class Visit>
  static void members(Self& self, Visit visit);

  BahdanauConfig config_;
  Tensor E_source_, E_target_;  // [V, D]
  Cell forward_, backward_;
  Tensor W_s_, b_s_;                // [N, N], [N]
  Tensor W_a_, U_a_, b_a_, v_a_;    // [A, N], [A, 2N], [A], [A]
  Tensor W_, C_, U_, b_ih_, b_hh_;  // [3N, D], [3N, 2N], [3N, N], [3N], [3N]
  Tensor S_o_, C_o_, V_o_, b_o_;    // [R, N], [R, 2N], [R, D], [R]
  Tensor W_out_, b_out_;            // [V, R], [V]
};

}  // namespace regard::models
