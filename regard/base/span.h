#pragma once
// Views of numbers in memory: what kernels take. A view owns nothing.

#include <cstdint>
#include <type_traits>

namespace regard {

/// A matrix anywhere in memory: element (i, j) is data[i * row_stride + j * column_stride].
/// Strides count elements.
template <class T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  T& operator()(int64_t i, int64_t j) const { return data[i * row_stride + j * column_stride]; }
  T* row(int64_t i) const { return data + i * row_stride; }

  MatrixView transposed() const { return {data, columns, rows, column_stride, row_stride}; }
  MatrixView row_range(int64_t begin, int64_t end) const {
    return {data + begin * row_stride, end - begin, columns, row_stride, column_stride};
  }
  MatrixView column_range(int64_t begin, int64_t end) const {
    return {data + begin * column_stride, rows, end - begin, row_stride, column_stride};
  }
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, columns, row_stride, column_stride};
  }
};

/// A dense row-major matrix.
template <class T>
MatrixView<T> matrix(T* data, int64_t rows, int64_t columns) {
  return {data, rows, columns, columns, 1};
}

}  // namespace regard
