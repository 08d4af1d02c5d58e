#pragma once
// The tiled kernels of exact attention in f32 (Highway, dynamic dispatch): one tile of queries of one head
// forward, one head backward. T is float or BFloat16.

#include <cstdint>

#include "regard/attention/key_blocks.h"
#include "regard/attention/problem.h"

namespace regard::attention {

/// The softmax of a tile's queries: p_j = factor exp(s_j - m), and the log-sum-exp. Empty rows: 0, 0,
/// -infinity.
struct TileStatistics {
  alignas(64) float m[kTile], factor[kTile], log_sum_exp[kTile];
};

/// Queries [first, first + count) of a head, 0 < count <= kTile. out [T, E].
template <class T>
struct ForwardTile {
  const Head<T>& head;
  int64_t first, count;
  MatrixView<T> out;
  TileStatistics* statistics;  ///< out, or null
};
void forward_tile(const ForwardTile<float>& tile);
void forward_tile(const ForwardTile<BFloat16>& tile);

/// Weights and scores of a tile whose statistics are known. Only what the band and blocks allow is written:
/// the rest is the caller's. Column sums are added to.
template <class T>
struct WeightsTile {
  const Head<T>& head;
  int64_t first, count;
  const TileStatistics& statistics;
  MatrixView<float> weights;  ///< [T, S] or no data
  MatrixView<float> scores;   ///< likewise
  double* column_sums;        ///< [S] or null
};
void weights_tile(const WeightsTile<float>& tile);
void weights_tile(const WeightsTile<BFloat16>& tile);

/// One head's backward, tile by tile. d_q is written; d_k, d_v and d_bias are added to.
template <class T>
struct BackwardHead {
  const Head<T>& head;
  MatrixView<const T> out, d_out;
  MatrixView<const float> log_sum_exp;    ///< [T, 1]
  MatrixView<const float> d_log_sum_exp;  ///< [T, 1] or no data
  MatrixView<T> d_q;
  MatrixView<float> d_k, d_v;  ///< column stride 1, rows a multiple of kGradientPad apart and as long
  MatrixView<float> d_bias;    ///< or no data
  double* d_sink;              ///< or null
};
constexpr int64_t kGradientPad = 16;
void backward_head(const BackwardHead<float>& call);
void backward_head(const BackwardHead<BFloat16>& call);

}  // namespace regard::attention
