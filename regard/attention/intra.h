#pragma once
// Intra-temporal attention (Paulus, Xiong and Socher 2018, arXiv:1705.04304, 2.1): a source position that
// earlier steps of the decoder attended to is attended to less. One step t for many rows, from given scores
// e_ts:
//   e'_ts = exp(e_ts)                              where no earlier step scored s
//   e'_ts = exp(e_ts) / sum_{u < t} exp(e_us)      else
//   alpha_ts = e'_ts / sum_s e'_ts                 c_t = sum_s alpha_ts h_s
// in log space: with L_ts = log sum_{u <= t} exp(e_us), alpha_t = softmax(e_t - L_{t-1}).
//
// Letters, ragged sources, threads, bits and errors as in scores.h. A score of -infinity has weight 0.

#include <cstdint>
#include <span>

#include "regard/base/span.h"
#include "regard/base/thread_pool.h"

namespace regard::attention {

template <class T>
struct IntraOperands {
  MatrixView<const T> scores;  ///< e_t [R, >= longest S]
  MatrixView<const T>
      before;  ///< L_{t-1} [R, >= longest S], -infinity where nothing was scored; no data: step 1
  MatrixView<const T> values;  ///< [S, E]
  std::span<const int64_t> offsets;
  std::span<const int32_t> sentences{};
};

/// Writes weights [R, >= longest S], context [R, E] and after = L_t [R, >= longest S], which may be
/// `before`'s memory.
void intra_forward(const IntraOperands<float>& operands, MatrixView<float> weights, MatrixView<float> context,
                   MatrixView<float> after, ThreadPool* pool = nullptr);
void intra_forward(const IntraOperands<double>& operands, MatrixView<double> weights,
                   MatrixView<double> context, MatrixView<double> after, ThreadPool* pool = nullptr);

template <class T>
struct IntraGradients {
  MatrixView<const T> d_context;  ///< in, [R, E]
  MatrixView<const T> d_weights;  ///< in, [R, >= longest S], or no data
  MatrixView<const T> d_after;    ///< in, [R, >= longest S], or no data: later steps want nothing
  MatrixView<T> d_scores;         ///< written, [R, >= longest S]
  MatrixView<T> d_before;         ///< written, [R, >= longest S], or no data; may be d_after's memory
  MatrixView<T> d_values;         ///< added to, [S, E], or no data
};
/// From the forward's operands and weights (`before` as it was).
void intra_backward(const IntraOperands<float>& operands, MatrixView<const float> weights,
                    const IntraGradients<float>& gradients, ThreadPool* pool = nullptr);
void intra_backward(const IntraOperands<double>& operands, MatrixView<const double> weights,
                    const IntraGradients<double>& gradients, ThreadPool* pool = nullptr);

}  // namespace regard::attention
