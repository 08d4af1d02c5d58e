#pragma once
// Views of numbers with more than two dimensions: what kernels take. A view owns nothing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "regard/base/span.h"

namespace regard {

/// N dimensions anywhere in memory: element (i, j, ...) is data[i stride[0] + j stride[1] + ...]. Strides
/// count elements; 0 repeats a dimension without copies. Without data the view means "none".
template <class T, size_t N>
struct View {
  T* data = nullptr;
  std::array<int64_t, N> shape{};
  std::array<int64_t, N> stride{};

  explicit operator bool() const { return data != nullptr; }

  template <class... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == N);
    return data[offset({static_cast<int64_t>(index)...})];
  }
  /// The view with dimensions `a` and `b` exchanged: [B, T, H, D] becomes [B, H, T, D] without a copy.
  View exchanged(size_t a, size_t b) const {
    View x = *this;
    x.shape[a] = shape[b], x.shape[b] = shape[a];
    x.stride[a] = stride[b], x.stride[b] = stride[a];
    return x;
  }
  operator View<const T, N>() const requires(!std::is_const_v<T>) { return {data, shape, stride}; }

  int64_t offset(const std::array<int64_t, N>& index) const {
    int64_t at = 0;
    for (size_t n = 0; n < N; ++n) at += index[n] * stride[n];
    return at;
  }
};

template <class T>
using View3 = View<T, 3>;
template <class T>
using View4 = View<T, 4>;

/// Dense and row-major: the last dimension's elements lie side by side.
template <class T, size_t N>
View<T, N> dense(T* data, const std::array<int64_t, N>& shape) {
  View<T, N> x{data, shape, {}};
  int64_t stride = 1;
  for (size_t n = N; n-- > 0; stride *= shape[n]) x.stride[n] = stride;
  return x;
}

/// The matrix of the last two dimensions at (i, j) of the first two. Null data stays null.
template <class T>
MatrixView<T> matrix_at(const View4<T>& x, int64_t i, int64_t j) {
  T* const data = x.data ? x.data + i * x.stride[0] + j * x.stride[1] : nullptr;
  return {data, x.shape[2], x.shape[3], x.stride[2], x.stride[3]};
}

}  // namespace regard
