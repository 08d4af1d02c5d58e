// Dot, general, concat and location scores: checks, projections of states, and rows shared out over threads.

#include "regard/attention/scores.h"

#include <algorithm>

#include "regard/attention/additive.h"
#include "regard/attention/ragged.h"
#include "regard/attention/source_rows.h"
#include "regard/base/aligned_buffer.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/rows.h"

namespace regard::attention {
namespace {

template <class Operands>
RaggedSources sources(const Operands& o) {
  return {o.offsets, o.sentences};
}

template <class T>
SourceRows<T> rows_of(const MatrixView<T>& x, const RaggedSources& from, int64_t i) {
  return {x.row(from.begin(i)), from.length(i), x.columns, x.row_stride};
}

template <class T>
void check_score_gradients(const std::string& name, const ScoreGradients<T>& g,
                           const MatrixView<const T>& values, const MatrixView<const T>& weights) {
  check_matrix(name, "d_context", g.d_context, weights.rows, values.columns, "R, E");
  if (g.d_weights.data) check_matrix(name, "d_weights", g.d_weights, weights.rows, weights.columns, "R, S");
  if (g.d_values.data) check_matrix(name, "d_values", g.d_values, values.rows, values.columns, "S, E");
}

/// alpha = softmax(e), in place, and c = sum_j alpha_j h_j.
template <class T>
void attend(const SourceRows<const T>& values, T* alpha, T* c) {
  simd::softmax(alpha, alpha, values.count);
  weighted_sum(alpha, values, c);
}

/// Differentiates `attend` for row i: writes de, adds to the values' gradient.
template <class T>
void attend_backward(const RaggedSources& from, const MatrixView<const T>& values, const ScoreGradients<T>& g,
                     int64_t i, const T* alpha, T* de) {
  const SourceRows<const T> h = rows_of(values, from, i);
  products(g.d_context.row(i), h, de);  // c = sum_j alpha_j h_j
  if (g.d_weights.data) simd::add(de, g.d_weights.row(i), de, h.count);
  if (g.d_values.data) add_outer(alpha, g.d_context.row(i), rows_of(g.d_values, from, i));
  simd::softmax_backward(alpha, de, de, h.count);  // alpha = softmax(e)
}

template <class T>
T* scratch(int64_t size) {
  static thread_local AlignedBuffer<T> buffer;
  return buffer.grow(size);
}

// --- dot
template <class T>
int64_t check_dot(const DotOperands<T>& o, const MatrixView<const T>& weights) {
  const std::string name = "dot attention";
  const int64_t R = o.query.rows, K = o.query.columns;
  check_matrix(name, "query", o.query, R, K, "R, K");
  check_matrix(name, "keys", o.keys, o.keys.rows, K, "S, K");
  check_matrix(name, "values", o.values, o.keys.rows, o.values.columns, "S, E");
  const int64_t longest = sources(o).check(name, R, o.keys.rows);
  check_matrix(name, "weights", weights, R, std::max(longest, weights.columns), "R, at least the longest S");
  return longest;
}

template <class T>
void forward(const DotOperands<T>& o, MatrixView<T> weights, MatrixView<T> context, ThreadPool* pool) {
  check_dot<T>(o, weights);
  check_matrix("dot attention", "context", context, o.query.rows, o.values.columns, "R, E");
  const RaggedSources from = sources(o);
  for_parts(o.query.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      products(o.query.row(i), rows_of(o.keys, from, i), weights.row(i));  // e_j = q . k_j
      attend(rows_of(o.values, from, i), weights.row(i), context.row(i));
    }
  });
}

template <class T>
void backward(const DotOperands<T>& o, MatrixView<const T> weights, const DotGradients<T>& g,
              ThreadPool* pool) {
  const std::string name = "dot attention";
  const int64_t longest = check_dot(o, weights);
  check_score_gradients(name, g, o.values, weights);
  check_matrix(name, "d_query", g.d_query, o.query.rows, o.query.columns, "R, K");
  check_matrix(name, "d_keys", g.d_keys, o.keys.rows, o.keys.columns, "S, K");
  const RaggedSources from = sources(o);
  if (pool && from.repeat()) pool = nullptr;  // the same bits, without a race
  for_parts(o.query.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    T* const de = scratch<T>(longest);
    for (int64_t i = first; i < last; ++i) {
      attend_backward(from, o.values, g, i, weights.row(i), de);
      weighted_sum(de, rows_of(o.keys, from, i), g.d_query.row(i));  // e_j = q . k_j
      add_outer(de, o.query.row(i), rows_of(g.d_keys, from, i));
    }
  });
}

