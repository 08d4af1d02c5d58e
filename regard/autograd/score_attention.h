#pragma once
// Attention of many decoder states at once, each looking at its own source: additive (Bahdanau, Cho and
// Bengio 2015, arXiv:1409.0473), by a product, by location, and within a window (Luong, Pham and Manning
// 2015, arXiv:1508.04025, section 3). What depends on the source alone is projected by the caller once: with
// keys W h_j the dot score is the paper's general one, and its concat, v' tanh(W_s s + W_h h_j), is additive
// with query W_s s and keys W_h h_j.
//
// Letters: R rows, S source positions of all sentences, N width of states, K of keys, E of values, A of a
// hidden layer. `sentence_of` [R] maps rows to sentences; empty: row i is sentence i. All throw ShapeError,
// are safe from several threads and give a row the same bits alone and in any batch.

#include <cstdint>
#include <span>

#include "regard/autograd/sequences.h"
#include "regard/tensor/tensor.h"

namespace regard::autograd {

/// What rows saw and where they looked; both are differentiable.
struct Attended {
  Tensor context;  ///< [R, E]
  Tensor weights;  ///< [R, longest S], 0 behind the end of a row's sentence
};

/// alpha_ij = softmax_j(v' tanh(q_i + k_j)), c_i = sum_j alpha_ij h_j.  query [R, A], keys [S, A], values
/// [S, E], v [A]. See regard/attention/additive.h.
Attended additive_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& v,
                            const Ragged& sources, std::span<const int32_t> sentence_of);

/// alpha_ij = softmax_j(q_i . k_j), c_i = sum_j alpha_ij h_j.  query [R, K], keys [S, K], values [S, E].
/// O(sum of rows' source lengths (K + E)).
Attended dot_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Ragged& sources,
                       std::span<const int32_t> sentence_of);

/// alpha_i = softmax(W s_i) over the source's first L positions; later ones have weight 0.  state [R, N],
/// W [L, N], values [S, E].
Attended location_attention(const Tensor& state, const Tensor& W, const Tensor& values, const Ragged& sources,
                            std::span<const int32_t> sentence_of);

struct LocalOptions {
  int64_t half_width = 0;  ///< D
  bool gaussian = false;   ///< local-p's factor; then D >= 1
};

/// alpha_ij = softmax_j(q_i . k_j) over |j - p_i| <= D, with `gaussian` times exp(-(j - p_i)^2 / (2
/// sigma^2)), sigma = D / 2, not normalised again. A window outside its source gives 0.  query [R, K], keys
/// [S, K], values [S, E], centres [R, 1]. The gradient of a centre is that of the Gaussian, else 0: a window
/// moves in steps.
Attended local_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& centres,
                         const LocalOptions& options, const Ragged& sources,
                         std::span<const int32_t> sentence_of);

/// Local-p's centres p_i = S_i sigmoid(v' tanh(W s_i)), S_i the length of row i's sentence.  state [R, N],
/// W [A, N], v [A]; returns [R, 1].
Tensor local_centres(const Tensor& state, const Tensor& W, const Tensor& v, const Ragged& sources,
                     std::span<const int32_t> sentence_of);

/// One element of a matrix of weights that should be large, and how much it counts.
struct GuidedWeight {
  int32_t row, column;
  double share;
};

/// - scale sum_k share_k log weights(row_k, column_k), what guided alignment adds to a loss: Chen, Matusov,
/// Khadivi and Peter 2016, arXiv:1607.01628, section 3.  weights [R, S]; returns [1]. A weight of 0, outside
/// a window for one, has no gradient and adds nothing. Throws ShapeError if an element is out of range.
Tensor guided_loss(const Tensor& weights, std::span<const GuidedWeight> guided, double scale);

}  // namespace regard::autograd
