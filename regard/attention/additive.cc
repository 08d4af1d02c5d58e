// Additive attention over ragged sources: checks, the sharing out of rows, and the choice of a row's kernel.

#include "regard/attention/additive.h"

#include <algorithm>

#include "regard/attention/additive_f32.h"
#include "regard/attention/additive_reference.h"
#include "regard/attention/ragged.h"
#include "regard/base/aligned_buffer.h"
#include "regard/simd/rows.h"

namespace regard::attention {
namespace {

const char* const kName = "additive attention";

using reference::AdditiveRow;
using reference::AdditiveRowGradients;

template <class T>
RaggedSources sources(const AdditiveOperands<T>& o) {
  return {o.offsets, o.sentences};
}

/// Checks everything that both directions share; weights are [R, >= longest S].
template <class T, class W>
void check_operands(const AdditiveOperands<T>& o, const MatrixView<W>& weights) {
  const int64_t R = o.query.rows, A = o.query.columns;
  check_matrix(kName, "query", o.query, R, A, "R, A");
  check_matrix(kName, "keys", o.keys, o.keys.rows, A, "S, A");
  check_matrix(kName, "values", o.values, o.keys.rows, o.values.columns, "S, E");
  const int64_t longest = sources(o).check(kName, R, o.keys.rows);
  check_matrix(kName, "weights", weights, R, std::max(longest, weights.columns), "R, at least the longest S");
}

template <class T>
AdditiveRow<T> row_operands(const AdditiveOperands<T>& o, int64_t i) {
  const RaggedSources from = sources(o);
  return {.q = o.query.row(i),
          .keys = o.keys.row(from.begin(i)),
          .values = o.values.row(from.begin(i)),
          .v = o.v,
          .S = from.length(i),
          .A = o.query.columns,
          .E = o.values.columns,
          .key_stride = o.keys.row_stride,
          .value_stride = o.values.row_stride};
}

template <class T>
AdditiveRowGradients<T> row_gradients(const AdditiveOperands<T>& o, const AdditiveGradients<T>& g, int64_t i,
                                      T* dv) {
  const int64_t begin = sources(o).begin(i);
  return {.dc = g.d_context.row(i),
          .dalpha = g.d_weights.data ? g.d_weights.row(i) : nullptr,
          .dq = g.d_query.row(i),
          .dkeys = g.d_keys.row(begin),
          .dvalues = g.d_values.data ? g.d_values.row(begin) : nullptr,
          .dv = dv,
          .dkey_stride = g.d_keys.row_stride,
          .dvalue_stride = g.d_values.row_stride};
}

void forward_row(const AdditiveRow<float>& row, float* alpha, float* c) {
  additive_forward_row(row, alpha, c);
}
void forward_row(const AdditiveRow<double>& row, double* alpha, double* c) {
  reference::additive_forward(row, alpha, c);
}
void backward_row(const AdditiveRow<float>& row, const float* alpha, const AdditiveRowGradients<float>& d) {
  additive_backward_row(row, alpha, d);
}
void backward_row(const AdditiveRow<double>& row, const double* alpha,
                  const AdditiveRowGradients<double>& d) {
  reference::additive_backward(row, alpha, d);
}

template <class T>
void forward(const AdditiveOperands<T>& o, MatrixView<T> weights, MatrixView<T> context, ThreadPool* pool) {
  check_operands(o, weights);
  check_matrix(kName, "context", context, o.query.rows, o.values.columns, "R, E");
  for_parts(o.query.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) forward_row(row_operands(o, i), weights.row(i), context.row(i));
  });
}

template <class T>
void backward(const AdditiveOperands<T>& o, MatrixView<const T> weights, const AdditiveGradients<T>& g,
              ThreadPool* pool) {
  const int64_t R = o.query.rows, A = o.query.columns, E = o.values.columns;
  check_operands(o, weights);
  check_matrix(kName, "d_context", g.d_context, R, E, "R, E");
  if (g.d_weights.data) check_matrix(kName, "d_weights", g.d_weights, R, weights.columns, "R, S");
  check_matrix(kName, "d_query", g.d_query, R, A, "R, A");
  check_matrix(kName, "d_keys", g.d_keys, o.keys.rows, A, "S, A");
  if (g.d_values.data) check_matrix(kName, "d_values", g.d_values, o.values.rows, E, "S, E");
  // d_v is summed part by part, then over the parts in order: the same bits for every number of threads.
  if (pool && sources(o).repeat()) pool = nullptr;  // the same bits, without a race
  const int64_t parts = parts_of(R);
  AlignedBuffer<T> dv(parts * A);
  for_parts(R, pool, [&](int64_t p, int64_t first, int64_t last) {
    T* part_dv = dv.data() + p * A;
    std::fill(part_dv, part_dv + A, T{0});
    for (int64_t i = first; i < last; ++i)
      backward_row(row_operands(o, i), weights.row(i), row_gradients(o, g, i, part_dv));
  });
  simd::add_column_sums(dv.data(), parts, A, g.d_v, A);
}

}  // namespace

void additive_forward(const AdditiveOperands<float>& operands, MatrixView<float> weights,
                      MatrixView<float> context, ThreadPool* pool) {
  forward(operands, weights, context, pool);
}

void additive_forward(const AdditiveOperands<double>& operands, MatrixView<double> weights,
                      MatrixView<double> context, ThreadPool* pool) {
  forward(operands, weights, context, pool);
}

void additive_backward(const AdditiveOperands<float>& operands, MatrixView<const float> weights,
                       const AdditiveGradients<float>& gradients, ThreadPool* pool) {
  backward(operands, weights, gradients, pool);
}

void additive_backward(const AdditiveOperands<double>& operands, MatrixView<const double> weights,
                       const AdditiveGradients<double>& gradients, ThreadPool* pool) {
  backward(operands, weights, gradients, pool);
}

}  // namespace regard::attention
