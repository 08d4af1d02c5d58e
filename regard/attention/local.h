#pragma once
// Local attention (Luong, Pham and Manning 2015, arXiv:1508.04025, 3.2), one decoder step for many rows:
// softmax over the source positions s of a window |s - p_i| <= D around a centre p_i, positions counted from
// 0.
//   local-m   p_i = t                               alpha_is = softmax_s(e_is)
//   local-p   p_i = S sigmoid(v' tanh(W s_i))       alpha_is = softmax_s(e_is) exp(-(s - p_i)^2 / (2
//   sigma^2))
// with sigma = D / 2; alpha is not normalised again.  c_i = sum_s alpha_is h_s.
//
// Scores are given, or computed in the window alone: e_is = q_i . k_s, which is dot, and general if q = s W
// (scores.h). A window that lies outside its source is empty: weights, context and gradients 0.
//
// Letters, ragged sources, threads, bits and errors as in scores.h. A NaN centre makes its row NaN.

#include <cstdint>
#include <span>

#include "regard/base/span.h"
#include "regard/base/thread_pool.h"

namespace regard::attention {

template <class T>
struct LocalOperands {
  MatrixView<const T> query;   ///< [R, K]; no data: `scores` are given
  MatrixView<const T> keys;    ///< [S, K]; likewise
  MatrixView<const T> scores;  ///< [R, >= longest S] if there is no query
  MatrixView<const T> values;  ///< [S, E]
  std::span<const T> centres;  ///< [R]
  int64_t half_width = 0;      ///< D >= 0
  bool gaussian = false;       ///< local-p's factor; then D >= 1
  std::span<const int64_t> offsets;
  std::span<const int32_t> sentences{};
};

/// weights [R, >= longest S]: alpha, 0 outside the window. `softmax` [R, 2 D + 1]: before the factor, the
/// window's first position first, kept for backward; what a window at an edge leaves over becomes 0. context
/// [R, E].
void local_forward(const LocalOperands<float>& operands, MatrixView<float> softmax, MatrixView<float> weights,
                   MatrixView<float> context, ThreadPool* pool = nullptr);
void local_forward(const LocalOperands<double>& operands, MatrixView<double> softmax,
                   MatrixView<double> weights, MatrixView<double> context, ThreadPool* pool = nullptr);

template <class T>
struct LocalGradients {
  MatrixView<const T> d_context;  ///< in, [R, E]
  MatrixView<const T> d_weights;  ///< in, [R, S], or no data
  MatrixView<T> d_query;          ///< written, [R, K], if there is a query
  MatrixView<T> d_keys;           ///< added to, [S, K], likewise
  MatrixView<T> d_scores;         ///< written, [R, >= longest S], 0 outside the window, if scores are given
  MatrixView<T> d_values;         ///< added to, [S, E], or no data
  std::span<T> d_centres{};  ///< written, [R], or empty; 0 without the Gaussian (a window moves in steps)
};
/// From the forward's operands and `softmax`.
void local_backward(const LocalOperands<float>& operands, MatrixView<const float> softmax,
                    const LocalGradients<float>& gradients, ThreadPool* pool = nullptr);
void local_backward(const LocalOperands<double>& operands, MatrixView<const double> softmax,
                    const LocalGradients<double>& gradients, ThreadPool* pool = nullptr);

/// Local-p's centres: p_i = S_i sigmoid(v' tanh(W s_i)) with S_i the length of row i's sentence.
template <class T>
struct CentreOperands {
  MatrixView<const T> state;  ///< [R, N]
  MatrixView<const T> W;      ///< [A, N]
  const T* v = nullptr;       ///< [A]
  std::span<const int64_t> offsets;
  std::span<const int32_t> sentences{};
};
/// Writes hidden [R, A] = tanh(s W'), kept for backward, and centres [R].
void centres_forward(const CentreOperands<float>& operands, MatrixView<float> hidden,
                     std::span<float> centres);
void centres_forward(const CentreOperands<double>& operands, MatrixView<double> hidden,
                     std::span<double> centres);

template <class T>
struct CentreGradients {
  std::span<const T> d_centres;  ///< in, [R]
  MatrixView<T> d_state;         ///< written, [R, N]
  MatrixView<T> d_W;             ///< added to, [A, N]
  T* d_v = nullptr;              ///< added to, [A]
  MatrixView<T> d_hidden;        ///< written, [R, A]
};
void centres_backward(const CentreOperands<float>& operands, MatrixView<const float> hidden,
                      std::span<const float> centres, const CentreGradients<float>& gradients);
void centres_backward(const CentreOperands<double>& operands, MatrixView<const double> hidden,
                      std::span<const double> centres, const CentreGradients<double>& gradients);

}  // namespace regard::attention
