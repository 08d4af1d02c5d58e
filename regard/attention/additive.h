#pragma once
// Additive attention (Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, A.1.2), one decoder step for many rows:
//   e_ij = v' tanh(q_i + k_j)     alpha_ij = exp(e_ij) / sum_j exp(e_ij)     c_i = sum_j alpha_ij h_j
// q = W_a s_{i-1} and k_j = U_a h_j are projected by the caller, the keys once a sentence.

#include <cstdint>
#include <span>

#include "regard/base/span.h"
#include "regard/base/thread_pool.h"

namespace regard::attention {

/// Operands of additive attention over ragged sources. Sentence b's keys and values are rows
/// offsets[b]..offsets[b+1] of `keys` and `values`. Row i of `query` looks at sentence sentences[i] (empty:
/// sentence i). A sentence of length 0 gives weights and context 0.
template <class T>
struct AdditiveOperands {
  MatrixView<const T> query;             ///< [R, A]
  MatrixView<const T> keys;              ///< [sum S_b, A]
  MatrixView<const T> values;            ///< [sum S_b, E]
  const T* v = nullptr;                  ///< [A]
  std::span<const int64_t> offsets;      ///< [B + 1]
  std::span<const int32_t> sentences{};  ///< [R] or empty
};

/// weights [R, >= longest S] (row i: its sentence's S_b entries are written, no others), context [R, E].
/// All views have column_stride 1. The result of a row depends on that row's operands alone, to the bit.
/// With a pool the rows are shared out in fixed parts. Throws ShapeError.
void additive_forward(const AdditiveOperands<float>& operands, MatrixView<float> weights,
                      MatrixView<float> context, ThreadPool* pool = nullptr);
void additive_forward(const AdditiveOperands<double>& operands, MatrixView<double> weights,
                      MatrixView<double> context, ThreadPool* pool = nullptr);

/// Gradients. `d_context` [R, E] and, unless its data is null, `d_weights` come in; d_query [R, A] is
/// written; d_keys [sum S, A] and d_v [A] are added to; d_values [sum S, E] is added to unless its data is
/// null (a decoder over many steps adds it for all steps at once: alpha' dC). tanh is recomputed, not kept.
/// REQUIRES for a pool: no two rows look at the same sentence.
template <class T>
struct AdditiveGradients {
  MatrixView<const T> d_context;
  MatrixView<const T> d_weights;
  MatrixView<T> d_query;
  MatrixView<T> d_keys;
  MatrixView<T> d_values;
  T* d_v = nullptr;
};
void additive_backward(const AdditiveOperands<float>& operands, MatrixView<const float> weights,
                       const AdditiveGradients<float>& gradients, ThreadPool* pool = nullptr);
void additive_backward(const AdditiveOperands<double>& operands, MatrixView<const double> weights,
                       const AdditiveGradients<double>& gradients, ThreadPool* pool = nullptr);

}  // namespace regard::attention
