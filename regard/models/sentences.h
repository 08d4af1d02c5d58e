#pragma once
// How batches of sentences become rows: distinct words, previous words, keys of dropout.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "regard/autograd/layers.h"
#include "regard/autograd/multi_head.h"
#include "regard/autograd/operations.h"
#include "regard/models/model.h"

namespace regard::models {

/// The distinct numbers of a list, in order of first appearance, and for every entry its place among them:
/// what depends on the word alone is computed once a distinct word.
class Distinct {
 public:
  void push_back(int32_t id) {
    const auto [place, fresh] = place_.try_emplace(id, static_cast<int32_t>(ids_.size()));
    if (fresh) ids_.push_back(id);
    index_.push_back(place->second);
  }
  std::span<const int32_t> ids() const { return ids_; }
  std::span<const int32_t> index() const { return index_; }

 private:
  std::vector<int32_t> ids_, index_;
  std::unordered_map<int32_t, int32_t> place_;
};

/// Target rows of a batch, sentence after sentence: the word to predict and the word before it.
struct TargetRows {
  autograd::Ragged targets;
  Distinct previous;
  std::vector<int32_t> y;
};
TargetRows target_rows(std::span<const std::span<const int32_t>> targets, int32_t begin);

/// All words, one after the other.
std::vector<int32_t> words_of(std::span<const std::span<const int32_t>> sentences);
/// The words before them: the begin symbol first.
std::vector<int32_t> previous_words(std::span<const std::span<const int32_t>> sentences, int32_t begin);
/// Where each sentence stands among those words.
autograd::Ragged ragged(std::span<const std::span<const int32_t>> sentences);

/// The sentence that each row belongs to: [total].
std::vector<int32_t> sentence_rows(const autograd::Ragged& sentences);

/// True if the loss has a part for guided alignment.
bool is_guided(const SentencePairs& pairs, const LossOptions& options);
/// That part: alpha [total, longest S] of all target positions; returns [1].
Tensor guided_loss(const Tensor& alpha, const SentencePairs& pairs, const LossOptions& options,
                   const autograd::Ragged& targets);

/// A decoder's count of its steps, [R, 1], as part of a state: none yet, how many, and one more.
inline Tensor no_steps(int64_t R, DType dtype) { return Tensor::zeros({R, 1}, dtype); }
int64_t steps_of(const Tensor& count);
Tensor more_steps(const Tensor& count, int64_t n = 1);

/// Each position's state before its step: [total, N] from the states after every step [total, N] and the
/// initial ones [B, N].
Tensor states_before(const Tensor& after, const Tensor& initial, const autograd::Ragged& sentences);

/// Dropout (Srivastava et al. 2014) on rows of a ragged batch, in training only. A number is dropped by
/// (seed, step, layer, sentence, position, column): the same in any batch, shard or thread.
class Dropout {
 public:
  Dropout() = default;  ///< none
  Dropout(double rate, const SentencePairs& pairs, const LossOptions& options);
  /// x [total, N], or [B, N] with one row a sentence.
  Tensor operator()(const Tensor& x, uint64_t layer, const autograd::Ragged& sentences) const;
  /// What x [total, N] would be multiplied by, for steps that take their rows one by one; undefined: nothing
  /// is dropped.
  Tensor mask(int64_t N, uint64_t layer, const autograd::Ragged& sentences, DType dtype) const;
  /// The keys of all positions, for operations that drop themselves.
  autograd::RowDropout rows(uint64_t layer, const autograd::Ragged& sentences) const;
  /// For attention weights, of which `rate` are dropped.
  autograd::WeightDropout weights(double rate, uint64_t layer) const;

 private:
  double rate_ = 0;
  uint64_t key_ = 0;
  bool training_ = false;
  std::vector<uint64_t> numbers_;
};

}  // namespace regard::models
