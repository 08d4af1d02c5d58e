#pragma once
// Attention in several heads (Vaswani et al. 2017, arXiv:1706.03762, 3.2.2) as layers. Shape letters: R rows,
// T target rows, S source rows, D model, t positions in a cache.

#include <span>
#include <string>

#include "regard/autograd/multi_head.h"
#include "regard/nn/layers.h"
#include "regard/nn/positions.h"

namespace regard::nn {

/// cache [R, t, W] with one more position, row_of_each [R, W]: [R, t + 1, W]. Not differentiated.
Tensor grown(const Tensor& cache, const Tensor& row_of_each);

/// Which keys a layer of self-attention looks at, and how.
enum class AttentionForm {
  exact,         ///< all of them
  window,        ///< those up to so far away
  block_sparse,  ///< in blocks: its own, the ones beside it, the first
  linear         ///< all, by a feature map instead of a softmax.  Katharopoulos et al. 2020, arXiv:2006.16236
};

struct SelfAttentionSizes {
  int64_t D = 256, heads = 8;
  bool causal = false;
  AttentionForm form = AttentionForm::exact;
  int64_t window = 0;  ///< of AttentionForm::window
  int64_t block = 0;   ///< of AttentionForm::block_sparse
  PositionKind positions = PositionKind::sinusoid;
};

/// Distances that Shaw's positions tell apart, to each side, and T5's buckets.
constexpr int64_t kRelativeDistances = 16, kRelativeBuckets = 32;

/// What one step of self-attention returns.
struct CachedStep {
  Tensor value;  ///< [R, D]
  Tensor cache;  ///< [R, t + 1, 2D] keys and values; of linear attention its state [R, H, d (d + 1)]
};

class SelfAttention {
 public:
  void visit(const ParameterVisitor& visitor, const std::string& name, const SelfAttentionSizes& sizes);

  /// x [T, D], all sentences. `bias` is the stack's table of relative biases, or undefined. `weights`, if not
  /// null, receives the mean over the heads, [T, longest]; `cache` the keys and values [T, 2D], what step()
  /// would have kept. Linear attention has neither and leaves them alone.
  Tensor operator()(const Tensor& x, const autograd::Ragged& sentences, const Tensor& bias,
                    const autograd::WeightDropout& dropout, Tensor* weights = nullptr,
                    Tensor* cache = nullptr) const;
  bool keeps_positions() const { return sizes_.form != AttentionForm::linear; }
  /// What step() starts from, for R rows.
  Tensor empty_cache(int64_t R) const;
  /// One more position of every row, `position` from 0.  x [R, D], cache as CachedStep's, before it.
  CachedStep step(const Tensor& x, const Tensor& cache, int64_t position, const Tensor& bias) const;

 private:
  autograd::HeadOptions options(const Tensor& bias) const;
  /// Queries, keys and values, [R, 3D].
  Tensor project(const Tensor& x, std::span<const int32_t> positions) const;

  SelfAttentionSizes sizes_;
  Linear qkv_, out_;      // [3D, D], [D, D]
  Tensor relative_keys_;  // [2k+1, D/H]
};

/// What one step of cross-attention returns.
struct AttendedRows {
  Tensor value;  ///< [R, D]
  Tensor alpha;  ///< [R, longest S], the mean over the heads; undefined if it was not wanted
};

class CrossAttention {
 public:
  void visit(const ParameterVisitor& visitor, const std::string& name, int64_t D, int64_t heads);

  /// Keys and values of the annotations h [S, D]: [S, 2D].
  Tensor keys_and_values(const Tensor& h) const { return kv_(h); }
  /// x [T, D] attends to the keys and values of its sentence.
  Tensor operator()(const Tensor& x, const Tensor& kv, const autograd::Ragged& targets,
                    const autograd::Ragged& sources, const autograd::WeightDropout& dropout) const;
  /// What rows x [T, D] attend to, differentiable: the mean over the heads, [T, longest S].
  Tensor weights(const Tensor& x, const Tensor& kv, const autograd::Ragged& sources,
                 std::span<const int32_t> sentence_of) const;
  /// Row r of x [R, D] belongs to sentence sentence_of[r].
  AttendedRows step(const Tensor& x, const Tensor& kv, const autograd::Ragged& sources,
                    std::span<const int32_t> sentence_of, bool want_alpha) const;

 private:
  int64_t heads_ = 1;
  Linear q_, kv_, out_;  // [D, D], [2D, D], [D, D]
};

}  // namespace regard::nn
