#pragma once
// Exact attention: tiled, in linear memory, with every mask and an exact backward.
//
//   s_ij = scale q_i . k_j                                      scores            [B, H, T, S]
//   s_ij = softcap tanh(s_ij / softcap)                         if softcap > 0
//   s_ij = s_ij + bias_ij - slope_h |i + offset - j|            bias, ALiBi
//   s_ij = -infinity where i may not attend to j                causal, window, lengths, mask, blocks
//   p_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(sink_h))          softmax           [B, H, T, S]
//   o_i  = sum_j dropout(p_ij) v_j                              output            [B, H, T, E]
//
// Vaswani et al. 2017, arXiv:1706.03762, 3.2; the softmax in one pass over the keys: Milakov and Gimelshein
// 2018, arXiv:1805.02867; in tiles, backward by recomputing them: Dao et al. 2022, arXiv:2205.14135.
//
// Letters: B batch, H heads of queries, Hkv heads of keys and values, T queries, S keys, D width of queries
// and keys, E width of values. Views have any strides; with `exchanged(1, 2)` a [B, T, H, D] tensor is a view
// too.
//
// Other scores are this one: dot, q_i . k_j, with scale 1; general (Luong et al. 2015), q_i' W k_j, with
// scale 1 and W applied to the queries beforehand; a relative position's score as a bias.
//
// What can be relied on
// * Head h of the queries attends with head h / (H / Hkv) of the keys and values.
// * A row that may attend to nothing, or whose scores are all -infinity: output, weights and gradients 0,
//   log-sum-exp -infinity (with a sink: the sink).
// * A NaN in what a row may attend to makes the row NaN, and so does a score of +infinity. Keys and values
// that
//   lengths, causal, window or blocks disallow for all rows are never read; what is disallowed for a row, by
//   those, by the mask or by a bias of -infinity, does not reach it, NaN and infinity included.
// * A float bias is added exactly: -3.4e38 is a very small score, only -infinity disables.
// * Bits: a row's result depends on that row's operands alone: not on the batch, other rows, padding,
// threads,
//   or strides. It may differ between processors.
// * f32: |error| of the output <= 2e-6 max(1, largest |score|) largest |V|. bf16 is read and written,
// computed in
//   f32. f64 is computed from the definition, row by row: accurate and slow, made for checking gradients.
// * Cost: 2 T S (D + E) multiply-adds a head, half of it when causal; a window and listed blocks cost what
// they
//   keep. Memory beside the operands: some hundred kilobytes a thread; bf16 adds the gradients of keys and
//   values of a head in f32.
// * Errors: ShapeError names the operand, its shape and the expected one. Safe from several threads.

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "regard/base/bfloat16.h"
#include "regard/base/thread_pool.h"
#include "regard/base/view.h"

namespace regard::attention {

/// The type that scores, statistics and biases have: double for double, else float.
template <class T>
using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Query i attends to keys from i + offset - left to i + offset + right, both included; -1 = open.
struct Window {
  int64_t left = -1;
  int64_t right = -1;
};

/// Where query 0 stands among the keys: its `offset`, which causal, window and ALiBi count from.
enum class Alignment {
  bottom_right,      ///< the last query stands at the last key: valid keys - valid queries of the item
  top_left,          ///< offset 0
  explicit_offsets,  ///< AttentionOptions::offsets
};

/// Which blocks of scores exist. Query block r, of `query_block` queries, attends to the key blocks
/// key_blocks[row_starts[r] .. row_starts[r + 1]), ascending, each of `key_block` keys. The sizes need not
/// divide the lengths. The same for every item and head. None if query_block is 0.
struct BlockSparse {
  int64_t query_block = 0;
  int64_t key_block = 0;
  std::span<const int64_t> row_starts{};  ///< [ceil(longest T / query_block) + 1]
  std::span<const int64_t> key_blocks{};
};

/// Weights are zeroed with `probability`, the others multiplied by 1 / (1 - probability). What is zeroed is a
/// function of (seed, step, layer, stream of the item, head, i, j): of no tile, thread, shard or batch.
struct Dropout {
  double probability = 0;
  uint64_t seed = 0, step = 0, layer = 0;
  std::span<const uint64_t> streams{};  ///< [B], an id for each item; empty: its index in the batch
};

/// R is float, double for operands in double. Everything disallowed by any of the masks is disallowed.
template <class R = float>
struct AttentionOptions {
  std::optional<double> scale{};  ///< default 1 / sqrt(D); 0 is 0
  double softcap = 0;             ///< 0: none
  bool causal = false;            ///< j <= i + offset
  Window window{};
  Alignment alignment = Alignment::bottom_right;
  std::span<const int64_t> offsets{};  ///< [B], for Alignment::explicit_offsets

