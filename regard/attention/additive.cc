// Additive attention over ragged sources: checks, the sharing out of rows, and the choice of a row's kernel.

#include "regard/attention/additive.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "regard/attention/additive_f32.h"
#include "regard/attention/additive_reference.h"
#include "regard/base/aligned_buffer.h"
#include "regard/base/error.h"
#include "regard/simd/rows.h"

namespace regard::attention {
namespace {

constexpr int64_t kRowsPerPart = 4;

using reference::AdditiveRow;
using reference::AdditiveRowGradients;

template <class T>
void check(const char* name, const MatrixView<T>& view, int64_t rows, int64_t columns, const char* letters) {
  const std::array<int64_t, 2> shape = {view.rows, view.columns}, expected = {rows, columns};
  if (shape != expected)
    throw ShapeError(std::string("[additive attention] ") + name + " " + shape_text(shape) + ", expected " +
                     shape_text(expected) + " (" + letters + ")");
  if (view.columns > 1 && view.column_stride != 1)
    throw ShapeError(std::string("[additive attention] ") + name + " has column stride " +
                     std::to_string(view.column_stride) + ", expected 1");
}

template <class T>
int64_t sentence_of(const AdditiveOperands<T>& o, int64_t row) {
  return o.sentences.empty() ? row : o.sentences[static_cast<size_t>(row)];
}

/// Checks everything that both directions share; weights are [R, >= longest S].
template <class T, class W>
void check_operands(const AdditiveOperands<T>& o, const MatrixView<W>& weights) {
  const int64_t R = o.query.rows, A = o.query.columns;
  if (o.offsets.empty() || o.offsets.front() < 0 || !std::is_sorted(o.offsets.begin(), o.offsets.end()))
    throw ShapeError("[additive attention] offsets must hold B + 1 numbers from 0 upwards that never fall");
  const auto B = static_cast<int64_t>(o.offsets.size()) - 1;
  check("query", o.query, R, A, "R, A");
  check("keys", o.keys, o.keys.rows, A, "S, A");
  check("values", o.values, o.keys.rows, o.values.columns, "S, E");
  if (o.offsets.back() > o.keys.rows)
    throw ShapeError("[additive attention] offsets end at " + std::to_string(o.offsets.back()) +
                     ", but keys have " + std::to_string(o.keys.rows) + " rows (S)");
  if (!o.sentences.empty() && static_cast<int64_t>(o.sentences.size()) != R)
    throw ShapeError("[additive attention] sentences [" + std::to_string(o.sentences.size()) +
                     "], expected [" + std::to_string(R) + "] (R)");
  int64_t longest = 0;
  for (int64_t i = 0; i < R; ++i) {
    const int64_t b = sentence_of(o, i);
    if (b < 0 || b >= B)
      throw ShapeError("[additive attention] row " + std::to_string(i) + " looks at sentence " +
                       std::to_string(b) + " of " + std::to_string(B));
    const auto s = static_cast<size_t>(b);
    longest = std::max(longest, o.offsets[s + 1] - o.offsets[s]);
  }
  check("weights", weights, R, std::max(longest, weights.columns), "R, at least the longest S");
}

/// Whether two rows look at the same sentence, so that they add to the same gradients.
template <class T>
bool sentences_repeat(const AdditiveOperands<T>& o) {
  std::vector<bool> seen(o.offsets.size());
  for (const int32_t b : o.sentences) {
    if (seen[static_cast<size_t>(b)]) return true;
    seen[static_cast<size_t>(b)] = true;
  }
  return false;
}

template <class T>
AdditiveRow<T> row_operands(const AdditiveOperands<T>& o, int64_t i) {
  const auto b = static_cast<size_t>(sentence_of(o, i));
  const int64_t begin = o.offsets[b];
  return {.q = o.query.row(i),
          .keys = o.keys.row(begin),
          .values = o.values.row(begin),
          .v = o.v,
          .S = o.offsets[b + 1] - begin,
          .A = o.query.columns,
          .E = o.values.columns,
          .key_stride = o.keys.row_stride,
          .value_stride = o.values.row_stride};
}

template <class T>
AdditiveRowGradients<T> row_gradients(const AdditiveOperands<T>& o, const AdditiveGradients<T>& g, int64_t i,
                                      T* dv) {
  const int64_t begin = o.offsets[static_cast<size_t>(sentence_of(o, i))];
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

/// Calls body(part, first row, last row) for parts of kRowsPerPart rows.
template <class Body>
void for_parts(int64_t rows, ThreadPool* pool, const Body& body) {
  const int64_t parts = (rows + kRowsPerPart - 1) / kRowsPerPart;
  const auto part = [&](int64_t p) { body(p, p * kRowsPerPart, std::min(rows, (p + 1) * kRowsPerPart)); };
  if (pool)
    pool->parallel_for(parts, part);
  else
    for (int64_t p = 0; p < parts; ++p) part(p);
}

template <class T>
void forward(const AdditiveOperands<T>& o, MatrixView<T> weights, MatrixView<T> context, ThreadPool* pool) {
  check_operands(o, weights);
  check("context", context, o.query.rows, o.values.columns, "R, E");
  for_parts(o.query.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) forward_row(row_operands(o, i), weights.row(i), context.row(i));
  });
}

template <class T>
void backward(const AdditiveOperands<T>& o, MatrixView<const T> weights, const AdditiveGradients<T>& g,
              ThreadPool* pool) {
  const int64_t R = o.query.rows, A = o.query.columns, E = o.values.columns;
  check_operands(o, weights);
  check("d_context", g.d_context, R, E, "R, E");
  if (g.d_weights.data) check("d_weights", g.d_weights, R, weights.columns, "R, S");
  check("d_query", g.d_query, R, A, "R, A");
  check("d_keys", g.d_keys, o.keys.rows, A, "S, A");
  if (g.d_values.data) check("d_values", g.d_values, o.values.rows, E, "S, E");
  // d_v is summed part by part, then over the parts in order: the same bits for every number of threads.
  if (pool && sentences_repeat(o)) pool = nullptr;  // the same bits, without a race
  const int64_t parts = (R + kRowsPerPart - 1) / kRowsPerPart;
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
