// Local attention: checks, windows, and rows shared out over threads.

#include "regard/attention/local.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "regard/attention/ragged.h"
#include "regard/attention/source_rows.h"
#include "regard/base/aligned_buffer.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/rows.h"

namespace regard::attention {
namespace {

const char* const kName = "local attention";

template <class Operands>
RaggedSources sources(const Operands& o) {
  return {o.offsets, o.sentences};
}

/// The positions of a source that a row attends to: [begin, begin + count).
struct LocalWindow {
  int64_t begin = 0, count = 0;
};

/// The integers s of [0, length) with |s - p| <= D. For p = NaN the first ones, so that the NaN is seen.
template <class T>
LocalWindow window(T p, int64_t D, int64_t length) {
  if (std::isnan(p)) return {0, std::min(length, 2 * D + 1)};
  const double centre = static_cast<double>(p), reach = static_cast<double>(D),
               last = static_cast<double>(length - 1);
  if (!(centre + reach >= 0) || !(centre - reach <= last)) return {};
  const auto begin = static_cast<int64_t>(std::ceil(std::max(0., centre - reach)));
  const auto end = static_cast<int64_t>(std::floor(std::min(last, centre + reach))) + 1;
  return {begin, std::max<int64_t>(0, end - begin)};
}

/// exp(-(s - p)^2 / (2 sigma^2)), sigma = D / 2; 1 without the Gaussian, NaN for a NaN centre.
template <class T>
T factor(const LocalOperands<T>& o, T p, int64_t s) {
  if (!o.gaussian) return std::isnan(p) ? p : T{1};
  const T distance = static_cast<T>(s) - p, sigma = static_cast<T>(o.half_width) / 2;
  return std::exp(-distance * distance / (2 * sigma * sigma));
}

template <class T>
LocalWindow window_of(const LocalOperands<T>& o, int64_t i) {
  return window(o.centres[static_cast<size_t>(i)], o.half_width, sources(o).length(i));
}

template <class T>
SourceRows<T> rows_of(const MatrixView<T>& x, const RaggedSources& from, int64_t i, const LocalWindow& w) {
  return {x.row(from.begin(i) + w.begin), w.count, x.columns, x.row_stride};
}

void expect(bool fits, const char* name, int64_t size, int64_t expected, const char* letters) {
  if (!fits)
    throw ShapeError("[local attention] " + std::string(name) + " [" + std::to_string(size) +
                     "], expected [" + std::to_string(expected) + "] (" + letters + ")");
}

/// Checks what both directions share. The longest S.
template <class T>
int64_t check_operands(const LocalOperands<T>& o, const MatrixView<const T>& softmax) {
  const auto R = static_cast<int64_t>(o.centres.size());
  check_matrix(kName, "values", o.values, o.values.rows, o.values.columns, "S, E");
  const int64_t longest = sources(o).check(kName, R, o.values.rows);
  if (o.query.data) {
    check_matrix(kName, "query", o.query, R, o.query.columns, "R, K");
    check_matrix(kName, "keys", o.keys, o.values.rows, o.query.columns, "S, K");
  } else {
    check_matrix(kName, "scores", o.scores, R, std::max(longest, o.scores.columns),
                 "R, at least the longest S");
  }
  if (o.half_width < (o.gaussian ? 1 : 0))
    throw ShapeError("[local attention] half_width is " + std::to_string(o.half_width) +
                     ", expected at least " + (o.gaussian ? "1 with a Gaussian" : "0"));
  check_matrix(kName, "softmax", softmax, R, 2 * o.half_width + 1, "R, 2 D + 1");
  return longest;
}

template <class T>
void forward_row(const LocalOperands<T>& o, int64_t i, T* softmax, T* alpha, T* c) {
  const RaggedSources from = sources(o);
  const LocalWindow w = window_of(o, i);
  if (o.query.data)
    products(o.query.row(i), rows_of(o.keys, from, i, w), softmax);
  else if (w.count > 0)
    std::copy_n(o.scores.row(i) + w.begin, w.count, softmax);
  simd::softmax(softmax, softmax, w.count);
  std::fill(softmax + w.count, softmax + 2 * o.half_width + 1, T{0});
  std::fill(alpha, alpha + from.length(i), T{0});
  for (int64_t n = 0; n < w.count; ++n)
    alpha[w.begin + n] = softmax[n] * factor(o, o.centres[static_cast<size_t>(i)], w.begin + n);
  weighted_sum(alpha + w.begin, rows_of(o.values, from, i, w), c);
}

template <class T>
void forward(const LocalOperands<T>& o, MatrixView<T> softmax, MatrixView<T> weights, MatrixView<T> context,
             ThreadPool* pool) {
  const int64_t longest = check_operands<T>(o, softmax);
  check_matrix(kName, "weights", weights, softmax.rows, std::max(longest, weights.columns),
               "R, at least the longest S");
  check_matrix(kName, "context", context, softmax.rows, o.values.columns, "R, E");
  for_parts(softmax.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) forward_row(o, i, softmax.row(i), weights.row(i), context.row(i));
  });
}

