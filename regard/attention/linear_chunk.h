#pragma once
// What the forward and the backward of linear attention share: a chunk of a head's rows, mapped and dense,
// and what is summed over it.

#include <algorithm>
#include <cstdint>

#include "regard/attention/linear_head.h"
#include "regard/attention/source_rows.h"
#include "regard/base/aligned_buffer.h"
#include "regard/base/span.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/layer_rows.h"
#include "regard/simd/rows.h"

namespace regard::attention {

/// Whether a row's numbers lie side by side.
template <class T>
bool dense_rows(const MatrixView<T>& x) {
  return x.column_stride == 1;
}

template <class T>
void copy_row(const MatrixView<const T>& from, int64_t i, T* to) {
  if (dense_rows(from)) std::copy_n(from.row(i), from.columns, to);
  for (int64_t c = 0; c < from.columns && !dense_rows(from); ++c) to[c] = from(i, c);
}

/// phi, element by element.
template <class T>
void map_row(FeatureMap map, const T* x, T* y, int64_t n) {
  switch (map) {
    case FeatureMap::elu_plus_one:
      return simd::elu_plus_one(x, y, n);
    case FeatureMap::relu:
      return simd::relu(x, y, n);
    case FeatureMap::identity:
      if (x != y) std::copy_n(x, n, y);
  }
}

/// dy = dy phi'(x), from y = phi(x).
template <class T>
void map_backward_row(FeatureMap map, const T* y, T* dy, int64_t n) {
  if (map == FeatureMap::elu_plus_one) simd::elu_plus_one_backward(y, dy, dy, n);
  if (map == FeatureMap::relu) simd::relu_backward(y, dy, dy, n);
}

/// Dense copies of rows [begin, begin + rows), mapped.
template <class T>
class Chunk {
 public:
  Chunk(const LinearHead<T>& head, int64_t most)
      : head_(head), phi_q_(most * head.D()), phi_k_(most * head.D()), v_(most * head.E()) {}

  void load(int64_t begin, int64_t count) {
    load_queries(begin, count);
    load_keys(begin, count);
  }
  void load_queries(int64_t begin, int64_t count) {
    rows_ = count;
    for (int64_t i = 0; i < count; ++i) load_mapped(head_.q, begin + i, phi_q_.data() + i * head_.D());
  }
  void load_keys(int64_t begin, int64_t count) {
    rows_ = count;
    for (int64_t i = 0; i < count; ++i) {
      copy_row(head_.v, begin + i, v_.data() + i * head_.E());
      load_mapped(head_.k, begin + i, phi_k_.data() + i * head_.D());
    }
  }
  int64_t rows() const { return rows_; }
  MatrixView<const T> q() const { return matrix<const T>(phi_q_.data(), rows_, head_.D()); }
  MatrixView<const T> k() const { return matrix<const T>(phi_k_.data(), rows_, head_.D()); }
  MatrixView<const T> v() const { return matrix<const T>(v_.data(), rows_, head_.E()); }

 private:
  void load_mapped(const MatrixView<const T>& from, int64_t i, T* to) const {
    if (dense_rows(from)) return map_row(head_.options.map, from.row(i), to, from.columns);
    copy_row(from, i, to);
    map_row(head_.options.map, to, to, from.columns);
  }

  const LinearHead<T>& head_;
  AlignedBuffer<T> phi_q_, phi_k_, v_;
  int64_t rows_ = 0;
};

template <class T>
SourceRows<T> all_rows(const MatrixView<T>& x) {
  return {x.data, x.rows, x.columns, x.row_stride};
}
template <class T>
SourceRows<const T> rows_of(const MatrixView<const T>& x, int64_t count) {
  return {x.data, count, x.columns, x.row_stride};
}

/// S += phi(k)' v, z += sum phi(k).
template <class T>
void add_keys(const Chunk<T>& chunk, const HeadState<T>& state) {
  gemm::multiply(chunk.k().transposed(), chunk.v(), state.S(), {.accumulate = true});
  const MatrixView<const T> k = chunk.k();
  simd::add_column_sums(k.data, k.rows, k.row_stride, state.z().data, k.columns);
}

/// a = phi(q) phi(k)' where j <= i, else 0.
template <class T>
void similarities(const Chunk<T>& chunk, const MatrixView<T>& a) {
  gemm::multiply(chunk.q(), chunk.k().transposed(), a);
  for (int64_t i = 0; i < a.rows; ++i) std::fill(a.row(i) + i + 1, a.row(i) + a.columns, T{0});
}

/// Denominators d_i = phi(q_i)' z, and + sum of a_ij over j <= i where there are similarities.
template <class T>
class Denominators {
 public:
  Denominators() : ones_(kLinearChunk), d_(kLinearChunk) { std::fill_n(ones_.data(), kLinearChunk, T{1}); }

  void compute(const Chunk<T>& chunk, const HeadState<T>& state) {
    products(static_cast<const T*>(state.z().data), all_rows(chunk.q()), d_.data());
  }
  void compute(const Chunk<T>& chunk, const HeadState<T>& state, const MatrixView<T>& a) {
    compute(chunk, state);
    for (int64_t i = 0; i < chunk.rows(); ++i) d_.data()[i] += simd::dot(a.row(i), ones_.data(), i + 1);
  }
  T operator[](int64_t i) const { return d_.data()[i]; }

 private:
  AlignedBuffer<T> ones_, d_;
};

/// What a row is multiplied by at last: scale / denominator, 0 where that is 0.
template <class T>
T row_factor(const LinearOptions& options, T denominator) {
  if (!options.normalise) denominator = 1;
  return denominator == 0 ? T{0} : static_cast<T>(options.scale) / denominator;
}

}  // namespace regard::attention
