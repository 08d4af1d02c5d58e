// The products of attention's tiles, for every SIMD target: C [rows, vectors] (+)= A B over n, where B's rows
// and C's are vectors side by side and A is read element by element from where it lies, in any order: keys
// and values are multiplied without being packed or transposed.
//
//   scores     C = S'  [keys, queries]    A = K [keys, D]           B = Q' [D, queries]
//   output     C = O'  [E, queries]       A = V [keys, E], along E  B = P' [keys, queries]
//   gradients  C = dK  [keys, D]          A = dS' [keys, queries]   B = Q  [queries, D]
//
// An element's bits: one chain of fused multiply-adds over n from 0, then one operation with C.

#if defined(REGARD_ATTENTION_REGISTER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_REGISTER_TILE_INL_H_
#undef REGARD_ATTENTION_REGISTER_TILE_INL_H_
#else
#define REGARD_ATTENTION_REGISTER_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "regard/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
inline constexpr int64_t kLanes = hn::MaxLanes(DF());

/// What becomes of the sums.
enum class Finish {
  store,    ///< C = sum
  add,      ///< C = C + sum
  rescale,  ///< C = C alpha + sum, alpha for each lane
};

struct Product {
  const float* a;
  int64_t a_row, a_step;  ///< strides: to the next row of C, to the next of n
  const float* b;
  int64_t b_step;
  int64_t n;
  float* c;
  int64_t c_row;
  Finish finish = Finish::store;
  const float* alpha = nullptr;
};

/// Registers decide how many vectors and rows a tile of them has: 24 accumulators of 32, 12 of 16.
inline constexpr int kMostVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
constexpr int most_rows(int vectors) {
  if (HWY_TARGET <= HWY_AVX3) return vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
  return vectors == 2 ? 6 : 12;
}

/// kRows rows of C by kVectors vectors.
template <int kRows, int kVectors>
HWY_NOINLINE void register_tile(const Product& p) {
  const DF d;
  VF sum[kRows][kVectors];
  REGARD_UNROLL
  for (int i = 0; i < kRows; ++i) {
    REGARD_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT a = p.a;
  const float* HWY_RESTRICT b = p.b;
  const int64_t a_row = p.a_row, a_step = p.a_step, b_step = p.b_step;
  for (int64_t n = p.n; n > 0; --n) {
    VF right[kVectors];
    REGARD_UNROLL
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * kLanes);
    REGARD_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const VF left = hn::Set(d, a[i * a_row]);
      REGARD_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
    }
    a += a_step;
    b += b_step;
  }
  float* HWY_RESTRICT c = p.c;
  const int64_t c_row = p.c_row;
  const float* const alpha = p.alpha;
  const Finish finish = p.finish;
  if (finish == Finish::store) {
    REGARD_UNROLL
    for (int i = 0; i < kRows; ++i, c += c_row) {
      REGARD_UNROLL
      for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[i][v], d, c + v * kLanes);
    }
  } else if (finish == Finish::add) {
    REGARD_UNROLL
    for (int i = 0; i < kRows; ++i, c += c_row) {
      REGARD_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::Add(hn::LoadU(d, c + v * kLanes), sum[i][v]), d, c + v * kLanes);
      }
    }
  } else {
    VF times[kVectors];
    REGARD_UNROLL
    for (int v = 0; v < kVectors; ++v) times[v] = hn::LoadU(d, alpha + v * kLanes);
    REGARD_UNROLL
    for (int i = 0; i < kRows; ++i, c += c_row) {
      REGARD_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::MulAdd(hn::LoadU(d, c + v * kLanes), times[v], sum[i][v]), d, c + v * kLanes);
      }
    }
  }
}

using RegisterTile = void (*)(const Product&);

template <int kVectors, size_t... kRow>
constexpr auto register_tiles(std::index_sequence<kRow...>) {
  return std::array<RegisterTile, sizeof...(kRow)>{&register_tile<static_cast<int>(kRow) + 1, kVectors>...};
}

/// `rows` rows of C by kVectors vectors, in strips as even as possible: 13 rows of up to 6 are 4 + 4 + 5.
template <int kVectors>
HWY_INLINE void multiply_strips(Product p, int64_t rows) {
  constexpr int kMost = most_rows(kVectors);
  static constexpr auto kRun = register_tiles<kVectors>(std::make_index_sequence<kMost>());
  const int64_t strips = (rows + kMost - 1) / kMost;
  const float* const a = p.a;
  float* const c = p.c;
  for (int64_t s = 0; s < strips; ++s) {
    const int64_t first = s * rows / strips, last = (s + 1) * rows / strips;
    p.a = a + first * p.a_row;
    p.c = c + first * p.c_row;
    kRun[static_cast<size_t>(last - first - 1)](p);
  }
}

/// `rows` rows of C by `vectors` vectors.
HWY_INLINE void multiply(Product p, int64_t rows, int vectors) {
  while (vectors > 0) {
    // Five as three and two: one alone has too few chains for as many loads.
    const int now = vectors > kMostVectors ? (vectors == 5 && kMostVectors == 4 ? 3 : kMostVectors) : vectors;
    if (now == 1) multiply_strips<1>(p, rows);
    if (now == 2) multiply_strips<2>(p, rows);
    if constexpr (kMostVectors > 2) {
      if (now == 3) multiply_strips<3>(p, rows);
      if (now == 4) multiply_strips<4>(p, rows);
    }
    vectors -= now;
    p.b += now * kLanes;
    p.c += now * kLanes;
    if (p.alpha) p.alpha += now * kLanes;
  }
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ATTENTION_REGISTER_TILE_INL_H_
