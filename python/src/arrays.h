#pragma once
// numpy arrays as views. python/src/regard/_arrays.py has made what comes in uniform: bfloat16 travels as
// uint16, optional operands are None, masks are broadcast by strides of 0. Nothing is copied here.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regard/base/bfloat16.h"
#include "regard/base/error.h"
#include "regard/base/span.h"
#include "regard/base/thread_pool.h"
#include "regard/base/view.h"

namespace regard::python {

namespace nb = nanobind;

using In = nb::ndarray<nb::ro, nb::device::cpu>;
using Out = nb::ndarray<nb::device::cpu>;
using MaybeIn = std::optional<In>;
using MaybeOut = std::optional<Out>;

template <class T>
inline nb::dlpack::dtype dtype_of() {
  return nb::dtype<T>();
}
template <>
inline nb::dlpack::dtype dtype_of<BFloat16>() {
  return nb::dtype<uint16_t>();
}

template <class Array>
std::vector<int64_t> shape_of(const Array& x) {
  std::vector<int64_t> shape;
  for (size_t n = 0; n < x.ndim(); ++n) shape.push_back(static_cast<int64_t>(x.shape(n)));
  return shape;
}

/// Data of an array of T. Empty arrays have some address too, since views without one mean "none".
template <class T, class Array>
auto* data_of(const char* name, const Array& x) {
  using Element = std::conditional_t<std::is_same_v<Array, In>, const T, T>;
  static T nothing{};
  if (x.dtype() != dtype_of<T>())
    throw nb::type_error((std::string(name) + " has another dtype than the call's other operands").c_str());
  Element* const data = static_cast<Element*>(x.data());
  return data ? data : &nothing;
}

template <class T, size_t N, class Array>
auto view(const char* name, const Array& x) {
  using Element = std::remove_pointer_t<decltype(data_of<T>(name, x))>;
  if (x.ndim() != N)
    throw ShapeError("[attention] " + std::string(name) + " " + shape_text(shape_of(x)) + ", expected " +
                     std::to_string(N) + " dimensions");
  View<Element, N> result{data_of<T>(name, x), {}, {}};
  for (size_t n = 0; n < N; ++n) {
    result.shape[n] = static_cast<int64_t>(x.shape(n));
    result.stride[n] = x.stride(n);
  }
  return result;
}
template <class T, size_t N, class Array>
auto view(const char* name, const std::optional<Array>& x) {
  return x ? view<T, N>(name, *x) : decltype(view<T, N>(name, *x)){};
}

template <class T, class Array>
auto matrix_view(const char* name, const Array& x) {
  const auto v = view<T, 2>(name, x);
  return MatrixView<std::remove_reference_t<decltype(*v.data)>>{v.data, v.shape[0], v.shape[1], v.stride[0],
                                                                v.stride[1]};
}
template <class T, class Array>
auto matrix_view(const char* name, const std::optional<Array>& x) {
  return x ? matrix_view<T>(name, *x) : decltype(matrix_view<T>(name, *x)){};
}

/// A vector, side by side in memory. None: empty.
template <class T>
std::span<const T> vector(const char* name, const MaybeIn& x) {
  if (!x) return {};
  const auto v = view<T, 1>(name, *x);
  if (v.shape[0] > 1 && v.stride[0] != 1) throw ShapeError(std::string(name) + " must be contiguous");
  return {v.data, static_cast<size_t>(v.shape[0])};
}
template <class T>
std::span<T> vector(const char* name, const MaybeOut& x) {
  if (!x) return {};
  const auto v = view<T, 1>(name, *x);
  return {v.data, static_cast<size_t>(v.shape[0])};
}

/// Calls run(T{}) with the element type of x.
template <class Run>
void for_dtype(const In& x, const Run& run) {
  if (x.dtype() == dtype_of<float>())
    run(float{});
  else if (x.dtype() == dtype_of<double>())
    run(double{});
  else if (x.dtype() == dtype_of<BFloat16>())
    run(BFloat16{});
  else
    throw nb::type_error("expected float32, float64 or bfloat16");
}
template <class Run>
void for_f32_f64(const In& x, const Run& run) {
  if (x.dtype() == dtype_of<float>())
    run(float{});
  else if (x.dtype() == dtype_of<double>())
    run(double{});
  else
    throw nb::type_error("expected float32 or float64");
}

/// The pool of so many threads, kept from call to call; null for one. 0: as many as there are processors.
ThreadPool* pool(int threads);

void bind_attention(nb::module_& m);
void bind_decode(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_additive(nb::module_& m);

}  // namespace regard::python