/// Differentiates forward_row. `de` and `alpha` are scratch of 2 D + 1.
template <class T>
void backward_row(const LocalOperands<T>& o, const LocalGradients<T>& g, int64_t i, const T* softmax, T* de,
                  T* alpha) {
  const RaggedSources from = sources(o);
  const LocalWindow w = window_of(o, i);
  const T p = w.count > 0 ? o.centres[static_cast<size_t>(i)] : T{0},
          sigma = static_cast<T>(o.half_width) / 2;
  products(g.d_context.row(i), rows_of(o.values, from, i, w), de);  // c = sum_s alpha_s h_s
  if (g.d_weights.data) simd::add(de, g.d_weights.row(i) + w.begin, de, w.count);
  T dp = 0;
  for (int64_t n = 0; n < w.count; ++n) {  // alpha_s = softmax_s f_s
    const T f = factor(o, p, w.begin + n);
    alpha[n] = softmax[n] * f;
    if (o.gaussian) dp += de[n] * alpha[n] * (static_cast<T>(w.begin + n) - p) / (sigma * sigma);
    de[n] *= f;
  }
  if (!g.d_centres.empty()) g.d_centres[static_cast<size_t>(i)] = dp;
  if (g.d_values.data) add_outer(alpha, g.d_context.row(i), rows_of(g.d_values, from, i, w));
  simd::softmax_backward(softmax, de, de, w.count);
  if (o.query.data) {  // e_s = q . k_s
    weighted_sum(de, rows_of(o.keys, from, i, w), g.d_query.row(i));
    add_outer(de, o.query.row(i), rows_of(g.d_keys, from, i, w));
  } else {
    T* const d_scores = g.d_scores.row(i);
    std::fill(d_scores, d_scores + from.length(i), T{0});
    std::copy_n(de, w.count, d_scores + w.begin);
  }
}

template <class T>
void check_gradients(const LocalOperands<T>& o, const LocalGradients<T>& g, int64_t longest) {
  const auto R = static_cast<int64_t>(o.centres.size()), given = static_cast<int64_t>(g.d_centres.size());
  check_matrix(kName, "d_context", g.d_context, R, o.values.columns, "R, E");
  if (g.d_weights.data)
    check_matrix(kName, "d_weights", g.d_weights, R, std::max(longest, g.d_weights.columns), "R, S");
  if (g.d_values.data) check_matrix(kName, "d_values", g.d_values, o.values.rows, o.values.columns, "S, E");
  expect(given == 0 || given == R, "d_centres", given, R, "R");
  if (o.query.data) {
    check_matrix(kName, "d_query", g.d_query, R, o.query.columns, "R, K");
    check_matrix(kName, "d_keys", g.d_keys, o.keys.rows, o.keys.columns, "S, K");
  } else {
    check_matrix(kName, "d_scores", g.d_scores, R, std::max(longest, g.d_scores.columns),
                 "R, at least the longest S");
  }
}

template <class T>
void backward(const LocalOperands<T>& o, MatrixView<const T> softmax, const LocalGradients<T>& g,
              ThreadPool* pool) {
  check_gradients(o, g, check_operands(o, softmax));
  if (pool && sources(o).repeat()) pool = nullptr;  // the same bits, without a race
  for_parts(softmax.rows, pool, [&](int64_t, int64_t first, int64_t last) {
    static thread_local AlignedBuffer<T> buffer;
    T* const scratch = buffer.grow(2 * softmax.columns);
    for (int64_t i = first; i < last; ++i)
      backward_row(o, g, i, softmax.row(i), scratch, scratch + softmax.columns);
  });
}