// --- general
template <class T>
DotOperands<T> projected(const GeneralOperands<T>& o, const MatrixView<const T>& query) {
  return {query, o.keys, o.values, o.offsets, o.sentences};
}

template <class T>
void check_general(const GeneralOperands<T>& o, const MatrixView<const T>& query) {
  const std::string name = "general attention";
  check_matrix(name, "state", o.state, o.state.rows, o.state.columns, "R, N");
  check_matrix(name, "W", o.W, o.state.columns, o.keys.columns, "N, K");
  check_matrix(name, "query", query, o.state.rows, o.keys.columns, "R, K");
}

template <class T>
void forward(const GeneralOperands<T>& o, MatrixView<T> query, MatrixView<T> weights, MatrixView<T> context,
             ThreadPool* pool) {
  check_general<T>(o, query);
  gemm::multiply(o.state, o.W, query);
  forward(projected<T>(o, query), weights, context, pool);
}

template <class T>
void backward(const GeneralOperands<T>& o, MatrixView<const T> query, MatrixView<const T> weights,
              const GeneralGradients<T>& g, ThreadPool* pool) {
  const std::string name = "general attention";
  check_general(o, query);
  check_matrix(name, "d_state", g.d_state, o.state.rows, o.state.columns, "R, N");
  check_matrix(name, "d_W", g.d_W, o.W.rows, o.W.columns, "N, K");
  backward(projected(o, query), weights,
           DotGradients<T>{{g.d_context, g.d_weights, g.d_values}, g.d_query, g.d_keys}, pool);
  const MatrixView<const T> d_query = g.d_query;
  gemm::multiply(d_query, o.W.transposed(), g.d_state);  // q = s W
  gemm::multiply(o.state.transposed(), d_query, g.d_W, {.accumulate = true});
}

// --- concat
template <class T>
void check_concat_keys(const MatrixView<const T>& h, const MatrixView<const T>& W,
                       const MatrixView<const T>& keys) {
  const std::string name = "concat attention";
  check_matrix(name, "h", h, h.rows, h.columns, "S, E");
  check_matrix(name, "W", W, W.rows, std::max(W.columns, h.columns), "A, N + E");
  check_matrix(name, "keys", keys, h.rows, W.rows, "S, A");
}

template <class T>
MatrixView<T> last_columns(const MatrixView<T>& x, int64_t count) {
  return x.column_range(x.columns - count, x.columns);
}

template <class T>
void keys_forward(const MatrixView<const T>& h, const MatrixView<const T>& W, const MatrixView<T>& keys) {
  check_concat_keys<T>(h, W, keys);
  gemm::multiply(h, last_columns(W, h.columns).transposed(), keys);
}

template <class T>
void keys_backward(const MatrixView<const T>& h, const MatrixView<const T>& W,
                   const MatrixView<const T>& d_keys, const MatrixView<T>& d_h, const MatrixView<T>& d_W) {
  check_concat_keys(h, W, d_keys);
  check_matrix("concat attention", "d_W", d_W, W.rows, W.columns, "A, N + E");
  if (d_h.data) {
    check_matrix("concat attention", "d_h", d_h, h.rows, h.columns, "S, E");
    gemm::multiply(d_keys, last_columns(W, h.columns), d_h, {.accumulate = true});
  }
  gemm::multiply(d_keys.transposed(), h, last_columns(d_W, h.columns), {.accumulate = true});
}

template <class T>
AdditiveOperands<T> projected(const ConcatOperands<T>& o, const MatrixView<const T>& query) {
  return {query, o.keys, o.values, o.v, o.offsets, o.sentences};
}

template <class T>
void check_concat(const ConcatOperands<T>& o, const MatrixView<const T>& query) {
  const std::string name = "concat attention";
  check_matrix(name, "state", o.state, o.state.rows, o.state.columns, "R, N");
  check_matrix(name, "W", o.W, o.keys.columns, std::max(o.W.columns, o.state.columns), "A, N + E");
  check_matrix(name, "query", query, o.state.rows, o.keys.columns, "R, A");
}

