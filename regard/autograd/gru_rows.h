#pragma once
// The GRU's row kernels of regard/simd under one name for both types.

#include <algorithm>
#include <type_traits>

#include "regard/simd/rows.h"
#include "regard/tensor/tensor.h"

namespace regard::autograd {

template <class T>
using GruForwardRow = std::conditional_t<std::is_same_v<T, float>, simd::GruForward, simd::GruForwardF64>;
template <class T>
using GruBackwardRow = std::conditional_t<std::is_same_v<T, float>, simd::GruBackward, simd::GruBackwardF64>;

template <class T>
void gru_row_forward(const GruForwardRow<T>& row, int64_t n) {
  simd::gru_forward(row, n);
}
template <class T>
void gru_row_backward(const GruBackwardRow<T>& row, int64_t n) {
  simd::gru_backward(row, n);
}

/// x + [b_r | b_z | 0] for every row: the part of the state's bias that does not pass through the reset gate.
template <class T>
Tensor with_gate_bias(const Tensor& x, const Tensor& b, int64_t N) {
  Tensor y = x.copy();
  for (int64_t r = 0; r < y.rows(); ++r)
    simd::add(y.data<T>() + r * 3 * N, b.data<T>(), y.data<T>() + r * 3 * N, 2 * N);
  return y;
}

}  // namespace regard::autograd
