#include "regard/attention/intra.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "regard/attention/ragged.h"
#include "regard/attention/source_rows.h"
#include "regard/simd/rows.h"

namespace regard::attention {
namespace {

const char* const kName = "intra-temporal attention";

template <class T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

template <class T>
RaggedSources sources(const IntraOperands<T>& o) {
  return {o.offsets, o.sentences};
}

template <class T>
SourceRows<T> rows_of(const MatrixView<T>& x, const RaggedSources& from, int64_t i) {
  return {x.row(from.begin(i)), from.length(i), x.columns, x.row_stride};
}

/// L_{t-1} of a row's position.
template <class T>
T earlier(const IntraOperands<T>& o, int64_t i, int64_t s) {
  return o.before.data ? o.before(i, s) : kNothing<T>;
}

/// log(exp(a) + exp(b))
template <class T>
T log_add(T a, T b) {
  if (a == kNothing<T>) return b;
  if (b == kNothing<T>) return a;
  const T largest = a > b ? a : b;
  return a == b ? largest + std::log(T{2}) : largest + std::log1p(std::exp(-std::abs(a - b)));
}

template <class T, class U>
void check_row_matrix(const char* name, const MatrixView<U>& x, int64_t R, int64_t longest) {
  check_matrix(kName, name, x, R, std::max(longest, x.columns), "R, at least the longest S");
}

template <class T>
int64_t check_operands(const IntraOperands<T>& o, const MatrixView<const T>& weights) {
  const int64_t R = o.scores.rows;
  check_matrix(kName, "values", o.values, o.values.rows, o.values.columns, "S, E");
  const int64_t longest = sources(o).check(kName, R, o.values.rows);
  check_row_matrix<T>("scores", o.scores, R, longest);
  if (o.before.data) check_row_matrix<T>("before", o.before, R, longest);
  check_row_matrix<T>("weights", weights, R, longest);
  return longest;
}

template <class T>
void forward(const IntraOperands<T>& o, MatrixView<T> weights, MatrixView<T> context, MatrixView<T> after,
             ThreadPool* pool) {
  const int64_t R = o.scores.rows, longest = check_operands<T>(o, weights);
  check_matrix(kName, "context", context, R, o.values.columns, "R, E");
  check_row_matrix<T>("after", after, R, longest);
  const RaggedSources from = sources(o);
  for_parts(R, pool, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t S = from.length(i);
      T* const alpha = weights.row(i);
      for (int64_t s = 0; s < S; ++s) {
        const T e = o.scores(i, s), L = earlier(o, i, s);
        alpha[s] = L == kNothing<T> || e == kNothing<T> ? e : e - L;
        after(i, s) = log_add(L, e);
      }
      simd::softmax(alpha, alpha, S);
      weighted_sum(alpha, rows_of(o.values, from, i), context.row(i));
    }
  });
}

template <class T>
void check_gradients(const IntraOperands<T>& o, const IntraGradients<T>& g, int64_t longest) {
  const int64_t R = o.scores.rows;
  check_matrix(kName, "d_context", g.d_context, R, o.values.columns, "R, E");
  if (g.d_weights.data) check_row_matrix<T>("d_weights", g.d_weights, R, longest);
  if (g.d_after.data) check_row_matrix<T>("d_after", g.d_after, R, longest);
  if (g.d_before.data) check_row_matrix<T>("d_before", g.d_before, R, longest);
  check_row_matrix<T>("d_scores", g.d_scores, R, longest);
  if (g.d_values.data) check_matrix(kName, "d_values", g.d_values, o.values.rows, o.values.columns, "S, E");
}

template <class T>
void backward(const IntraOperands<T>& o, MatrixView<const T> weights, const IntraGradients<T>& g,
              ThreadPool* pool) {
  check_gradients(o, g, check_operands(o, weights));
  const RaggedSources from = sources(o);
  if (pool && from.repeat()) pool = nullptr;  // the same bits, without a race
  for_parts(o.scores.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t S = from.length(i);
      T* const de = g.d_scores.row(i);
      products(g.d_context.row(i), rows_of(o.values, from, i), de);  // c = sum_s alpha_s h_s
      if (g.d_weights.data) simd::add(de, g.d_weights.row(i), de, S);
      if (g.d_values.data) add_outer(weights.row(i), g.d_context.row(i), rows_of(g.d_values, from, i));
      simd::softmax_backward(weights.row(i), de, de, S);  // alpha = softmax(e - L_{t-1})
      for (int64_t s = 0; s < S; ++s) {
        const T e = o.scores(i, s), L = earlier(o, i, s), after = log_add(L, e);
        const T d_after = g.d_after.data && after != kNothing<T> ? g.d_after(i, s) : T{0};
        const bool subtracted = L != kNothing<T> && e != kNothing<T>;
        const T dL = (subtracted ? -de[s] : T{0}) + (d_after != 0 ? d_after * std::exp(L - after) : T{0});
        if (d_after != 0) de[s] += d_after * std::exp(e - after);  // L_t = log(exp(L_{t-1}) + exp(e))
        if (g.d_before.data) g.d_before(i, s) = dL;
      }
    }
  });
}

}  // namespace

void intra_forward(const IntraOperands<float>& operands, MatrixView<float> weights, MatrixView<float> context,
                   MatrixView<float> after, ThreadPool* pool) {
  forward(operands, weights, context, after, pool);
}
void intra_forward(const IntraOperands<double>& operands, MatrixView<double> weights,
                   MatrixView<double> context, MatrixView<double> after, ThreadPool* pool) {
  forward(operands, weights, context, after, pool);
}
void intra_backward(const IntraOperands<float>& operands, MatrixView<const float> weights,
                    const IntraGradients<float>& gradients, ThreadPool* pool) {
  backward(operands, weights, gradients, pool);
}
void intra_backward(const IntraOperands<double>& operands, MatrixView<const double> weights,
                    const IntraGradients<double>& gradients, ThreadPool* pool) {
  backward(operands, weights, gradients, pool);
}

}  // namespace regard::attention