template <class T>
void forward(const ConcatOperands<T>& o, MatrixView<T> query, MatrixView<T> weights, MatrixView<T> context,
             ThreadPool* pool) {
  check_concat<T>(o, query);
  gemm::multiply(o.state, o.W.column_range(0, o.state.columns).transposed(), query);
  additive_forward(projected<T>(o, query), weights, context, pool);
}

template <class T>
void backward(const ConcatOperands<T>& o, MatrixView<const T> query, MatrixView<const T> weights,
              const ConcatGradients<T>& g, ThreadPool* pool) {
  const std::string name = "concat attention";
  const int64_t N = o.state.columns;
  check_concat(o, query);
  check_matrix(name, "d_state", g.d_state, o.state.rows, N, "R, N");
  check_matrix(name, "d_W", g.d_W, o.W.rows, o.W.columns, "A, N + E");
  additive_backward(projected(o, query), weights,
                    AdditiveGradients<T>{g.d_context, g.d_weights, g.d_query, g.d_keys, g.d_values, g.d_v},
                    pool);
  const MatrixView<const T> d_query = g.d_query;
  gemm::multiply(d_query, o.W.column_range(0, N), g.d_state);  // q = s W_s'
  gemm::multiply(d_query.transposed(), o.state, g.d_W.column_range(0, N), {.accumulate = true});
}

// --- location
template <class T>
int64_t check_location(const LocationOperands<T>& o, const MatrixView<const T>& weights) {
  const std::string name = "location attention";
  check_matrix(name, "state", o.state, o.state.rows, o.state.columns, "R, N");
  check_matrix(name, "W", o.W, o.W.rows, o.state.columns, "L, N");
  check_matrix(name, "values", o.values, o.values.rows, o.values.columns, "S, E");
  const int64_t longest = sources(o).check(name, o.state.rows, o.values.rows);
  check_matrix(name, "weights", weights, o.state.rows, std::max(longest, weights.columns),
               "R, at least the longest S");
  return longest;
}

template <class T>
void forward(const LocationOperands<T>& o, MatrixView<T> weights, MatrixView<T> context, ThreadPool* pool) {
  const int64_t longest = check_location<T>(o, weights), scored = std::min(longest, o.W.rows);
  check_matrix("location attention", "context", context, o.state.rows, o.values.columns, "R, E");
  gemm::multiply(o.state, o.W.row_range(0, scored).transposed(), weights.column_range(0, scored));
  const RaggedSources from = sources(o);
  for_parts(o.state.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      SourceRows<const T> values = rows_of(o.values, from, i);
      values.count = std::min(values.count, scored);
      attend(values, weights.row(i), context.row(i));
      std::fill(weights.row(i) + values.count, weights.row(i) + longest, T{0});
    }
  });
}

template <class T>
void backward(const LocationOperands<T>& o, MatrixView<const T> weights, const LocationGradients<T>& g,
              ThreadPool* pool) {
  const std::string name = "location attention";
  const int64_t longest = check_location(o, weights), scored = std::min(longest, o.W.rows);
  check_score_gradients(name, g, o.values, weights);
  check_matrix(name, "d_state", g.d_state, o.state.rows, o.state.columns, "R, N");
  check_matrix(name, "d_W", g.d_W, o.W.rows, o.W.columns, "L, N");
  check_matrix(name, "d_scores", g.d_scores, o.state.rows, std::max(longest, g.d_scores.columns),
               "R, at least the longest S");
  const RaggedSources from = sources(o);
  if (pool && from.repeat()) pool = nullptr;  // the same bits, without a race
  for_parts(o.state.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      T* const de = g.d_scores.row(i);
      attend_backward(from, o.values, g, i, weights.row(i), de);  // weight 0 without a score: gradient 0
      std::fill(de + from.length(i), de + longest, T{0});
    }
  });
  const MatrixView<const T> de = g.d_scores.column_range(0, scored);
  gemm::multiply(de, o.W.row_range(0, scored), g.d_state);  // e = W s
  gemm::multiply(de.transposed(), o.state, g.d_W.row_range(0, scored), {.accumulate = true});
}

}  // namespace

