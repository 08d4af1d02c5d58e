#pragma once
// The scores of Luong, Pham and Manning 2015, arXiv:1508.04025, 3.1, one decoder step for many rows:
//   dot       e_ij = s_i . h_j                          general   e_ij = s_i' W h_j
//   concat    e_ij = v' tanh(W [s_i; h_j])              location  e_i  = W s_i
//   alpha_ij = exp(e_ij) / sum_j exp(e_ij)              c_i = sum_j alpha_ij h_j
// Scores, softmax and context in one pass a row. What a step shares with all others is computed by the caller
// once (concat_keys, the products of concat), what it needs again for its gradient goes into `query`.
//
// Letters: R rows, N width of states s, S source positions of all sentences, K width of keys, E of values, A
// of the hidden layer. Sources are ragged as in additive.h: sentence b's keys and values are rows
// offsets[b]..offsets[b+1], row i looks at sentence sentences[i] (empty: i). A sentence of length 0 gives
// weights and context 0.
//
// Weights [R, >= longest S]: of row i its sentence's S_b entries are written. Matrices that rows are read
// from or written to have column stride 1. Forward: the result of a row depends on its own operands alone, to
// the bit. Backward: d_context [R, E] and, unless its data is null, d_weights come in; d_state and d_query
// are written; what belongs to sources and parameters is added to, d_values unless its data is null. `keys`
// and `values` may be the same memory, and so may their gradients. With a pool the rows are shared out in
// fixed parts, in backward if no two of them look at the same sentence. All throw ShapeError and are safe
// from several threads.

#include <cstdint>
#include <span>

#include "regard/base/span.h"
#include "regard/base/thread_pool.h"