template <class T>
void check_centres(const CentreOperands<T>& o, const MatrixView<const T>& hidden, size_t centres) {
  const int64_t R = o.state.rows;
  check_matrix(kName, "state", o.state, R, o.state.columns, "R, N");
  check_matrix(kName, "W", o.W, o.W.rows, o.state.columns, "A, N");
  check_matrix(kName, "hidden", hidden, R, o.W.rows, "R, A");
  expect(static_cast<int64_t>(centres) == R, "centres", static_cast<int64_t>(centres), R, "R");
  sources(o).check(kName, R, o.offsets.empty() ? 0 : o.offsets.back());
}

template <class T>
void forward_centres(const CentreOperands<T>& o, MatrixView<T> hidden, std::span<T> centres) {
  check_centres<T>(o, hidden, centres.size());
  gemm::multiply(o.state, o.W.transposed(), hidden);
  for (int64_t i = 0; i < hidden.rows; ++i) {
    simd::tanh(hidden.row(i), hidden.row(i), hidden.columns);
    T& p = centres[static_cast<size_t>(i)];
    p = simd::dot(o.v, hidden.row(i), hidden.columns);
    simd::sigmoid(&p, &p, 1);
    p *= static_cast<T>(sources(o).length(i));
  }
}

template <class T>
void backward_centres(const CentreOperands<T>& o, MatrixView<const T> hidden, std::span<const T> centres,
                      const CentreGradients<T>& g) {
  const int64_t R = o.state.rows, A = o.W.rows;
  check_centres(o, hidden, centres.size());
  expect(static_cast<int64_t>(g.d_centres.size()) == R, "d_centres", static_cast<int64_t>(g.d_centres.size()),
         R, "R");
  check_matrix(kName, "d_state", g.d_state, R, o.state.columns, "R, N");
  check_matrix(kName, "d_W", g.d_W, A, o.state.columns, "A, N");
  check_matrix(kName, "d_hidden", g.d_hidden, R, A, "R, A");
  for (int64_t i = 0; i < R; ++i) {
    const T S = static_cast<T>(sources(o).length(i)), p = centres[static_cast<size_t>(i)];
    const T dz = S > 0 ? g.d_centres[static_cast<size_t>(i)] * p * (1 - p / S) : T{0};  // p = S sigmoid(z)
    simd::axpy(dz, hidden.row(i), g.d_v, A);                                            // z = v' hidden
    simd::scale(dz, o.v, g.d_hidden.row(i), A);
    simd::tanh_backward(hidden.row(i), g.d_hidden.row(i), g.d_hidden.row(i), A);  // hidden = tanh(W s)
  }
  const MatrixView<const T> d_hidden = g.d_hidden;
  gemm::multiply(d_hidden, o.W, g.d_state);
  gemm::multiply(d_hidden.transposed(), o.state, g.d_W, {.accumulate = true});
}

}  // namespace

void local_forward(const LocalOperands<float>& operands, MatrixView<float> softmax, MatrixView<float> weights,
                   MatrixView<float> context, ThreadPool* pool) {
  forward(operands, softmax, weights, context, pool);
}
void local_forward(const LocalOperands<double>& operands, MatrixView<double> softmax,
                   MatrixView<double> weights, MatrixView<double> context, ThreadPool* pool) {
  forward(operands, softmax, weights, context, pool);
}
void local_backward(const LocalOperands<float>& operands, MatrixView<const float> softmax,
                    const LocalGradients<float>& gradients, ThreadPool* pool) {
  backward(operands, softmax, gradients, pool);
}
void local_backward(const LocalOperands<double>& operands, MatrixView<const double> softmax,
                    const LocalGradients<double>& gradients, ThreadPool* pool) {
  backward(operands, softmax, gradients, pool);
}
void centres_forward(const CentreOperands<float>& operands, MatrixView<float> hidden,
                     std::span<float> centres) {
  forward_centres(operands, hidden, centres);
}
void centres_forward(const CentreOperands<double>& operands, MatrixView<double> hidden,
                     std::span<double> centres) {
  forward_centres(operands, hidden, centres);
}
void centres_backward(const CentreOperands<float>& operands, MatrixView<const float> hidden,
                      std::span<const float> centres, const CentreGradients<float>& gradients) {
  backward_centres(operands, hidden, centres, gradients);
}
void centres_backward(const CentreOperands<double>& operands, MatrixView<const double> hidden,
                      std::span<const double> centres, const CentreGradients<double>& gradients) {
  backward_centres(operands, hidden, centres, gradients);
}

}  // namespace regard::attention