void dot_forward(const DotOperands<float>& operands, MatrixView<float> weights, MatrixView<float> context,
                 ThreadPool* pool) {
  forward(operands, weights, context, pool);
}
void dot_backward(const DotOperands<float>& operands, MatrixView<const float> weights,
                  const DotGradients<float>& gradients, ThreadPool* pool) {
  backward(operands, weights, gradients, pool);
}
void general_forward(const GeneralOperands<float>& operands, MatrixView<float> query,
                     MatrixView<float> weights, MatrixView<float> context, ThreadPool* pool) {
  forward(operands, query, weights, context, pool);
}
void general_backward(const GeneralOperands<float>& operands, MatrixView<const float> query,
                      MatrixView<const float> weights, const GeneralGradients<float>& gradients,
                      ThreadPool* pool) {
  backward(operands, query, weights, gradients, pool);
}
void concat_keys(MatrixView<const float> h, MatrixView<const float> W, MatrixView<float> keys) {
  keys_forward(h, W, keys);
}
void concat_keys_backward(MatrixView<const float> h, MatrixView<const float> W,
                          MatrixView<const float> d_keys, MatrixView<float> d_h, MatrixView<float> d_W) {
  keys_backward(h, W, d_keys, d_h, d_W);
}
void concat_forward(const ConcatOperands<float>& operands, MatrixView<float> query, MatrixView<float> weights,
                    MatrixView<float> context, ThreadPool* pool) {
  forward(operands, query, weights, context, pool);
}
void concat_backward(const ConcatOperands<float>& operands, MatrixView<const float> query,
                     MatrixView<const float> weights, const ConcatGradients<float>& gradients,
                     ThreadPool* pool) {
  backward(operands, query, weights, gradients, pool);
}
void location_forward(const LocationOperands<float>& operands, MatrixView<float> weights,
                      MatrixView<float> context, ThreadPool* pool) {
  forward(operands, weights, context, pool);
}
void location_backward(const LocationOperands<float>& operands, MatrixView<const float> weights,
                       const LocationGradients<float>& gradients, ThreadPool* pool) {
  backward(operands, weights, gradients, pool);
}

void dot_forward(const DotOperands<double>& operands, MatrixView<double> weights, MatrixView<double> context,
                 ThreadPool* pool) {
  forward(operands, weights, context, pool);
}
void dot_backward(const DotOperands<double>& operands, MatrixView<const double> weights,
                  const DotGradients<double>& gradients, ThreadPool* pool) {
  backward(operands, weights, gradients, pool);
}
void general_forward(const GeneralOperands<double>& operands, MatrixView<double> query,
                     MatrixView<double> weights, MatrixView<double> context, ThreadPool* pool) {
  forward(operands, query, weights, context, pool);
}
void general_backward(const GeneralOperands<double>& operands, MatrixView<const double> query,
                      MatrixView<const double> weights, const GeneralGradients<double>& gradients,
                      ThreadPool* pool) {
  backward(operands, query, weights, gradients, pool);
}
void concat_keys(MatrixView<const double> h, MatrixView<const double> W, MatrixView<double> keys) {
  keys_forward(h, W, keys);
}
void concat_keys_backward(MatrixView<const double> h, MatrixView<const double> W,
                          MatrixView<const double> d_keys, MatrixView<double> d_h, MatrixView<double> d_W) {
  keys_backward(h, W, d_keys, d_h, d_W);
}
void concat_forward(const ConcatOperands<double>& operands, MatrixView<double> query,
                    MatrixView<double> weights, MatrixView<double> context, ThreadPool* pool) {
  forward(operands, query, weights, context, pool);
}
void concat_backward(const ConcatOperands<double>& operands, MatrixView<const double> query,
                     MatrixView<const double> weights, const ConcatGradients<double>& gradients,
                     ThreadPool* pool) {
  backward(operands, query, weights, gradients, pool);
}
void location_forward(const LocationOperands<double>& operands, MatrixView<double> weights,
                      MatrixView<double> context, ThreadPool* pool) {
  forward(operands, weights, context, pool);
}
void location_backward(const LocationOperands<double>& operands, MatrixView<const double> weights,
                       const LocationGradients<double>& gradients, ThreadPool* pool) {
  backward(operands, weights, gradients, pool);
}

}  // namespace regard::attention
