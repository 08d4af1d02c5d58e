#pragma once
// Matrix products. C = A B (+ bias) or C += A B (+ bias), f32 and f64, any strides of A and B.
//
// Bits: every element of C is the same whatever the number of rows,
// the layout of A and B, and whether B was packed before:
// one chain of fused multiply-adds over k in blocks of fixed length, the blocks added in order.

#include <cstdint>
#include <span>

#include "regard/base/aligned_buffer.h"
#include "regard/base/span.h"

namespace regard::gemm {

template <class T>
struct Epilogue {
  bool accumulate = false;  ///< C += instead of C =
  const T* bias = nullptr;  ///< [N], added to every row of the result
};

/// C [M, N] (+)= A [M, K] B [K, N] + bias.  C has column_stride 1.  K = 0 gives bias (or C unchanged when
/// accumulating). Single-threaded, safe from several threads.  Throws ShapeError if the shapes differ.
void multiply(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c,
              Epilogue<float> epilogue = {});
void multiply(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c,
              Epilogue<double> epilogue = {});

/// Operations of all products since the program began, an addition and a multiplication two: what benchmarks
/// divide by time.
int64_t operations();

/// A right-hand operand B [K, N] in the kernel's own order, for products that use it often (a recurrence's
/// weights). Several matrices with the same K can be packed side by side, as columns.
template <class T>
class Packed {
 public:
  Packed() = default;
  explicit Packed(MatrixView<const T> b) { pack(b); }
  /// Packs `b`, reusing the memory of an earlier pack.
  void pack(MatrixView<const T> b) { pack({&b, 1}); }
  /// Packs [b_0 | b_1 | ...] side by side.  Throws ShapeError if their K differ.
  void pack(std::span<const MatrixView<const T>> side_by_side);
  int64_t rows() const { return rows_; }        ///< K
  int64_t columns() const { return columns_; }  ///< N
  const T* data() const { return buffer_.data(); }

 private:
  AlignedBuffer<T> buffer_;
  int64_t rows_ = 0, columns_ = 0;
};

/// The same with a packed B: the same bits.
void multiply(MatrixView<const float> a, const Packed<float>& b, MatrixView<float> c,
              Epilogue<float> epilogue = {});
void multiply(MatrixView<const double> a, const Packed<double>& b, MatrixView<double> c,
              Epilogue<double> epilogue = {});

}  // namespace regard::gemm
