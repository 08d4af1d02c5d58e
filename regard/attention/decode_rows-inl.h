// How decoding reads a cache, compiled once for each instruction set; included by decode_f32.cc alone, after
// hwy/foreach_target.h.

#if defined(REGARD_ATTENTION_DECODE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_DECODE_ROWS_INL_H_
#undef REGARD_ATTENTION_DECODE_ROWS_INL_H_
#else
#define REGARD_ATTENTION_DECODE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "regard/base/bfloat16.h"
#include "regard/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> d;
using V = hn::Vec<decltype(d)>;
constexpr int64_t N = hn::MaxLanes(d);
constexpr int64_t kAhead = 16;         // listed rows from the one that is read to the one that is fetched
constexpr int64_t kAheadBytes = 6144;  // about that much of rows at equal distances

/// Reads rows whose columns stand side by side.
template <class T>
struct Dense {
  using Element = T;
  explicit Dense(int64_t /*column_stride*/) {}

  /// Asks for the cache line that begins at vector v behind `column`, a multiple of four vectors.
  HWY_INLINE void fetch(const T* row, int64_t column, int64_t v) const {
    if (v * N * static_cast<int64_t>(sizeof(T)) % 64 == 0) __builtin_prefetch(row + column + v * N);
  }
  HWY_INLINE V load(const float* row, int64_t column) const { return hn::LoadU(d, row + column); }
  HWY_INLINE V load(const BFloat16* row, int64_t column) const {
    const hn::Rebind<uint16_t, decltype(d)> half;
    const hn::RebindToUnsigned<decltype(d)> word;
    const auto bits = hn::LoadU(half, reinterpret_cast<const uint16_t*>(row + column));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(word, bits)));
  }
  /// The last `count` columns, zero behind them.
  HWY_INLINE V tail(const T* row, int64_t column, int64_t count) const {
    HWY_ALIGN T copy[N] = {};
    for (int64_t i = 0; i < count; ++i) copy[i] = row[column + i];
    return load(copy, 0);
  }
};

/// Reads rows with any distance between columns.
template <class T>
struct Strided {
  using Element = T;
  int64_t stride;
  explicit Strided(int64_t column_stride) : stride(column_stride) {}

  HWY_INLINE void fetch(const T*, int64_t, int64_t) const {}
  HWY_INLINE V load(const T* row, int64_t column) const { return tail(row, column, N); }
  HWY_INLINE V tail(const T* row, int64_t column, int64_t count) const {
    HWY_ALIGN T copy[N] = {};
    for (int64_t i = 0; i < count; ++i) copy[i] = row[(column + i) * stride];
    return Dense<T>(1).load(copy, 0);
  }
};

/// Rows at equal distances. `ahead` is the distance to a row that is fetched.
template <class T>
struct Evenly {
  const T* first;
  int64_t stride, ahead;

  Evenly() = default;
  Evenly(const T* row, int64_t row_stride, int64_t columns)
      : first(row),
        stride(row_stride),
        ahead(row_stride * std::max<int64_t>(1, kAheadBytes / (columns * size))) {}
  HWY_INLINE const T* operator[](int64_t i) const { return first + i * stride; }
  HWY_INLINE const T* soon(int64_t i) const { return first + i * stride + ahead; }
  HWY_INLINE Evenly from(int64_t i) const {
    Evenly rows = *this;
    rows.first += i * stride;
    return rows;
  }
  static constexpr auto size = static_cast<int64_t>(sizeof(T));
};

/// Rows anywhere; those up to kAhead behind the last one are known too.
template <class T>
struct Listed {
  const T* const* rows;

  HWY_INLINE const T* operator[](int64_t i) const { return rows[i]; }
  HWY_INLINE const T* soon(int64_t i) const { return rows[i + kAhead]; }
  HWY_INLINE Listed from(int64_t i) const { return {rows + i}; }
};

/// Lane i of the result is the sum of x[i]'s lanes.
HWY_INLINE V sums_of_lanes(const V* x) {
#if HWY_TARGET == HWY_SCALAR
  return x[0];
#else
  const hn::Repartition<double, decltype(d)> pairs;
  const auto interleaved = [](V a, V b) REGARD_VECTOR_LAMBDA {
    return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  const auto four = [&](int64_t i) REGARD_VECTOR_LAMBDA {  // per block of 128 bits: the sums of four vectors
    const auto a = hn::BitCast(pairs, interleaved(x[i], x[i + 1]));
    const auto b = hn::BitCast(pairs, interleaved(x[i + 2], x[i + 3]));
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)),
                   hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)));
  };
#if HWY_TARGET <= HWY_AVX3
  const auto halves = [](V a, V b) REGARD_VECTOR_LAMBDA {
    return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
  };
  const V even = halves(four(0), four(8)), odd = halves(four(4), four(12));
  return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even),
                 hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even)));
#elif HWY_TARGET <= HWY_AVX2
  const V a = four(0), b = four(4);
  return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
#else
  return four(0);
#endif
#endif
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
