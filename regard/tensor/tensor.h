#pragma once
// Tensor: a value-like handle on pooled storage, row-major and dense.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "regard/base/error.h"
#include "regard/base/span.h"

namespace regard::autograd {
struct Node;
}

namespace regard {

enum class DType { f32, f64, i32 };

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}

const char* dtype_name(DType dtype);  ///< "f32"
int64_t dtype_size(DType dtype);      ///< bytes an element

using Shape = std::vector<int64_t>;

/// Copies share storage; storage is returned to the pool with the last handle. A tensor that an operation
/// returned under a tape also knows its place on that tape (`node`), which only regard/autograd reads.
class Tensor {
 public:
  Tensor() = default;  ///< no tensor at all; defined() is false

  static Tensor empty(Shape shape, DType dtype = DType::f32);  ///< content undefined
  static Tensor zeros(Shape shape, DType dtype = DType::f32);
  static Tensor full(Shape shape, double value, DType dtype = DType::f32);
  /// From numbers in row-major order. Throws ShapeError if their count differs from the shape's.
  template <class T>
  static Tensor from(Shape shape, std::span<const T> values);
  template <class T>
  static Tensor from(Shape shape, std::initializer_list<T> values) {
    return from<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  /// Size along a dimension; negative counts from the end. Throws ShapeError if there is none.
  int64_t dim(int64_t i) const;
  int64_t size() const { return size_; }  ///< number of elements
  DType dtype() const { return dtype_; }

  /// The elements. Throws Error if `T` is not the dtype.
  template <class T>
  T* data() const {
    if (dtype_of<T>() != dtype_) wrong_dtype(dtype_of<T>());
    return static_cast<T*>(data_);
  }
  template <class T>
  std::span<T> values() const {
    return {data<T>(), static_cast<size_t>(size_)};
  }
  /// As a matrix: all dimensions but the last are rows. A vector is one row.
  template <class T>
  MatrixView<T> as_matrix() const {
    const int64_t columns = rank() ? dim(-1) : 1;
    return matrix(data<T>(), rank() > 1 ? rows() : 1, columns);
  }
  void* bytes() const { return data_; }
  int64_t byte_size() const { return size_ * dtype_size(dtype_); }
  /// The product of all dimensions but the last.
  int64_t rows() const;

  /// The same storage under another shape. Throws ShapeError if the sizes differ. Not recorded on a tape.
  Tensor reshaped(Shape shape) const;
  /// The same storage, elements begin..end-1 of dimension 0. Not recorded on a tape.
  Tensor row_range(int64_t begin, int64_t end) const;
  Tensor copy() const;           ///< own storage, no place on a tape
  Tensor to(DType dtype) const;  ///< converted copy

  const std::shared_ptr<autograd::Node>& node() const { return node_; }
  Tensor with_node(std::shared_ptr<autograd::Node> node) const;

 private:
  [[noreturn]] void wrong_dtype(DType wanted) const;

  std::shared_ptr<void> storage_;
  void* data_ = nullptr;
  Shape shape_;
  int64_t size_ = 0;
  DType dtype_ = DType::f32;
  std::shared_ptr<autograd::Node> node_;
};

/// Calls f with a value of the tensor's floating-point type:
/// dispatch(x.dtype(), [&](auto zero) { using T = ...; }).
template <class F>
auto dispatch(DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  throw Error(ErrorKind::internal, std::string("expected f32 or f64, not ") + dtype_name(dtype));
}

}  // namespace regard
