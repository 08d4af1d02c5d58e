#include "regard/attention/lookup.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "regard/attention/ragged.h"
#include "regard/attention/source_rows.h"
#include "regard/base/aligned_buffer.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/rows.h"

namespace regard::attention {
namespace {

const char* const kName = "lookup";
constexpr int64_t kBlock = 64;  // rows whose scores are held at once

template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <class T>
void check_lookup(const MatrixView<const T>& q, const LookupTable<T>& table, double temperature) {
  const int64_t S = table.keys.rows, D = q.columns;
  const std::array<int64_t, 2> keys = {S, table.keys.columns}, expected = {S, D};
  if (keys != expected)
    throw ShapeError("[lookup] keys " + shape_text(keys) + ", expected " + shape_text(expected) + " (S, D)");
  check_matrix(kName, "values", table.values, S, table.values.columns, "S, E");
  if (!(temperature >= 0))
    throw ShapeError("[lookup] temperature is " + std::to_string(temperature) + ", expected 0 or more");
}

/// Calls body(i, scores of row i) for all rows.
template <class T, class Body>
void for_scores(const MatrixView<const T>& q, const LookupTable<T>& table, const Body& body) {
  const int64_t S = table.keys.rows;
  AlignedBuffer<T> buffer(std::min(kBlock, q.rows) * S);
  for (int64_t begin = 0; begin < q.rows; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, q.rows);
    const MatrixView<T> scores = matrix(buffer.data(), end - begin, S);
    gemm::multiply(q.row_range(begin, end), table.keys.transposed(), scores);
    for (int64_t i = begin; i < end; ++i) body(i, scores.row(i - begin));
  }
}

/// The limit of softmax(s / temperature) for temperature -> 0: equal weights for the largest scores.
template <class T>
void limit_of_softmax(const T* s, T* p, int64_t n) {
  const T largest = simd::largest(s, n);
  const auto winners = static_cast<T>(std::count(s, s + n, largest));
  const bool empty = largest == -std::numeric_limits<T>::infinity(), finite = std::isfinite(largest);
  for (int64_t j = 0; j < n; ++j) p[j] = empty ? 0 : !finite ? kNan<T> : s[j] == largest ? 1 / winners : T{0};
}

template <class T>
void softmax(double temperature, T* s, int64_t n) {
  if (temperature == 0) return limit_of_softmax(s, s, n);
  if (temperature != 1) simd::scale(static_cast<T>(1 / temperature), s, s, n);
  simd::softmax(s, s, n);
}

template <class T>
void soft(const MatrixView<const T>& q, const LookupTable<T>& table, double temperature,
          const MatrixView<T>& weights, const MatrixView<T>& out) {
  check_lookup(q, table, temperature);
  check_matrix(kName, "weights", weights, q.rows, table.keys.rows, "R, S");
  check_matrix(kName, "out", out, q.rows, table.values.columns, "R, E");
  gemm::multiply(q, table.keys.transposed(), weights);
  for (int64_t i = 0; i < q.rows; ++i) softmax(temperature, weights.row(i), weights.columns);
  gemm::multiply(MatrixView<const T>(weights), table.values, out);
}

template <class T>
void soft_backward(const MatrixView<const T>& q, const LookupTable<T>& table, double temperature,
                   const MatrixView<const T>& weights, const LookupGradients<T>& g) {
  const int64_t R = q.rows, S = table.keys.rows;
  check_lookup(q, table, temperature);
  check_matrix(kName, "weights", weights, R, S, "R, S");
  check_matrix(kName, "d_out", g.d_out, R, table.values.columns, "R, E");
  check_matrix(kName, "d_q", g.d_q, R, q.columns, "R, D");
  check_matrix(kName, "d_keys", g.d_keys, S, q.columns, "S, D");
  check_matrix(kName, "d_values", g.d_values, S, table.values.columns, "S, E");
  gemm::multiply(weights.transposed(), g.d_out, g.d_values, {.accumulate = true});  // out = p v
  AlignedBuffer<T> buffer(R * S);
  const MatrixView<T> ds = matrix(buffer.data(), R, S);
  gemm::multiply(g.d_out, table.values.transposed(), ds);
  const T factor = temperature == 0 ? T{0} : static_cast<T>(1 / temperature);
  for (int64_t i = 0; i < R; ++i) {  // p = softmax(s / temperature)
    simd::softmax_backward(weights.row(i), ds.row(i), ds.row(i), S);
    simd::scale(factor, ds.row(i), ds.row(i), S);
  }
  const MatrixView<const T> d_scores = ds;
  gemm::multiply(d_scores, table.keys, g.d_q);  // s = q k'
  gemm::multiply(d_scores.transposed(), q, g.d_keys, {.accumulate = true});
}

template <class T>
void top_k(const MatrixView<const T>& q, const LookupTable<T>& table, double temperature,
           const MatrixView<int64_t>& indices, const MatrixView<T>& weights, const MatrixView<T>& out) {
  const int64_t S = table.keys.rows, k = indices.columns, kept = std::min(k, S);
  check_lookup(q, table, temperature);
  check_matrix(kName, "indices", indices, q.rows, k, "R, k");
  check_matrix(kName, "weights", weights, q.rows, k, "R, k");
  check_matrix(kName, "out", out, q.rows, table.values.columns, "R, E");
  std::vector<int64_t> order(static_cast<size_t>(S));
  for_scores(q, table, [&](int64_t i, const T* s) {
    int64_t* const index = indices.row(i);
    T *const p = weights.row(i), *const o = out.row(i);
    std::fill_n(index, k, -1);
    std::fill_n(p, k, T{0});
    std::fill_n(o, out.columns, T{0});
    if (std::isnan(simd::largest(s, S))) {
      std::fill_n(p, kept, kNan<T>);
      std::fill_n(o, out.columns, kNan<T>);
      return;
    }
    std::iota(order.begin(), order.end(), int64_t{0});
    std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                      [s](int64_t a, int64_t b) { return s[a] != s[b] ? s[a] > s[b] : a < b; });
    for (int64_t n = 0; n < kept; ++n) {
      index[n] = order[static_cast<size_t>(n)];
      p[n] = s[index[n]];
    }
    softmax(temperature, p, kept);
    for (int64_t n = 0; n < kept; ++n) simd::axpy(p[n], table.values.row(index[n]), o, out.columns);
  });
}

