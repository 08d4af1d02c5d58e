#include "regard/gemm/gemm.h"

#include <array>
#include <atomic>

#include "regard/base/error.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/gemm/gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "regard/gemm/gemm-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace regard::gemm::HWY_NAMESPACE {

void pack_f32(std::span<const MatrixView<const float>> b, int64_t rows, int64_t columns,
              AlignedBuffer<float>& to) {
  pack<float>(b, rows, columns, to);
}
void pack_f64(std::span<const MatrixView<const double>> b, int64_t rows, int64_t columns,
              AlignedBuffer<double>& to) {
  pack<double>(b, rows, columns, to);
}
void packed_f32(MatrixView<const float> a, const float* b, MatrixView<float> c, Epilogue<float> epilogue) {
  multiply_packed(a, b, c, epilogue);
}
void packed_f64(MatrixView<const double> a, const double* b, MatrixView<double> c,
                Epilogue<double> epilogue) {
  multiply_packed(a, b, c, epilogue);
}
void unpacked_f32(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c,
                  Epilogue<float> epilogue) {
  multiply_unpacked(a, b, c, epilogue);
}
void unpacked_f64(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c,
                  Epilogue<double> epilogue) {
  multiply_unpacked(a, b, c, epilogue);
}

}  // namespace regard::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::gemm {
namespace {

HWY_EXPORT(pack_f32);
HWY_EXPORT(pack_f64);
HWY_EXPORT(packed_f32);
HWY_EXPORT(packed_f64);
HWY_EXPORT(unpacked_f32);
HWY_EXPORT(unpacked_f64);

std::atomic<int64_t> operations_done{0};

std::string text(int64_t rows, int64_t columns) { return shape_text(std::array{rows, columns}); }

/// Checks A [M, K], B [rows, columns] and C, and handles empty products.
/// True if there is something to multiply.
template <class T>
bool prepare(const MatrixView<const T>& a, int64_t rows, int64_t columns, const MatrixView<T>& c,
             const Epilogue<T>& epilogue) {
  if (a.columns != rows) {
    throw ShapeError("[gemm] A " + text(a.rows, a.columns) + " and B " + text(rows, columns) +
                     " differ in K");
  }
  if (c.rows != a.rows || c.columns != columns) {
    throw ShapeError("[gemm] C " + text(c.rows, c.columns) + ", expected " + text(a.rows, columns) +
                     " (M, N)");
  }
  if (c.columns > 1 && c.column_stride != 1) {
    throw ShapeError("[gemm] C has column stride " + std::to_string(c.column_stride) + ", expected 1");
  }
  operations_done.fetch_add(2 * a.rows * a.columns * columns, std::memory_order_relaxed);
  if (a.columns > 0) return c.rows > 0 && c.columns > 0;
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.columns; ++j) {
      const T sum = epilogue.bias ? epilogue.bias[j] : T{0};
      T& to = c.row(i)[j];
      to = !epilogue.accumulate ? sum : epilogue.bias ? to + sum : to;
    }
  }
  return false;
}

}  // namespace

int64_t operations() { return operations_done.load(std::memory_order_relaxed); }

void multiply(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c,
              Epilogue<float> epilogue) {
  if (prepare(a, b.rows, b.columns, c, epilogue)) HWY_DYNAMIC_DISPATCH(unpacked_f32)(a, b, c, epilogue);
}
void multiply(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c,
              Epilogue<double> epilogue) {
  if (prepare(a, b.rows, b.columns, c, epilogue)) HWY_DYNAMIC_DISPATCH(unpacked_f64)(a, b, c, epilogue);
}
void multiply(MatrixView<const float> a, const Packed<float>& b, MatrixView<float> c,
              Epilogue<float> epilogue) {
  if (prepare(a, b.rows(), b.columns(), c, epilogue))
    HWY_DYNAMIC_DISPATCH(packed_f32)(a, b.data(), c, epilogue);
}
void multiply(MatrixView<const double> a, const Packed<double>& b, MatrixView<double> c,
              Epilogue<double> epilogue) {
  if (prepare(a, b.rows(), b.columns(), c, epilogue))
    HWY_DYNAMIC_DISPATCH(packed_f64)(a, b.data(), c, epilogue);
}

template <class T>
void Packed<T>::pack(std::span<const MatrixView<const T>> side_by_side) {
  const int64_t rows = side_by_side.empty() ? 0 : side_by_side[0].rows;
  int64_t columns = 0;
  for (const MatrixView<const T>& b : side_by_side) {
    if (b.rows != rows) {
      throw ShapeError("[gemm] packing " + text(b.rows, b.columns) + " beside " +
                       text(side_by_side[0].rows, side_by_side[0].columns) + ", which differ in K");
    }
    columns += b.columns;
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    HWY_DYNAMIC_DISPATCH(pack_f32)(side_by_side, rows, columns, buffer_);
  } else {
    HWY_DYNAMIC_DISPATCH(pack_f64)(side_by_side, rows, columns, buffer_);
  }
  rows_ = rows;
  columns_ = columns;
}

template class Packed<float>;
template class Packed<double>;

}  // namespace regard::gemm
#endif  // HWY_ONCE