namespace regard::attention {

/// The gradients that all scores share.
template <class T>
struct ScoreGradients {
  MatrixView<const T> d_context;  ///< in, [R, E]
  MatrixView<const T> d_weights;  ///< in, [R, S], or no data
  MatrixView<T> d_values;         ///< added to, [S, E], or no data
};

// --- dot
// -----------------------------------------------------------------------------------------------------------
template <class T>
struct DotOperands {
  MatrixView<const T> query;   ///< [R, K]  s
  MatrixView<const T> keys;    ///< [S, K]
  MatrixView<const T> values;  ///< [S, E]
  std::span<const int64_t> offsets;
  std::span<const int32_t> sentences{};
};
template <class T>
struct DotGradients : ScoreGradients<T> {
  MatrixView<T> d_query;  ///< written, [R, K]
  MatrixView<T> d_keys;   ///< added to, [S, K]
};
void dot_forward(const DotOperands<float>& operands, MatrixView<float> weights, MatrixView<float> context,
                 ThreadPool* pool = nullptr);
void dot_forward(const DotOperands<double>& operands, MatrixView<double> weights, MatrixView<double> context,
                 ThreadPool* pool = nullptr);
void dot_backward(const DotOperands<float>& operands, MatrixView<const float> weights,
                  const DotGradients<float>& gradients, ThreadPool* pool = nullptr);
void dot_backward(const DotOperands<double>& operands, MatrixView<const double> weights,
                  const DotGradients<double>& gradients, ThreadPool* pool = nullptr);

// --- general
// -------------------------------------------------------------------------------------------------------
template <class T>
struct GeneralOperands {
  MatrixView<const T> state;   ///< [R, N]
  MatrixView<const T> W;       ///< [N, K]
  MatrixView<const T> keys;    ///< [S, K]
  MatrixView<const T> values;  ///< [S, E]
  std::span<const int64_t> offsets;
  std::span<const int32_t> sentences{};
};
template <class T>
struct GeneralGradients : ScoreGradients<T> {
  MatrixView<T> d_state;  ///< written, [R, N]
  MatrixView<T> d_W;      ///< added to, [N, K]
  MatrixView<T> d_keys;   ///< added to, [S, K]
  MatrixView<T> d_query;  ///< written, [R, K]
};
/// `query` [R, K] = s W is written.
void general_forward(const GeneralOperands<float>& operands, MatrixView<float> query,
                     MatrixView<float> weights, MatrixView<float> context, ThreadPool* pool = nullptr);
void general_forward(const GeneralOperands<double>& operands, MatrixView<double> query,
                     MatrixView<double> weights, MatrixView<double> context, ThreadPool* pool = nullptr);
void general_backward(const GeneralOperands<float>& operands, MatrixView<const float> query,
                      MatrixView<const float> weights, const GeneralGradients<float>& gradients,
                      ThreadPool* pool = nullptr);
void general_backward(const GeneralOperands<double>& operands, MatrixView<const double> query,
                      MatrixView<const double> weights, const GeneralGradients<double>& gradients,
                      ThreadPool* pool = nullptr);

// --- concat
// --------------------------------------------------------------------------------------------------------
/// W [s; h] = W_s s + W_h h with W = [W_s | W_h]: additive attention whose keys W_h h are projected once a
/// sentence.
template <class T>
struct ConcatOperands {
  MatrixView<const T> state;   ///< [R, N]
  MatrixView<const T> W;       ///< [A, N + width of what keys were made from]
  const T* v = nullptr;        ///< [A]
  MatrixView<const T> keys;    ///< [S, A], of concat_keys
  MatrixView<const T> values;  ///< [S, E]
  std::span<const int64_t> offsets;
  std::span<const int32_t> sentences{};
};
template <class T>
struct ConcatGradients : ScoreGradients<T> {
  MatrixView<T> d_state;  ///< written, [R, N]
  MatrixView<T> d_W;  ///< added to, [A, N + ..]: the first N columns; the others are concat_keys_backward's
  T* d_v = nullptr;   ///< added to, [A]
  MatrixView<T> d_keys;   ///< added to, [S, A]
  MatrixView<T> d_query;  ///< written, [R, A]
};
/// keys [S, A] = h W_h' with W_h the last columns of W [A, N + width of h].
void concat_keys(MatrixView<const float> h, MatrixView<const float> W, MatrixView<float> keys);
void concat_keys(MatrixView<const double> h, MatrixView<const double> W, MatrixView<double> keys);
/// Adds to d_h (unless its data is null) and to the last columns of d_W.
void concat_keys_backward(MatrixView<const float> h, MatrixView<const float> W,
                          MatrixView<const float> d_keys, MatrixView<float> d_h, MatrixView<float> d_W);
void concat_keys_backward(MatrixView<const double> h, MatrixView<const double> W,
                          MatrixView<const double> d_keys, MatrixView<double> d_h, MatrixView<double> d_W);
/// `query` [R, A] = s W_s' is written.
void concat_forward(const ConcatOperands<float>& operands, MatrixView<float> query, MatrixView<float> weights,
                    MatrixView<float> context, ThreadPool* pool = nullptr);
void concat_forward(const ConcatOperands<double>& operands, MatrixView<double> query,
                    MatrixView<double> weights, MatrixView<double> context, ThreadPool* pool = nullptr);
void concat_backward(const ConcatOperands<float>& operands, MatrixView<const float> query,
                     MatrixView<const float> weights, const ConcatGradients<float>& gradients,
                     ThreadPool* pool = nullptr);
void concat_backward(const ConcatOperands<double>& operands, MatrixView<const double> query,
                     MatrixView<const double> weights, const ConcatGradients<double>& gradients,
                     ThreadPool* pool = nullptr);

// --- location
// ------------------------------------------------------------------------------------------------------
/// Scores from the state alone, one for each of the first L positions; later ones have weight 0.
template <class T>
struct LocationOperands {
  MatrixView<const T> state;   ///< [R, N]
  MatrixView<const T> W;       ///< [L, N]
  MatrixView<const T> values;  ///< [S, E]
  std::span<const int64_t> offsets;
  std::span<const int32_t> sentences{};
};
template <class T>
struct LocationGradients : ScoreGradients<T> {
  MatrixView<T> d_state;   ///< written, [R, N]
  MatrixView<T> d_W;       ///< added to, [L, N]
  MatrixView<T> d_scores;  ///< written, [R, >= longest S]
};
/// Entries of `weights` behind a sentence's, up to the longest, become 0.
void location_forward(const LocationOperands<float>& operands, MatrixView<float> weights,
                      MatrixView<float> context, ThreadPool* pool = nullptr);
void location_forward(const LocationOperands<double>& operands, MatrixView<double> weights,
                      MatrixView<double> context, ThreadPool* pool = nullptr);
void location_backward(const LocationOperands<float>& operands, MatrixView<const float> weights,
                       const LocationGradients<float>& gradients, ThreadPool* pool = nullptr);
void location_backward(const LocationOperands<double>& operands, MatrixView<const double> weights,
                       const LocationGradients<double>& gradients, ThreadPool* pool = nullptr);

}  // namespace regard::attention
