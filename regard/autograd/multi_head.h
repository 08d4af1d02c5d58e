#pragma once
// Scaled dot-product attention in several heads over ragged batches (Vaswani et al. 2017, arXiv:1706.03762,
// 3.2), on the kernels of regard/attention/attention.h. Rows stand sentence after sentence; a row holds the
// vectors of all heads side by side, H heads of D = W / H numbers.

#include <cstdint>
#include <vector>

#include "regard/autograd/sequences.h"
#include "regard/autograd/tape.h"
#include "regard/tensor/tensor.h"

namespace regard::autograd {

/// Dropout of attention weights; probability 0 is none. See attention::Dropout.
struct WeightDropout {
  double probability = 0;
  uint64_t seed = 0, step = 0, layer = 0;
  std::vector<uint64_t> streams{};  ///< [B], an id for each sentence; empty: its place in the batch
};

struct HeadOptions {
  int64_t heads = 1;
  bool causal = false;  ///< a position attends to itself and what stands before it
  int64_t window = 0;   ///< to positions up to so far away only; 0: all
  /// Block-sparse: positions stand in blocks of so many, and a block attends to itself, to the blocks beside
  /// it and to the sentence's first. 0: all. The local and global blocks of Zaheer et al. 2020,
  /// arXiv:2007.14062, 2.
  int64_t block = 0;
  bool alibi = false;  ///< scores fall with the distance, Press, Smith and Lewis 2021, arXiv:2108.12409
  /// a [2k+1, D]: scores gain q_i . a_c / sqrt(D), c = the distance j - i clipped to -k..k, plus k.
  /// Shaw, Uszkoreit and Vaswani 2018, arXiv:1803.02155, equation 4, the same for all heads.
  Tensor relative_keys{};
  /// b [N, H]: head h gains b[c, h], c the bucket of j - i: the nearer half of distances one each, farther
  /// ones by their logarithm up to 128; unless causal half of the buckets are for keys behind the query.
  /// Raffel et al. 2020, arXiv:1910.10683, 2.1.
  Tensor relative_bias{};
  /// b [2k+1, H]: head h gains b[c, h], c the distance j - i clipped to -k..k, plus k: every distance beyond
  /// k shares one number. Parikh, Taeckstroem, Das and Uszkoreit 2016, arXiv:1606.01933, 3.4.
  Tensor distance_bias{};
  WeightDropout dropout{};
};

/// Every sentence attends to itself.  qkv [T, 3W], queries, keys and values side by side; returns [T, W].
/// `weights`, if not null, receives the mean over the heads, [T, longest] (not differentiated).
/// Gradients for qkv and the tables of the options. O(sum of squared lengths W). Throws ShapeError.
Tensor self_attention(const Tensor& qkv, const Ragged& sentences, const HeadOptions& options,
                      Tensor* weights = nullptr);

/// Rows of a sentence attend to the keys of the same sentence.  q [T, W], kv [S, 2W]; returns [T, W].
/// `weights`, if not null, receives the mean over the heads, [T, longest S] (not differentiated).
/// Causal, window, ALiBi and relative terms are for self-attention: UsageError.
Tensor cross_attention(const Tensor& q, const Tensor& kv, const Ragged& queries, const Ragged& keys,
                       const HeadOptions& options, Tensor* weights = nullptr);

/// One step of self-attention: row r, at position t - 1, attends to its own t cached keys and values, of
/// which the last are its own.  q [R, W], cache [R, t, 2W]; returns [R, W]. Not differentiated. In f32 and
/// f64.
Tensor cached_attention(const Tensor& q, const Tensor& cache, const HeadOptions& options);

/// Linear attention in several heads, with elu + 1 (regard/attention/linear.h): every sentence attends to
/// itself.  qkv [T, 3W]; returns [T, W]. O(T W^2 / H). Throws ShapeError.
Tensor linear_self_attention(const Tensor& qkv, const Ragged& sentences, int64_t heads, bool causal);

/// One causal step of it, and what has been attended to: of every head S [D, D], then z [D].
struct LinearStep {
  Tensor value;  ///< [R, W]
  Tensor state;  ///< [R, H, D (D + 1)], zero before the first step
};
/// qkv [R, 3W]. Not differentiated.
LinearStep linear_attention_step(const Tensor& qkv, const Tensor& state, int64_t heads);

/// ALiBi's slopes: 2^(-8h/H), h from 1, for H a power of two; else those of the power below and every other
/// one of twice that.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace regard::autograd
