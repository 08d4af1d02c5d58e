// Between rows in memory and tiles, where queries lie side by side in vectors: X' [columns, kTile].

#if defined(REGARD_ATTENTION_TILE_LAYOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_TILE_LAYOUT_INL_H_
#undef REGARD_ATTENTION_TILE_LAYOUT_INL_H_
#else
#define REGARD_ATTENTION_TILE_LAYOUT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "regard/attention/key_blocks.h"
#include "regard/attention/register_tile-inl.h"
#include "regard/base/aligned_buffer.h"
#include "regard/base/bfloat16.h"
#include "regard/base/span.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

/// A whole vector of floats from floats, bfloat16 or bool (1 and 0).
HWY_INLINE VF load(const float* p) { return hn::LoadU(DF(), p); }
HWY_INLINE VF load(const BFloat16* p) {
  const hn::Rebind<uint32_t, DF> du32;
  const hn::Rebind<uint16_t, DF> du16;
  const auto half = hn::LoadU(du16, reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(du32, half)));
}
HWY_INLINE VF load(const bool* p) {
  const hn::Rebind<int32_t, DF> di32;
  const hn::Rebind<uint8_t, DF> du8;
  return hn::ConvertTo(DF(), hn::PromoteTo(di32, hn::LoadU(du8, reinterpret_cast<const uint8_t*>(p))));
}

HWY_INLINE void store(VF x, float* p) { hn::StoreU(x, DF(), p); }
HWY_INLINE void store(VF x, BFloat16* p) {
  const hn::Rebind<int32_t, DF> di32;
  const hn::Rebind<uint32_t, DF> du32;
  const hn::Rebind<uint16_t, DF> du16;
  const auto word = hn::BitCast(du32, x);
  const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(du32, 1));
  const auto rounded = hn::Add(word, hn::Add(odd, hn::Set(du32, 0x7fff)));
  const auto quiet = hn::Or(word, hn::Set(du32, 0x400000));  // NaN stays NaN
  const auto is_number = hn::RebindMask(du32, hn::Eq(x, x));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(is_number, rounded, quiet));
  hn::StoreU(hn::DemoteTo(du16, hn::BitCast(di32, upper)), du16, reinterpret_cast<uint16_t*>(p));
}

/// The first n <= kLanes of a row with any stride; zeros behind them.
template <class T>
HWY_INLINE VF load_some(const T* p, int64_t step, int64_t n) {
  if (step == 1 && n == kLanes) return load(p);
  HWY_ALIGN float buffer[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<float>(p[i * step]);
  return hn::Load(DF(), buffer);
}
template <class T>
HWY_INLINE void store_some(VF x, T* p, int64_t step, int64_t n) {
  if (step == 1 && n == kLanes) return store(x, p);
  HWY_ALIGN float buffer[kLanes];
  hn::Store(x, DF(), buffer);
  for (int64_t i = 0; i < n; ++i) p[i * step] = static_cast<T>(buffer[i]);
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose(VF (&)[kLanes]) {}
#else
/// The 4 x 4 squares in the 128-bit blocks of four vectors.
HWY_INLINE void transpose_in_blocks(VF* x) {
  const DF d;
  const VF even_low = hn::InterleaveLower(d, x[0], x[2]), odd_low = hn::InterleaveLower(d, x[1], x[3]);
  const VF even_high = hn::InterleaveUpper(d, x[0], x[2]), odd_high = hn::InterleaveUpper(d, x[1], x[3]);
  x[0] = hn::InterleaveLower(d, even_low, odd_low);
  x[1] = hn::InterleaveUpper(d, even_low, odd_low);
  x[2] = hn::InterleaveLower(d, even_high, odd_high);
  x[3] = hn::InterleaveUpper(d, even_high, odd_high);
}

/// A square of kLanes vectors: first inside blocks of 128 bits, then the blocks.
HWY_INLINE void transpose(VF (&x)[kLanes]) {
  REGARD_UNROLL
  for (int i = 0; i < kLanes; i += 4) transpose_in_blocks(x + i);
#if HWY_TARGET <= HWY_AVX3
  const DF d;
  REGARD_UNROLL
  for (int i = 0; i < 4; ++i) {
    const VF x0 = x[i], x1 = x[i + 4], x2 = x[i + 8], x3 = x[i + 12];
    const VF even01 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x1), x0);
    const VF even23 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x3), x2);
    const VF odd01 = hn::OddEvenBlocks(x1, hn::SwapAdjacentBlocks(x0));
    const VF odd23 = hn::OddEvenBlocks(x3, hn::SwapAdjacentBlocks(x2));
    x[i] = hn::ConcatLowerLower(d, even23, even01);
    x[i + 4] = hn::ConcatLowerLower(d, odd23, odd01);
    x[i + 8] = hn::ConcatUpperUpper(d, even23, even01);
    x[i + 12] = hn::ConcatUpperUpper(d, odd23, odd01);
  }
#elif HWY_TARGET <= HWY_AVX2
  const DF d;
  REGARD_UNROLL
  for (int i = 0; i < 4; ++i) {
    const VF x0 = x[i], x1 = x[i + 4];
    x[i] = hn::ConcatLowerLower(d, x1, x0);
    x[i + 4] = hn::ConcatUpperUpper(d, x1, x0);
  }
