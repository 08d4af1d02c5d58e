#pragma once
// The GRU's row kernels of regard/simd under one name for both types.

#include <type_traits>

#include "regard/simd/rows.h"

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

}  // namespace regard::autograd
