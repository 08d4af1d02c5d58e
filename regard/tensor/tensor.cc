#include "regard/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "regard/tensor/pool.h"

namespace regard {
namespace {

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t d : shape) {
    if (d < 0) throw ShapeError("[Tensor] negative dimension in " + shape_text(shape));
    if (__builtin_mul_overflow(count, d, &count))
      throw ShapeError("[Tensor] too large: " + shape_text(shape));
  }
  return count;
}

template <class From, class To>
void convert(const Tensor& from, Tensor& to) {
  const auto x = from.values<From>();
  std::transform(x.begin(), x.end(), to.data<To>(), [](From v) { return static_cast<To>(v); });
}

}  // namespace

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
  }
  return "unknown";
}

int64_t dtype_size(DType dtype) { return dtype == DType::f64 ? 8 : 4; }

Tensor Tensor::empty(Shape shape, DType dtype) {
  Tensor t;
  t.size_ = element_count(shape);
  t.shape_ = std::move(shape);
  t.dtype_ = dtype;
  t.storage_ = allocate_pooled(std::max<int64_t>(t.size_, 1) * dtype_size(dtype));
  t.data_ = t.storage_.get();
  return t;
}

Tensor Tensor::zeros(Shape shape, DType dtype) {
  Tensor t = empty(std::move(shape), dtype);
  std::memset(t.data_, 0, static_cast<size_t>(t.byte_size()));
  return t;
}

Tensor Tensor::full(Shape shape, double value, DType dtype) {
  Tensor t = empty(std::move(shape), dtype);
  if (dtype == DType::f32) std::fill_n(t.data<float>(), t.size_, static_cast<float>(value));
  if (dtype == DType::f64) std::fill_n(t.data<double>(), t.size_, value);
  if (dtype == DType::i32) std::fill_n(t.data<int32_t>(), t.size_, static_cast<int32_t>(value));
  return t;
}

template <class T>
Tensor Tensor::from(Shape shape, std::span<const T> values) {
  const DType dtype = dtype_of<T>();
  Tensor t = empty(std::move(shape), dtype);
  if (t.size_ != static_cast<int64_t>(values.size()))
    throw ShapeError("[Tensor] " + std::to_string(values.size()) + " values for shape " +
                     shape_text(t.shape_));
  std::copy(values.begin(), values.end(), t.data<T>());
  return t;
}
template Tensor Tensor::from<float>(Shape, std::span<const float>);
template Tensor Tensor::from<double>(Shape, std::span<const double>);
template Tensor Tensor::from<int32_t>(Shape, std::span<const int32_t>);

int64_t Tensor::dim(int64_t i) const {
  const int64_t index = i < 0 ? i + rank() : i;
  if (index < 0 || index >= rank())
    throw ShapeError("[Tensor] no dimension " + std::to_string(i) + " in " + shape_text(shape_));
  return shape_[static_cast<size_t>(index)];
}

int64_t Tensor::rows() const {
  int64_t rows = 1;
  for (int64_t i = 0; i + 1 < rank(); ++i) rows *= shape_[static_cast<size_t>(i)];
  return rows;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (element_count(shape) != size_)
    throw ShapeError("[Tensor] reshape " + shape_text(shape_) + " to " + shape_text(shape));
  Tensor t = *this;
  t.shape_ = std::move(shape);
  t.node_ = nullptr;
  return t;
}

Tensor Tensor::row_range(int64_t begin, int64_t end) const {
  if (rank() < 1 || begin < 0 || begin > end || end > shape_[0])
    throw ShapeError("[Tensor] rows " + std::to_string(begin) + ".." + std::to_string(end) + " of " +
                     shape_text(shape_));
  Tensor t = *this;
  const int64_t width = shape_[0] ? size_ / shape_[0] : 0;
  t.shape_[0] = end - begin;
  t.size_ = (end - begin) * width;
  t.data_ = static_cast<char*>(data_) + begin * width * dtype_size(dtype_);
  t.node_ = nullptr;
  return t;
}

Tensor Tensor::copy() const {
  Tensor t = empty(shape_, dtype_);
  std::memcpy(t.data_, data_, static_cast<size_t>(byte_size()));
  return t;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return copy();
  Tensor t = empty(shape_, dtype);
  const auto from = std::pair(dtype_, dtype);
  if (from == std::pair(DType::f32, DType::f64)) convert<float, double>(*this, t);
  if (from == std::pair(DType::f64, DType::f32)) convert<double, float>(*this, t);
  if (from == std::pair(DType::i32, DType::f32)) convert<int32_t, float>(*this, t);
  if (from == std::pair(DType::i32, DType::f64)) convert<int32_t, double>(*this, t);
  if (from == std::pair(DType::f32, DType::i32)) convert<float, int32_t>(*this, t);
  if (from == std::pair(DType::f64, DType::i32)) convert<double, int32_t>(*this, t);
  return t;
}

Tensor Tensor::with_node(std::shared_ptr<autograd::Node> node) const {
  Tensor t = *this;
  t.node_ = std::move(node);
  return t;
}

void Tensor::wrong_dtype(DType wanted) const {
  throw Error(ErrorKind::internal,
              std::string("[Tensor] dtype is ") + dtype_name(dtype_) + ", not " + dtype_name(wanted));
}

}  // namespace regard