#endif
}
#endif

/// to[c kTile + r] = factor x(r, c), zeros behind the last row of x up to a whole vector.
template <class T>
HWY_NOINLINE void to_tile(const MatrixView<const T>& x, float factor, float* HWY_RESTRICT to) {
  const DF d;
  const VF times = hn::Set(d, factor);
  for (int64_t r = 0; r < x.rows; r += kLanes) {
    const int64_t rows = std::min(kLanes, x.rows - r);
    for (int64_t c = 0; c < x.columns; c += kLanes) {
      const int64_t columns = std::min(kLanes, x.columns - c);
      float* const at = to + c * kTile + r;
      VF square[kLanes];
      if (rows == kLanes && columns == kLanes && x.column_stride == 1) {
        REGARD_UNROLL
        for (int i = 0; i < kLanes; ++i) square[i] = load(x.row(r + i) + c);
        transpose(square);
        REGARD_UNROLL
        for (int i = 0; i < kLanes; ++i) hn::Store(hn::Mul(square[i], times), d, at + i * kTile);
        continue;
      }
      for (int i = 0; i < kLanes; ++i) {
        square[i] =
            i < rows ? load_some(x.row(r + i) + c * x.column_stride, x.column_stride, columns) : hn::Zero(d);
      }
      transpose(square);
      for (int i = 0; i < kLanes; ++i) {
        if (i < columns) hn::Store(hn::Mul(square[i], times), d, at + i * kTile);
      }
    }
  }
}

/// to(r, c) = factor[r] from[c kTile + r].
template <class T>
HWY_NOINLINE void from_tile(const float* HWY_RESTRICT from, const float* HWY_RESTRICT factor,
                            const MatrixView<T>& to) {
  const DF d;
  for (int64_t r = 0; r < to.rows; r += kLanes) {
    const int64_t rows = std::min(kLanes, to.rows - r);
    const VF times = hn::Load(d, factor + r);
    for (int64_t c = 0; c < to.columns; c += kLanes) {
      const int64_t columns = std::min(kLanes, to.columns - c);
      const float* const at = from + c * kTile + r;
      VF square[kLanes];
      if (rows == kLanes && columns == kLanes && to.column_stride == 1) {
        REGARD_UNROLL
        for (int i = 0; i < kLanes; ++i) square[i] = hn::Mul(hn::Load(d, at + i * kTile), times);
        transpose(square);
        REGARD_UNROLL
        for (int i = 0; i < kLanes; ++i) store(square[i], to.row(r + i) + c);
        continue;
      }
      for (int i = 0; i < kLanes; ++i) {
        square[i] = i < columns ? hn::Mul(hn::Load(d, at + i * kTile), times) : hn::Zero(d);
      }
      transpose(square);
      for (int i = 0; i < kLanes; ++i) {
        if (i < rows) store_some(square[i], to.row(r + i) + c * to.column_stride, to.column_stride, columns);
      }
    }
  }
}

/// Rows of floats, one beside the other.
struct Rows {
  const float* data;
  int64_t stride;
};

/// The rows of x as floats: where they lie if they can be read there, else a copy, zero behind the last
/// column up to a multiple of `pad`.
template <class T>
Rows float_rows(const MatrixView<const T>& x, int64_t pad, AlignedBuffer<float>& buffer) {
  if constexpr (std::is_same_v<T, float>) {
    if ((x.column_stride == 1 || x.columns <= 1) && x.columns % pad == 0) return {x.data, x.row_stride};
  }
  const int64_t stride = (x.columns + kLanes - 1) / kLanes * kLanes;
  float* const to = buffer.grow(std::max<int64_t>(1, x.rows * stride));
  for (int64_t r = 0; r < x.rows; ++r) {
    int64_t c = 0;
    for (; x.column_stride == 1 && c + kLanes <= x.columns; c += kLanes) {
      hn::Store(load(x.row(r) + c), DF(), to + r * stride + c);
    }
    for (; c < x.columns; c += kLanes) {
      const VF some =
          load_some(x.row(r) + c * x.column_stride, x.column_stride, std::min(kLanes, x.columns - c));
      hn::Store(some, DF(), to + r * stride + c);
    }
  }
  return {to, stride};
}

/// Whether none of the numbers is infinite or NaN.
inline bool all_finite(Rows x, int64_t rows, int64_t columns) {
  const DF d;
  const VF zero = hn::Zero(d);
  VF even = zero, odd = zero;  // sums of 0 x: NaN if one is not finite
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = x.data + r * x.stride;
    int64_t c = 0;
    for (; c + 2 * kLanes <= columns; c += 2 * kLanes) {
      even = hn::MulAdd(load(row + c), zero, even);
      odd = hn::MulAdd(load(row + c + kLanes), zero, odd);
    }
    for (; c < columns; c += kLanes) {
      even = hn::MulAdd(load_some(row + c, 1, std::min(kLanes, columns - c)), zero, even);
    }
  }
  return hn::AllTrue(d, hn::Eq(hn::Add(even, odd), zero));
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ATTENTION_TILE_LAYOUT_INL_H_
