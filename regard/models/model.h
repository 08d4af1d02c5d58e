#pragma once
// What all models have in common: training asks for a loss, files for parameters. An encoder-decoder also
// writes a target word by word, a classifier names a class.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regard/autograd/frozen_weights.h"
#include "regard/autograd/operations.h"
#include "regard/autograd/sequences.h"
#include "regard/models/config.h"
#include "regard/nn/parameter.h"

namespace regard::models {

/// Guided alignment wants target position `target` to look at source position `source`; the shares of a
/// target position add up to 1.
struct GuidedLink {
  int32_t target, source;
  float share;
};

/// Source and target sentences of one piece of a batch, end symbols included. A language model's sources are
/// empty; a classifier reads both sides (premise and hypothesis) and has a label for each pair.
struct SentencePairs {
  std::vector<std::span<const int32_t>> sources, targets;
  std::vector<int32_t> labels{};    ///< of every pair, for a classifier; else empty
  std::vector<uint64_t> numbers{};  ///< of the sentences among all, for dropout; empty: 0, 1, ...
  std::vector<std::span<const GuidedLink>> guidance{};  ///< of every pair; empty: none
};

/// Where dropout's random numbers come from. They depend on the sentence, not on batch, shard or thread.
struct DropoutKey {
  uint64_t seed = 0;
  int64_t step = 0;
};

struct LossOptions {
  double smoothing = 0;                 ///< label smoothing over all entries
  double scale = 1;                     ///< the loss is a sum over predictions times this
  std::optional<DropoutKey> dropout{};  ///< absent: no dropout, as when evaluating
  double guided_weight = 0;             ///< of guided alignment's loss beside the other
};

/// What a decoder carries from step to step: tensors [R, ...], row r belongs to hypothesis r.
using State = std::vector<Tensor>;
/// Rows of a state, in this order; rows may repeat.
State select(const State& state, std::span<const int32_t> rows);

/// What the encoder hands to the decoder: a value, so that beam search may do with it what it likes.
struct Memory {
  autograd::Ragged sources;
  Tensor h;                      ///< [S, E] annotations of all sentences, or [B, E] one vector a sentence
  Tensor keys;                   ///< [S, A] projected once; undefined without attention
  std::vector<Tensor> layers{};  ///< keys and values [S, 2W] of every decoder layer, of a Transformer
  State initial_state;           ///< [B, ...]
  std::vector<int32_t> words{};  ///< [S] the sources' words, for a pointer
  Tensor W_out{};                ///< [V, K] of a model that computes its output weights
  std::shared_ptr<const autograd::FrozenWeights> packed_W_out{};  ///< for the steps
};

/// One decoder step for R hypotheses.
struct Step {
  Tensor logits;  ///< [R, V]
  State state;
  Tensor alpha;  ///< [R, longest S], what each hypothesis attended to; undefined without attention
};

using nn::ParameterVisitor;

/// Parameters, and a loss to train them by.
class Model {
 public:
  explicit Model(const ModelConfig& config) : config_(config) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  const ModelConfig& config() const { return config_; }

  /// The loss of all predictions: scale * sum of smoothed cross-entropies, nats; [1]. What is predicted are
  /// the target's positions, teacher-forced, or a classifier's labels. With guidance, a model that attends
  /// adds guided_weight * scale * - sum share log alpha(target, source).
  virtual Tensor loss(const SentencePairs& pairs, const LossOptions& options) const = 0;

  /// Draws all parameters anew, each from (seed, its place in the list).
  void initialise(uint64_t seed);
  /// Handles that share storage with the model, in the order of the files.
  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  int64_t parameter_count() const;
  /// Replaces storage by that of `values`, by name. Throws DataError if a name is missing or unknown, or a
  /// shape differs.
  void load(std::span<const nn::Parameter> values);
  /// The same numbers in another type (f64 for tests).
  void convert(DType dtype);

 protected:
  /// The one list of the model's parameters.
  virtual void visit(const ParameterVisitor& visitor) = 0;

 private:
  void set_each(const ParameterVisitor& set);

  ModelConfig config_;
  std::vector<nn::Parameter> parameters_;  // what visit() listed when the parameters were last set
};

/// Writes a target word by word, of a source or (a language model) of nothing.
class EncoderDecoder : public Model {
 public:
  using Model::Model;

  /// True if step() returns alpha.
  virtual bool attends() const = 0;
  virtual Memory encode(std::span<const std::span<const int32_t>> sources) const = 0;
  /// y_prev [R] (the begin symbol at first), state [R, ...], sentence_of [R] into the memory's sentences.
  virtual Step step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
                    std::span<const int32_t> sentence_of) const = 0;

  /// The state after steps over the words of texts [R], all of one length, the r-th of the memory's r-th
  /// sentence; the begin symbol is the first word of each. To the bit what as many calls of step() end with.
  virtual State read(std::span<const std::span<const int32_t>> texts, const Memory& memory) const;

  /// What a language model looks back at in its own text: [T, T] for the T = text.size() + 1 positions of the
  /// begin symbol and the text; row t belongs to the step that has read position t. Undefined if it looks
  /// back at nothing.
  virtual Tensor own_attention(std::span<const int32_t>) const { return {}; }

  /// The symbol that starts every target: the vocabulary's last.
  int32_t begin() const { return static_cast<int32_t>(config().target_vocabulary - 1); }
};

/// What a classifier says of pairs.
struct Classified {
  Tensor logits;              ///< [B, classes]
  std::vector<Tensor> alpha;  ///< of every pair, if asked for: [S, T], source words by what they attend to
};

/// Names the class of a pair of sentences. Both sides are read with one vocabulary (config's
/// source_vocabulary); config's target_vocabulary is the number of classes.
class Classifier : public Model {
 public:
  using Model::Model;

  virtual Classified classify(const SentencePairs& pairs, bool with_attention = false) const = 0;
};

/// The parameters without their names.
std::vector<Tensor> tensors_of(const Model& model);

}  // namespace regard::models
