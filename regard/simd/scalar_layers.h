#pragma once
// The scalar twins of regard/simd/layer_rows.h: each function written as its formula, for any floating type.

#include <cmath>
#include <cstdint>

#include "regard/base/random.h"
#include "regard/simd/layer_rows.h"

namespace regard::simd::scalar {

template <class T>
RowMoments<T> layer_norm(const T* x, const T* gain, const T* bias, double epsilon, T* y, int64_t n) {
  if (n == 0) return {};
  T mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<T>(n);
  for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<T>(n);
  const T scale = 1 / std::sqrt(variance + static_cast<T>(epsilon));
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale * gain[i] + bias[i];
  return {mean, scale};
}

template <class T>
void layer_norm_backward(const T* x, RowMoments<T> moments, const T* gain, const T* dy, T* dx, T* dgain,
                         T* dbias, int64_t n) {
  const auto h = [&](int64_t i) { return (x[i] - moments.mean) * moments.scale; };
  T mean_d = 0, mean_dh = 0;
  for (int64_t i = 0; i < n; ++i) {
    mean_d += dy[i] * gain[i] / static_cast<T>(n);
    mean_dh += dy[i] * gain[i] * h(i) / static_cast<T>(n);
    dgain[i] += dy[i] * h(i);
    dbias[i] += dy[i];
  }
  for (int64_t i = 0; i < n; ++i) dx[i] = moments.scale * (dy[i] * gain[i] - mean_d - h(i) * mean_dh);
}

template <class T>
void swish(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1 + std::exp(-x[i]));
}

template <class T>
void swish_backward(const T* x, const T* dy, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T s = 1 / (1 + std::exp(-x[i]));
    dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
  }
}

template <class T>
void elu_plus_one(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] + 1 : std::exp(x[i]);
}

template <class T>
void elu_plus_one_backward(const T* y, const T* dy, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] > 1 ? dy[i] : dy[i] * y[i];
}

/// What number i of a row is multiplied by.
inline double dropout_factor(const DropoutRow& row, int64_t i) {
  const auto words = philox({static_cast<uint32_t>(i / 4), 0, 0, 0},
                            {static_cast<uint32_t>(row.key), static_cast<uint32_t>(row.key >> 32)});
  return words[static_cast<size_t>(i % 4)] < row.threshold ? 0 : row.factor;
}

template <class T>
void dropout(const T* x, T* y, int64_t n, const DropoutRow& row) {
  for (int64_t i = 0; i < n; ++i) {
    const double factor = dropout_factor(row, i);
    y[i] = factor == 0 ? T{0} : x[i] * static_cast<T>(factor);
  }
}

template <class T>
void add_dropout(const T* a, const T* x, T* y, int64_t n, const DropoutRow& row) {
  for (int64_t i = 0; i < n; ++i) {
    const double factor = dropout_factor(row, i);
    y[i] = factor == 0 ? a[i] : a[i] + x[i] * static_cast<T>(factor);
  }
}

}  // namespace regard::simd::scalar