  /// Valid positions of each item, [B] or empty (all). Key lengths alone, where T == S, are query lengths
  /// too.
  std::span<const int64_t> query_lengths{}, key_lengths{};
  /// Ragged batch, [B + 1]: the operands have a batch of 1, item b is positions starts[b] .. starts[b + 1) of
  /// the queries and outputs, and of the keys and values. Both or none; lengths must then be empty.
  std::span<const int64_t> query_starts{}, key_starts{};

  View4<const bool> mask{};           ///< [B, H, T, S], true = may attend; i and j count inside the item
  View4<const R> bias{};              ///< [B, H, T, S]
  std::span<const R> alibi_slopes{};  ///< [H]
  std::span<const R> sink{};          ///< [H], a score that takes weight and has no value
  BlockSparse blocks{};
  Dropout dropout{};
};

/// Results. Views without data are not computed.
template <class T>
struct AttentionOutputs {
  View4<T> out;                  ///< [B, H, T, E]; positions behind an item's length become 0
  View3<Real<T>> log_sum_exp{};  ///< [B, H, T], natural, sink included; behind the length -infinity
  View4<Real<T>> weights{};      ///< [B, H, >= T, >= S], p before dropout; i and j count inside the item
  View4<Real<T>> scores{};       ///< likewise: s as the softmax sees it, -infinity where disallowed
  View3<Real<T>> column_sums{};  ///< [B, H, S], sum_i p_ij: who is attended to
};

/// q [B, H, T, D], k [B, Hkv, S, D], v [B, Hkv, S, E].  weights, scores and column sums are a second pass
/// over the tiles, which need not be in memory for anything else.
void attention_forward(View4<const float> q, View4<const float> k, View4<const float> v,
                       const AttentionOutputs<float>& outputs, const AttentionOptions<float>& options = {},
                       ThreadPool* pool = nullptr);
void attention_forward(View4<const BFloat16> q, View4<const BFloat16> k, View4<const BFloat16> v,
                       const AttentionOutputs<BFloat16>& outputs, const AttentionOptions<float>& options = {},
                       ThreadPool* pool = nullptr);
void attention_forward(View4<const double> q, View4<const double> k, View4<const double> v,
                       const AttentionOutputs<double>& outputs, const AttentionOptions<double>& options = {},
                       ThreadPool* pool = nullptr);

/// Gradients of a loss. Those that go out are overwritten; of them, d_bias and d_sink may be left out.
template <class T>
struct AttentionGradients {
  View4<const T> d_out;                  ///< in, [B, H, T, E]
  View3<const Real<T>> d_log_sum_exp{};  ///< in, [B, H, T], or none
  View4<T> d_q;                          ///< [B, H, T, D]
  View4<T> d_k;                          ///< [B, Hkv, S, D]
  View4<T> d_v;                          ///< [B, Hkv, S, E]
  View4<Real<T>> d_bias{};               ///< [B, H, T, S]; where its stride is 0 the dimension is summed
  std::span<Real<T>> d_sink{};           ///< [H]
};

/// From the forward's operands, options, `out` and `log_sum_exp`; scores are recomputed tile by tile.
///   dP = dO V'    dS = P (dP - sum_e dO O + d_log_sum_exp)    dQ = scale dS K    dK = scale dS' Q    dV = P'
///   dO
/// The parts that the pool shares out are the heads of keys of each item (those that a d_bias of stride 0
/// joins are one part).
void attention_backward(View4<const float> q, View4<const float> k, View4<const float> v,
                        View4<const float> out, View3<const float> log_sum_exp,
                        const AttentionGradients<float>& gradients,
                        const AttentionOptions<float>& options = {}, ThreadPool* pool = nullptr);
void attention_backward(View4<const BFloat16> q, View4<const BFloat16> k, View4<const BFloat16> v,
                        View4<const BFloat16> out, View3<const float> log_sum_exp,
                        const AttentionGradients<BFloat16>& gradients,
                        const AttentionOptions<float>& options = {}, ThreadPool* pool = nullptr);
void attention_backward(View4<const double> q, View4<const double> k, View4<const double> v,
                        View4<const double> out, View3<const double> log_sum_exp,
                        const AttentionGradients<double>& gradients,
                        const AttentionOptions<double>& options = {}, ThreadPool* pool = nullptr);

/// Attention over a part of the keys.
template <class R>
struct PartialState {
  View4<const R> out;          ///< [B, H, T, E]
  View3<const R> log_sum_exp;  ///< [B, H, T], without sink
};

/// Attention over all keys from attention over parts of them, in the order given: o = sum_p exp(l_p - l) o_p
/// with l = log(sum_p exp(l_p) + exp(sink)).  `sink` [H] or empty is added once.  Empty states (-infinity)
/// add nothing, and only empty ones give an empty one. `out` may be one of the parts. Throws ShapeError.
void merge(std::span<const PartialState<float>> parts, std::span<const float> sink, View4<float> out,
           View3<float> log_sum_exp);
void merge(std::span<const PartialState<double>> parts, std::span<const double> sink, View4<double> out,
           View3<double> log_sum_exp);

}  // namespace regard::attention