template <class T>
void hard(const MatrixView<const T>& q, const LookupTable<T>& table, std::span<int64_t> indices,
          const MatrixView<T>& out) {
  check_lookup(q, table, 0);
  if (static_cast<int64_t>(indices.size()) != q.rows)
    throw ShapeError("[lookup] indices [" + std::to_string(indices.size()) + "], expected [" +
                     std::to_string(q.rows) + "] (R)");
  check_matrix(kName, "out", out, q.rows, table.values.columns, "R, E");
  for_scores(q, table, [&](int64_t i, const T* s) {
    const bool wild = std::isnan(simd::largest(s, table.keys.rows));
    int64_t& index = indices[static_cast<size_t>(i)];
    index = wild ? -1 : simd::arg_max(s, table.keys.rows);
    if (index >= 0)
      std::copy_n(table.values.row(index), out.columns, out.row(i));
    else
      std::fill_n(out.row(i), out.columns, wild ? kNan<T> : T{0});
  });
}

}  // namespace

void soft_lookup(MatrixView<const float> q, const LookupTable<float>& table, double temperature,
                 MatrixView<float> weights, MatrixView<float> out) {
  soft(q, table, temperature, weights, out);
}
void soft_lookup(MatrixView<const double> q, const LookupTable<double>& table, double temperature,
                 MatrixView<double> weights, MatrixView<double> out) {
  soft(q, table, temperature, weights, out);
}
void soft_lookup_backward(MatrixView<const float> q, const LookupTable<float>& table, double temperature,
                          MatrixView<const float> weights, const LookupGradients<float>& gradients) {
  soft_backward(q, table, temperature, weights, gradients);
}
void soft_lookup_backward(MatrixView<const double> q, const LookupTable<double>& table, double temperature,
                          MatrixView<const double> weights, const LookupGradients<double>& gradients) {
  soft_backward(q, table, temperature, weights, gradients);
}
void top_k_lookup(MatrixView<const float> q, const LookupTable<float>& table, double temperature,
                  MatrixView<int64_t> indices, MatrixView<float> weights, MatrixView<float> out) {
  top_k(q, table, temperature, indices, weights, out);
}
void top_k_lookup(MatrixView<const double> q, const LookupTable<double>& table, double temperature,
                  MatrixView<int64_t> indices, MatrixView<double> weights, MatrixView<double> out) {
  top_k(q, table, temperature, indices, weights, out);
}
void hard_lookup(MatrixView<const float> q, const LookupTable<float>& table, std::span<int64_t> indices,
                 MatrixView<float> out) {
  hard(q, table, indices, out);
}
void hard_lookup(MatrixView<const double> q, const LookupTable<double>& table, std::span<int64_t> indices,
                 MatrixView<double> out) {
  hard(q, table, indices, out);
}

}  // namespace regard::attention
