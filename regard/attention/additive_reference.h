#pragma once
// Additive attention as its formulas, for one row: the f64 kernel and what the f32 kernel is tested against.

#include <cmath>
#include <cstdint>
#include <vector>

#include "regard/simd/scalar.h"

namespace regard::attention::reference {

/// One row's operands: S keys [S, A] and values [S, E], rows `key_stride` and `value_stride` apart.
template <class T>
struct AdditiveRow {
  const T* q;
  const T* keys;
  const T* values;
  const T* v;
  int64_t S, A, E, key_stride, value_stride;
};

/// alpha [S], c [E].  e_j = v' tanh(q + k_j)   alpha = softmax(e)   c = sum_j alpha_j h_j
template <class T>
void additive_forward(const AdditiveRow<T>& row, T* alpha, T* c) {
  for (int64_t j = 0; j < row.S; ++j) {
    const T* k = row.keys + j * row.key_stride;
    T e = 0;
    for (int64_t a = 0; a < row.A; ++a) e += row.v[a] * std::tanh(row.q[a] + k[a]);
    alpha[j] = e;
  }
  simd::scalar::softmax(alpha, alpha, row.S);
  for (int64_t i = 0; i < row.E; ++i) c[i] = 0;
  for (int64_t j = 0; j < row.S; ++j)
    for (int64_t i = 0; i < row.E; ++i) c[i] += alpha[j] * row.values[j * row.value_stride + i];
}

/// One row's gradients: dalpha [S] or null, dc [E] in; dq [A] written; dkeys, dv and dvalues (or null) added
/// to.
template <class T>
struct AdditiveRowGradients {
  const T* dc;
  const T* dalpha;
  T* dq;
  T* dkeys;
  T* dvalues;
  T* dv;
  int64_t dkey_stride, dvalue_stride;
};

/// Differentiates additive_forward.
template <class T>
void additive_backward(const AdditiveRow<T>& row, const T* alpha, const AdditiveRowGradients<T>& d) {
  std::vector<T> de(static_cast<size_t>(row.S));
  for (int64_t j = 0; j < row.S; ++j) {  // c = sum_j alpha_j h_j
    T dalpha = simd::scalar::dot(d.dc, row.values + j * row.value_stride, row.E);
    if (d.dalpha) dalpha += d.dalpha[j];
    de[static_cast<size_t>(j)] = dalpha;
    if (d.dvalues) simd::scalar::axpy(alpha[j], d.dc, d.dvalues + j * d.dvalue_stride, row.E);
  }
  simd::scalar::softmax_backward(alpha, de.data(), de.data(), row.S);  // alpha = softmax(e)
  for (int64_t a = 0; a < row.A; ++a) d.dq[a] = 0;
  for (int64_t j = 0; j < row.S; ++j) {  // e_j = v' tanh(q + k_j)
    const T* k = row.keys + j * row.key_stride;
    T* dk = d.dkeys + j * d.dkey_stride;
    for (int64_t a = 0; a < row.A; ++a) {
      const T t = std::tanh(row.q[a] + k[a]), e = de[static_cast<size_t>(j)];
      d.dv[a] += e * t;
      const T du = e * row.v[a] * (1 - t * t);
      d.dq[a] += du;
      dk[a] += du;
    }
  }
}

}  // namespace regard::attention::reference
