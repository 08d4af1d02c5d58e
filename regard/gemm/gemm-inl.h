// The kernels of gemm.cc, compiled once for every SIMD target (hwy/foreach_target.h).
// Included by gemm.cc alone.
//
// B is multiplied from panels of kWidth columns, row after row:
// panel p holds B[k, p kWidth + j] at [k kWidth + j], and zeros behind the last column.
// A tile of up to kRows rows by one panel stays in registers over one block of kBlock k.
//
// An element's bits: the first block's chain of multiply-adds starts at the bias (or 0),
// every further block's at 0; the blocks are added in order, to C if accumulating.
// Nothing else enters: neither M, N, strides nor packing.

#if defined(REGARD_GEMM_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_GEMM_GEMM_INL_H_
#undef REGARD_GEMM_GEMM_INL_H_
#else
#define REGARD_GEMM_GEMM_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "regard/base/aligned_buffer.h"
#include "regard/base/span.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace regard::gemm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;

/// Registers decide: 6 x 4 accumulators of 32, 6 x 2 of 16.
inline constexpr int64_t kRows = 6;
inline constexpr int kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
inline constexpr int64_t kBlock = 256;            ///< length of a block of k
inline constexpr int64_t kChunkRows = 8 * kRows;  ///< rows of A that are packed together
inline constexpr int64_t kPrefetchRows = 24;      ///< how many rows of B ahead

template <class T>
inline constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(Tag<T>())) * kVectors;
/// Panels that are multiplied together:
/// a block of them takes half a megabyte, half of a usual second-level cache.
template <class T>
inline constexpr int64_t kGroup = std::max<int64_t>(1, 2048 / (kWidth<T> * int64_t{sizeof(T)})) * kWidth<T>;

/// A product over one block of k: C [rows, columns] (+)= A [rows, k] B [k, columns] + bias.
template <class T>
struct Block {
  const T* a;
  int64_t a_row, a_column;  // strides
  const T* b;               // first panel
  int64_t b_row, b_panel;   // strides of a row inside a panel, and from panel to panel
  T* c;
  int64_t c_row;
  int64_t rows, columns, k;
  bool accumulate;
  const T* bias;  // may be null
};

/// The first `columns` of one row of the tile into C, adding to C or replacing it.
template <class T, class V>
HWY_INLINE void store_row(const V* sum, T* HWY_RESTRICT c, int64_t columns, bool accumulate) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  REGARD_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    const int64_t left = columns - j * lanes;
    T* const to = c + j * lanes;
    if (left >= lanes) {
      hn::StoreU(accumulate ? hn::Add(hn::LoadU(d, to), sum[j]) : sum[j], d, to);
    } else if (left > 0) {
      HWY_ALIGN T buffer[hn::MaxLanes(d)];
      hn::Store(sum[j], d, buffer);
      for (int64_t i = 0; i < left; ++i) to[i] = accumulate ? to[i] + buffer[i] : buffer[i];
    }
  }
}

/// One tile: kTileRows rows by one panel. `bias` has kWidth readable entries or is null.
template <int kTileRows, class T>
HWY_INLINE void tile(const T* HWY_RESTRICT a, int64_t a_row, int64_t a_column, const T* HWY_RESTRICT b,
                     int64_t b_row, int64_t k_end, T* HWY_RESTRICT c, int64_t c_row, int64_t columns,
                     bool accumulate, const T* bias) {
  const Tag<T> d;
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));
  using V = hn::Vec<Tag<T>>;
  V sum[kTileRows][kVectors];
  REGARD_UNROLL
  for (int i = 0; i < kTileRows; ++i) {
    REGARD_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = bias ? hn::LoadU(d, bias + j * lanes) : hn::Zero(d);
      hwy::Prefetch(c + i * c_row + j * lanes);
    }
  }
  for (int64_t k = 0; k < k_end; ++k) {
    V right[kVectors];
    REGARD_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      right[j] = hn::LoadU(d, b + j * lanes);
      hwy::Prefetch(b + kPrefetchRows * b_row + j * lanes);
    }
    REGARD_UNROLL
    for (int i = 0; i < kTileRows; ++i) {
      const V left = hn::Set(d, a[i * a_row]);
      REGARD_UNROLL
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
    a += a_column;
    b += b_row;
  }
  REGARD_UNROLL
  for (int i = 0; i < kTileRows; ++i) store_row<T, V>(sum[i], c + i * c_row, columns, accumulate);
}

