#pragma once
// A table looked up softly and hard. With scores s_j = q . k_j:
//   soft    p = softmax(s / temperature),  out = sum_j p_j v_j
//   top-k   the same over the k largest scores alone
//   hard    out = v_j with the largest s_j
// Attention is the soft lookup; as the temperature goes to 0 it becomes the hard one. Equal largest scores:
// the soft limit shares the weight among them, top-k and hard take the lower index.
//
// Letters: R queries, S entries of the table, D width of queries and keys, E of values. Matrices that are
// written and the values have column stride 1. A row's result depends on its own query alone, to the bit. An
// empty table gives 0 and index -1; a NaN among a row's scores, or a score of +infinity in the soft lookups,
// makes the row NaN (hard and top-k: index -1). Safe from several threads. All throw ShapeError. R S (D + E)
// multiply-adds, R S scratch for top-k and hard in blocks of 64 rows.

#include <cstdint>
#include <span>

#include "regard/base/span.h"

namespace regard::attention {

template <class T>
struct LookupTable {
  MatrixView<const T> keys;    ///< [S, D]
  MatrixView<const T> values;  ///< [S, E]
};

/// q [R, D] -> weights p [R, S], out [R, E].  temperature >= 0; 0 is the limit.
void soft_lookup(MatrixView<const float> q, const LookupTable<float>& table, double temperature,
                 MatrixView<float> weights, MatrixView<float> out);
void soft_lookup(MatrixView<const double> q, const LookupTable<double>& table, double temperature,
                 MatrixView<double> weights, MatrixView<double> out);

/// From the forward's weights. d_q is written; d_keys and d_values are added to. At temperature 0 the weights
/// do not move, and the gradients of q and the keys are 0.
template <class T>
struct LookupGradients {
  MatrixView<const T> d_out;  ///< in, [R, E]
  MatrixView<T> d_q;          ///< [R, D]
  MatrixView<T> d_keys;       ///< [S, D]
  MatrixView<T> d_values;     ///< [S, E]
};
void soft_lookup_backward(MatrixView<const float> q, const LookupTable<float>& table, double temperature,
                          MatrixView<const float> weights, const LookupGradients<float>& gradients);
void soft_lookup_backward(MatrixView<const double> q, const LookupTable<double>& table, double temperature,
                          MatrixView<const double> weights, const LookupGradients<double>& gradients);

/// indices and weights [R, k], the largest score first; what a table of fewer entries leaves over: -1 and 0.
void top_k_lookup(MatrixView<const float> q, const LookupTable<float>& table, double temperature,
                  MatrixView<int64_t> indices, MatrixView<float> weights, MatrixView<float> out);
void top_k_lookup(MatrixView<const double> q, const LookupTable<double>& table, double temperature,
                  MatrixView<int64_t> indices, MatrixView<double> weights, MatrixView<double> out);

/// indices [R].
void hard_lookup(MatrixView<const float> q, const LookupTable<float>& table, std::span<int64_t> indices,
                 MatrixView<float> out);
void hard_lookup(MatrixView<const double> q, const LookupTable<double>& table, std::span<int64_t> indices,
                 MatrixView<double> out);

}  // namespace regard::attention
