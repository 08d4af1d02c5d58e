#include "regard/attention/linear_head.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "regard/attention/linear_chunk.h"

namespace regard::attention {
namespace {

/// o = scale numerator / denominator, 0 where that is 0.
template <class T>
void divide(const LinearOptions& options, const T* numerator, T denominator, const MatrixView<T>& o,
            int64_t i) {
  const bool zero = options.normalise && denominator == 0;
  const T factor = row_factor(options, denominator);
  if (dense_rows(o) && !zero) return simd::scale(factor, numerator, o.row(i), o.columns);
  for (int64_t e = 0; e < o.columns; ++e) o(i, e) = zero ? T{0} : numerator[e] * factor;
}

template <class T>
T sum(const T* x, int64_t n) {
  T total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

/// sum_j a_ij v_j over j <= i for all rows, added to `to`. Above the diagonal `a` is 0, and a value that is
/// not finite must not meet that 0: such rows are left out of the product and added one by one.
template <class T>
void add_lower_product(const MatrixView<const T>& a, const MatrixView<const T>& v, const MatrixView<T>& to,
                       AlignedBuffer<T>& copy) {
  if (std::isfinite(simd::sum_of_squares(v.data, v.rows * v.columns)))
    return gemm::multiply(a, v, to, {.accumulate = true});
  std::vector<int64_t> wild;
  for (int64_t j = 0; j < v.rows; ++j)
    if (!std::all_of(v.row(j), v.row(j) + v.columns, [](T x) { return std::isfinite(x); })) wild.push_back(j);
  T* const tame = copy.grow(v.rows * v.columns);
  std::copy_n(v.data, v.rows * v.columns, tame);
  for (const int64_t j : wild) std::fill_n(tame + j * v.columns, v.columns, T{0});
  gemm::multiply(a, matrix<const T>(tame, v.rows, v.columns), to, {.accumulate = true});
  for (const int64_t j : wild)
    for (int64_t i = j; i < to.rows; ++i) simd::axpy(a(i, j), v.row(j), to.row(i), v.columns);
}

template <class T>
void chunked(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  const int64_t most = std::min(head.q.rows, kLinearChunk);
  Chunk<T> chunk(head, most);
  Denominators<T> d;
  AlignedBuffer<T> pairs(most * most), numerators(most * head.E()), copy;
  for (int64_t begin = 0; begin < head.q.rows; begin += kLinearChunk) {
    chunk.load(begin, std::min(kLinearChunk, head.q.rows - begin));
    const MatrixView<T> a = matrix(pairs.data(), chunk.rows(), chunk.rows());
    const MatrixView<T> numerator = matrix(numerators.data(), chunk.rows(), head.E());
    similarities(chunk, a);
    d.compute(chunk, state, a);
    gemm::multiply(chunk.q(), state.S(), numerator);
    add_lower_product<T>(a, chunk.v(), numerator, copy);
    for (int64_t i = 0; i < chunk.rows(); ++i) divide(head.options, numerator.row(i), d[i], o, begin + i);
    add_keys(chunk, state);
  }
}

template <class T>
void recurrent(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  Chunk<T> chunk(head, 1);
  AlignedBuffer<T> numerator(head.E());
  for (int64_t i = 0; i < head.q.rows; ++i) {
    chunk.load(i, 1);
    add_outer(chunk.k().data, chunk.v().data, all_rows(state.S()));  // S_i = S_{i-1} + phi(k_i) v_i'
    simd::add(state.z().data, chunk.k().data, state.z().data, head.D());
    weighted_sum(chunk.q().data, all_rows<const T>(state.S()), numerator.data());
    divide(head.options, numerator.data(), simd::dot(chunk.q().data, state.z().data, head.D()), o, i);
  }
}

template <class T>
void quadratic(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  Chunk<T> all(head, head.q.rows);
  all.load(0, head.q.rows);
  AlignedBuffer<T> a(head.q.rows), numerator(head.E()), from_state(head.E());
  for (int64_t i = 0; i < head.q.rows; ++i) {
    const T* const phi_q = all.q().row(i);
    products(phi_q, rows_of(all.k(), i + 1), a.data());
    weighted_sum(a.data(), rows_of(all.v(), i + 1), numerator.data());
    weighted_sum(phi_q, all_rows<const T>(state.S()), from_state.data());
    simd::add(numerator.data(), from_state.data(), numerator.data(), head.E());
    divide(head.options, numerator.data(), simd::dot(phi_q, state.z().data, head.D()) + sum(a.data(), i + 1),
           o, i);
  }
  add_keys(all, state);
}

/// Without causal: the state of all keys, then every query.
template <class T>
void over_all_keys(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  Chunk<T> chunk(head, kLinearChunk);
  Denominators<T> d;
  AlignedBuffer<T> numerators(kLinearChunk * head.E());
  for (int64_t begin = 0; begin < head.k.rows; begin += kLinearChunk) {
    chunk.load_keys(begin, std::min(kLinearChunk, head.k.rows - begin));
    add_keys(chunk, state);
  }
  for (int64_t begin = 0; begin < head.q.rows; begin += kLinearChunk) {
    chunk.load_queries(begin, std::min(kLinearChunk, head.q.rows - begin));
    const MatrixView<T> numerator = matrix(numerators.data(), chunk.rows(), head.E());
    gemm::multiply(chunk.q(), state.S(), numerator);
    d.compute(chunk, state);
    for (int64_t i = 0; i < chunk.rows(); ++i) divide(head.options, numerator.row(i), d[i], o, begin + i);
  }
}

}  // namespace

template <class T>
void linear_forward(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  if (!head.options.causal) return over_all_keys(head, state, o);
  switch (head.options.form) {
    case LinearForm::chunked:
      return chunked(head, state, o);
    case LinearForm::recurrent:
      return recurrent(head, state, o);
    case LinearForm::quadratic:
      return quadratic(head, state, o);
  }
}

template void linear_forward(const LinearHead<float>&, const HeadState<float>&, const MatrixView<float>&);
template void linear_forward(const LinearHead<double>&, const HeadState<double>&, const MatrixView<double>&);

}  // namespace regard::attention