/// kTileRows rows, `a` points to the first, by all panels of a block.
/// `tail_bias`: the last, partial panel's, padded.
template <int kTileRows, class T>
HWY_NOINLINE void strip(const Block<T>& x, const T* a, int64_t a_row, int64_t a_column, T* c,
                        const T* tail_bias) {
  const T* b = x.b;
  for (int64_t n = 0; n < x.columns; n += kWidth<T>, b += x.b_panel) {
    const int64_t columns = std::min(kWidth<T>, x.columns - n);
    const T* bias = !x.bias ? nullptr : columns < kWidth<T> ? tail_bias : x.bias + n;
    tile<kTileRows>(a, a_row, a_column, b, x.b_row, x.k, c + n, x.c_row, columns, x.accumulate, bias);
  }
}

/// Where the strips of `rows` rows begin: as even as possible, 13 rows are 4 + 4 + 5.
struct Strips {
  int64_t rows;
  int64_t count = (rows + kRows - 1) / kRows;
  int64_t operator()(int64_t s) const { return s * rows / count; }
};

/// Copies rows of A strip by strip, inside a strip k by k. Columns of A that lie side by side are read in one
/// pass over k, so that a cache line is read once; the next chunk's is fetched meanwhile.
template <class T>
void pack_rows(const T* a, int64_t a_row, int64_t a_column, Strips strips, int64_t k_end,
               T* HWY_RESTRICT to) {
  if (a_row == 1 && strips.rows == strips.count * kRows) {
    for (int64_t k = 0; k < k_end; ++k, a += a_column) {
      for (int64_t i = 0; i < strips.rows; i += 64 / sizeof(T)) hwy::Prefetch(a + kChunkRows + i);
      for (int64_t s = 0; s < strips.count; ++s) {
        std::memcpy(to + (s * k_end + k) * kRows, a + s * kRows, kRows * sizeof(T));
      }
    }
    return;
  }
  for (int64_t s = 0; s < strips.count; ++s) {
    for (int64_t k = 0; k < k_end; ++k) {
      for (int64_t i = strips(s); i < strips(s + 1); ++i) *to++ = a[i * a_row + k * a_column];
    }
  }
}

template <class T>
void multiply_block(const Block<T>& x) {
  constexpr decltype(&strip<1, T>) kRun[kRows] = {&strip<1, T>, &strip<2, T>, &strip<3, T>,
                                                  &strip<4, T>, &strip<5, T>, &strip<6, T>};
  static thread_local AlignedBuffer<T> scratch;
  HWY_ALIGN T tail_bias[kWidth<T>] = {};
  const int64_t tail = x.columns % kWidth<T>;
  if (x.bias) std::copy_n(x.bias + x.columns - tail, tail, tail_bias);
  for (int64_t first = 0; first < x.rows; first += kChunkRows) {
    const Strips strips{std::min(kChunkRows, x.rows - first)};
    const T* a = x.a + first * x.a_row;
    const bool pack_a = x.a_column != 1;
    if (pack_a) {
      T* const to = scratch.grow(kChunkRows * kBlock);
      pack_rows(a, x.a_row, x.a_column, strips, x.k, to);
      a = to;
    }
    for (int64_t s = 0; s < strips.count; ++s) {
      const int64_t rows = strips(s + 1) - strips(s);
      const T* from = a + strips(s) * (pack_a ? x.k : x.a_row);
      const int64_t a_row = pack_a ? 1 : x.a_row, a_column = pack_a ? rows : 1;
      T* const c = x.c + (first + strips(s)) * x.c_row;
      kRun[rows - 1](x, from, a_row, a_column, c, tail_bias);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Transposes the 4 x 4 squares that four vectors hold in their blocks of 128 bits.
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V* x) {
  const V even_low = hn::InterleaveLower(d, x[0], x[2]), odd_low = hn::InterleaveLower(d, x[1], x[3]);
  const V even_high = hn::InterleaveUpper(d, x[0], x[2]), odd_high = hn::InterleaveUpper(d, x[1], x[3]);
  x[0] = hn::InterleaveLower(d, even_low, odd_low);
  x[1] = hn::InterleaveUpper(d, even_low, odd_low);
  x[2] = hn::InterleaveLower(d, even_high, odd_high);
  x[3] = hn::InterleaveUpper(d, even_high, odd_high);
}

/// Transposes a square: to[i kWidth + j] = from[j ld + i].
HWY_INLINE void transpose(hn::FixedTag<double, 2> d, const double* from, int64_t ld, double* to) {
  const auto x0 = hn::LoadU(d, from), x1 = hn::LoadU(d, from + ld);
  hn::StoreU(hn::InterleaveLower(d, x0, x1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, x0, x1), d, to + kWidth<double>);
}
HWY_INLINE void transpose(hn::FixedTag<float, 4> d, const float* from, int64_t ld, float* to) {
  hn::Vec<decltype(d)> x[4];
  REGARD_UNROLL
  for (int i = 0; i < 4; ++i) x[i] = hn::LoadU(d, from + i * ld);
  transpose_blocks(d, x);
  REGARD_UNROLL
  for (int i = 0; i < 4; ++i) hn::StoreU(x[i], d, to + i * kWidth<float>);
}
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE void transpose(hn::FixedTag<float, 8> d, const float* from, int64_t ld, float* to) {
  hn::Vec<decltype(d)> x[8];
  REGARD_UNROLL
  for (int i = 0; i < 8; ++i) x[i] = hn::LoadU(d, from + i * ld);
  transpose_blocks(d, x);
  transpose_blocks(d, x + 4);
  REGARD_UNROLL
  for (int i = 0; i < 4; ++i) {
    hn::StoreU(hn::ConcatLowerLower(d, x[i + 4], x[i]), d, to + i * kWidth<float>);
    hn::StoreU(hn::ConcatUpperUpper(d, x[i + 4], x[i]), d, to + (i + 4) * kWidth<float>);
  }
}
template <class T>
inline constexpr int64_t kSquare = sizeof(T) == 4 ? 8 : 2;
#else
template <class T>
inline constexpr int64_t kSquare = 16 / sizeof(T);
#endif
#endif

/// to[k kWidth + n] = b(k, n) for b whose columns lie side by side in memory along k.
template <class T>
void pack_transposed(MatrixView<const T> b, T* HWY_RESTRICT to) {
  constexpr int64_t width = kWidth<T>;
  const int64_t ld = b.column_stride;
  int64_t k_done = 0, n_done = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr int64_t side = kSquare<T>;
  k_done = b.rows / side * side;
  n_done = b.columns / side * side;
  constexpr int64_t chunk = 64;  // of k, so that what is written stays in the first-level cache
  for (int64_t begin = 0; begin < k_done; begin += chunk) {
    for (int64_t n = 0; n < n_done; n += side) {
      for (int64_t k = begin; k < std::min(begin + chunk, k_done); k += side) {
        transpose(hn::FixedTag<T, side>(), b.data + n * ld + k, ld, to + k * width + n);
      }
    }
  }
#endif
  for (int64_t n = 0; n < b.columns; ++n) {
    for (int64_t k = n < n_done ? k_done : 0; k < b.rows; ++k) to[k * width + n] = b.data[n * ld + k];
  }
}

/// Packs at most kWidth columns into (a part of) one panel.
template <class T>
void pack_panel(MatrixView<const T> b, T* HWY_RESTRICT to) {
  constexpr int64_t width = kWidth<T>;
  if (b.column_stride == 1 && b.columns == width) {
    for (int64_t k = 0; k < b.rows; ++k) std::memcpy(to + k * width, b.row(k), width * sizeof(T));
  } else if (b.column_stride == 1) {
    for (int64_t k = 0; k < b.rows; ++k) std::copy_n(b.row(k), b.columns, to + k * width);
  } else if (b.row_stride == 1) {
    pack_transposed(b, to);
  } else {
    for (int64_t k = 0; k < b.rows; ++k) {
      for (int64_t n = 0; n < b.columns; ++n) to[k * width + n] = b(k, n);
    }
  }
}

/// Packs `b` as columns [first, first + b.columns) of panels with b.rows rows.
template <class T>
void pack_columns(MatrixView<const T> b, int64_t first, T* to) {
  constexpr int64_t width = kWidth<T>;
  for (int64_t n = 0; n < b.columns;) {
    const int64_t panel = (first + n) / width, inside = (first + n) % width;
    const int64_t end = std::min(b.columns, n + width - inside);
    pack_panel(b.column_range(n, end), to + panel * b.rows * width + inside);
    n = end;
  }
}

/// Zeros behind the last of `columns`.
template <class T>
void clear_padding(T* packed, int64_t rows, int64_t columns) {
  const int64_t inside = columns % kWidth<T>;
  if (inside == 0) return;
  T* const panel = packed + columns / kWidth<T> * rows * kWidth<T>;
  for (int64_t k = 0; k < rows; ++k)
    std::fill(panel + k * kWidth<T> + inside, panel + (k + 1) * kWidth<T>, T{0});
}

template <class T>
int64_t packed_size(int64_t rows, int64_t columns) {
  return (columns + kWidth<T> - 1) / kWidth<T> * kWidth<T> * rows;
}

template <class T>
void pack(std::span<const MatrixView<const T>> side_by_side, int64_t rows, int64_t columns,
          AlignedBuffer<T>& buffer) {
  T* const to = buffer.grow(packed_size<T>(rows, columns));
  int64_t first = 0;
  for (const MatrixView<const T>& b : side_by_side) {
    pack_columns(b, first, to);
    first += b.columns;
  }
  clear_padding(to, rows, columns);
}

/// The part of A, C and the epilogue that belongs to a block; B is left to the caller.
template <class T>
Block<T> block(MatrixView<const T> a, MatrixView<T> c, const Epilogue<T>& epilogue, int64_t k, int64_t n,
               int64_t n_end) {
  Block<T> x{};
  x.a = a.data + k * a.column_stride;
  x.a_row = a.row_stride;
  x.a_column = a.column_stride;
  x.c = c.data + n;
  x.c_row = c.row_stride;
  x.rows = c.rows;
  x.columns = n_end - n;
  x.k = std::min(kBlock, a.columns - k);
  x.accumulate = epilogue.accumulate || k > 0;
  x.bias = epilogue.bias && k == 0 ? epilogue.bias + n : nullptr;
  return x;
}

template <class T>
void multiply_packed(MatrixView<const T> a, const T* b, MatrixView<T> c, Epilogue<T> epilogue) {
  for (int64_t n = 0; n < c.columns; n += kGroup<T>) {
    const int64_t n_end = std::min(c.columns, n + kGroup<T>);
    for (int64_t k = 0; k < a.columns; k += kBlock) {
      Block<T> x = block(a, c, epilogue, k, n, n_end);
      x.b = b + n * a.columns + k * kWidth<T>;
      x.b_row = kWidth<T>;
      x.b_panel = a.columns * kWidth<T>;
      multiply_block(x);
    }
  }
}

template <class T>
void multiply_unpacked(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, Epilogue<T> epilogue) {
  static thread_local AlignedBuffer<T> scratch;
  // A single strip reads rows of B only once, so whole panels are read where they lie.
  const bool in_place = a.rows <= kRows && b.column_stride == 1;
  const int64_t n_in_place = in_place ? c.columns / kWidth<T> * kWidth<T> : 0;
  for (int64_t k = 0; k < a.columns && n_in_place > 0; k += kBlock) {
    Block<T> x = block(a, c, epilogue, k, 0, n_in_place);
    x.b = b.row(k);
    x.b_row = b.row_stride;
    x.b_panel = kWidth<T>;
    multiply_block(x);
  }
  for (int64_t n = n_in_place; n < c.columns; n += kGroup<T>) {
    const int64_t n_end = std::min(c.columns, n + kGroup<T>);
    for (int64_t k = 0; k < a.columns; k += kBlock) {
      Block<T> x = block(a, c, epilogue, k, n, n_end);
      const MatrixView<const T> part = b.row_range(k, k + x.k).column_range(n, n_end);
      pack<T>({&part, 1}, x.k, x.columns, scratch);
      x.b = scratch.data();
      x.b_row = kWidth<T>;
      x.b_panel = x.k * kWidth<T>;
      multiply_block(x);
    }
  }
}

}  // namespace regard::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_GEMM_GEMM_INL_H_
