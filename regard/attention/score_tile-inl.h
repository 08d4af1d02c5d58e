// Scores of a tile of queries and a block of keys, S' [keys, kTile]: the products, then softcap, bias, ALiBi
// and masks in the order of attention.h. What is disallowed is -infinity, by selection.

#if defined(REGARD_ATTENTION_SCORE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_SCORE_TILE_INL_H_
#undef REGARD_ATTENTION_SCORE_TILE_INL_H_
#else
#define REGARD_ATTENTION_SCORE_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "regard/attention/attention_f32.h"
#include "regard/attention/dropout-inl.h"
#include "regard/attention/key_blocks.h"
#include "regard/attention/register_tile-inl.h"
#include "regard/attention/tile_layout-inl.h"
#include "regard/base/aligned_buffer.h"
#include "regard/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

namespace sn = regard::simd::HWY_NAMESPACE;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// exp(x - m), at most 1.5 ulp of the result for the difference as rounded; exactly 0 where x - m < -87.3, so
/// never subnormal; NaN stays NaN. The fraction of (x - m) log2 e is taken with one rounding, so that x and m
/// may be as large as floats are.
HWY_INLINE VF exp_difference(VF x, VF m) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF log2e = hn::Set(d, 1.44269504f);
  const VF bias =
      hn::Set(d, 12582912.f + 127.f);  // 1.5 2^23 rounds to an integer; 127 is the exponent's bias
  const VF difference = hn::Sub(x, m);
  const VF shifted = hn::MulAdd(difference, log2e, bias);
  const VF f = hn::MulSub(difference, log2e, hn::Sub(shifted, bias));  // in [-1/2, 1/2]
  VF p = hn::MulAdd(hn::Set(d, 1.5345811767e-04f), f, hn::Set(d, 1.3399931422e-03f));
  p = hn::MulAdd(p, f, hn::Set(d, 9.6184889598e-03f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5503287765e-02f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022646891e-01f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.9314720574e-01f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.f));  // 2^f
  const VF power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(hn::Lt(difference, hn::Set(d, -87.3f)), hn::Mul(p, power));
}

/// Scratch memory of a thread. Tiles have kTile columns.
struct Workspace {
  std::vector<Segment> segments;
  AlignedBuffer<float> q, o;                   ///< tiles of D, E and E rows
  AlignedBuffer<float> scores, saved;          ///< tiles of kKeyBlock rows
  AlignedBuffer<float> bias, mask, cap_slope;  ///< likewise, one row for each key of the segment
  AlignedBuffer<float> k_rows, v_rows, finite_rows;
  AlignedBuffer<float> d_o, d_scores, d_q, q_rows, d_o_rows;
};
inline Workspace& workspace() {
  static thread_local Workspace w;
  return w;
}

/// The part of a head that a tile sees.
template <class T>
struct Tile {
  const Head<T>& head;
  int64_t first, count;
  int vectors = static_cast<int>((count + kLanes - 1) / kLanes);

  /// From the first to the last key of a block that some query of the tile may not attend to.
  Range masked_keys(const KeyBlock& block) const {
    if (head.mask.data || head.bias.data || head.blocks) return {block.first_key(), block.end_key()};
    Range keys;
    for (const Segment& s : block.segments) {
      if (!s.partial) continue;
      if (keys.end == 0) keys.begin = s.begin;
      keys.end = s.end;
    }
    return keys;
  }
};

/// Keys are rows of a block's tiles: the row of key j.
HWY_INLINE float* tile_row(float* tile, const KeyBlock& block, int64_t j) {
  return tile + (j - block.begin) * kTile;
}

/// body(key's row in the tile, vector's first lane) for all vectors of a segment.
template <class Body>
HWY_INLINE void for_vectors_of(const Segment& s, const Body& body) {
  for (int64_t j = s.begin; j < s.end; ++j) {
    for (int v = s.first; v < s.last; ++v) body(j, v * kLanes);
  }
}

/// A [T, S] matrix as a tile of the segment's keys, one row of kTile for each; a row repeated for all queries
/// is spread.
template <class T, class X>
const float* segment_tile(const Tile<T>& tile, const MatrixView<const X>& x, const Segment& s,
                          AlignedBuffer<float>& buffer) {
  float* const to = buffer.grow(kKeyBlock * kTile);
  const auto part = x.row_range(tile.first, tile.first + tile.count).column_range(s.begin, s.end);
  if (x.row_stride != 0) {
    to_tile(part, 1.f, to);
  } else {
    for (int64_t j = 0; j < part.columns; ++j)
      std::fill_n(to + j * kTile, kTile, static_cast<float>(part(0, j)));
  }
  return to;
}

/// softcap tanh(s / softcap), and its slope 1 - tanh^2 if wanted.
template <class T>
HWY_INLINE void cap_scores(const Tile<T>& tile, const KeyBlock& block, const Segment& s, float* scores,
                           float* slope) {
  const DF d;
  const VF cap = hn::Set(d, tile.head.softcap), inverse = hn::Set(d, 1 / tile.head.softcap);
  for_vectors_of(s, [&](int64_t j, int64_t lane) REGARD_VECTOR_LAMBDA {
    float* const at = tile_row(scores, block, j) + lane;
    const VF t = sn::Tanh(d, hn::Mul(hn::Load(d, at), inverse));
    hn::Store(hn::Mul(cap, t), d, at);
    if (slope) hn::Store(hn::NegMulAdd(t, t, hn::Set(d, 1.f)), d, tile_row(slope, block, j) + lane);
  });
}

/// s - slope |i + offset - j|.
template <class T>
HWY_INLINE void add_alibi(const Tile<T>& tile, const KeyBlock& block, const Segment& s, float* scores) {
  const DF d;
  const VF slope = hn::Set(d, tile.head.slope);
  for_vectors_of(s, [&](int64_t j, int64_t lane) REGARD_VECTOR_LAMBDA {
    float* const at = tile_row(scores, block, j) + lane;
    const int64_t distance = tile.first + lane + tile.head.band.offset - j;
    const VF distances = hn::Iota(d, static_cast<float>(distance));
    hn::Store(hn::NegMulAdd(slope, hn::Abs(distances), hn::Load(d, at)), d, at);
  });
}

/// Where positions disallow: query n of the tile may attend to key j if low <= n <= high. Vectors that lie
/// inside for all keys of the segment are left alone.
template <class T>
HWY_INLINE void apply_band(const Tile<T>& tile, const KeyBlock& block, const Segment& s, float* scores) {
  const DF d;
  const Band& band = tile.head.band;
  const int64_t low = s.begin - band.right - tile.first - band.offset;
  const int64_t high = s.begin + band.left - tile.first - band.offset;
  constexpr int64_t kFar = 4 * (kTile + kKeyBlock);  // as good as any distance beyond
  const VF one = hn::Set(d, 1.f), nothing = hn::Set(d, -kInfinity);
  for (int v = s.first; v < s.last; ++v) {
    const int64_t lane = v * kLanes, last = std::min(tile.count, lane + kLanes) - 1;
    if (low + (s.end - 1 - s.begin) <= lane && high >= last) continue;
    VF lowest = hn::Set(d, static_cast<float>(std::clamp(low, -kFar, kFar)));
    VF highest = hn::Set(d, static_cast<float>(std::clamp(high, -kFar, kFar)));
    const VF n = hn::Iota(d, static_cast<float>(lane));
    float* at = tile_row(scores, block, s.begin) + lane;
    for (int64_t j = s.begin; j < s.end; ++j, at += kTile) {
      const auto inside = hn::And(hn::Ge(n, lowest), hn::Le(n, highest));
      hn::Store(hn::IfThenElse(inside, hn::Load(d, at), nothing), d, at);
      lowest = hn::Add(lowest, one);
      highest = hn::Add(highest, one);
    }
  }
}

/// The scores of a block. q is the scaled tile [D, kTile], keys the rows [block.first_key(),
/// block.end_key()). `cap_slope`, a tile, gets the softcap's derivative where there is one and is null where
/// it is not wanted.
template <class T>
void score_block(const Tile<T>& tile, const KeyBlock& block, const float* q, Rows keys, Workspace& w,
                 float* scores, float* cap_slope) {
  const DF d;
  const Head<T>& head = tile.head;
  for (const Segment& s : block.segments) {
    const int64_t lane = s.first * kLanes;
    multiply({.a = keys.data + (s.begin - block.first_key()) * keys.stride,
              .a_row = keys.stride,
              .a_step = 1,
              .b = q + lane,
              .b_step = kTile,
              .n = head.q.columns,
              .c = tile_row(scores, block, s.begin) + lane,
              .c_row = kTile},
             s.end - s.begin, s.last - s.first);
    if (head.softcap > 0) cap_scores(tile, block, s, scores, cap_slope);
    if (head.bias.data) {
      const float* const bias = segment_tile(tile, head.bias, s, w.bias);
      for_vectors_of(s, [&](int64_t j, int64_t at) REGARD_VECTOR_LAMBDA {
        float* const score = tile_row(scores, block, j) + at;
        const VF more = hn::Load(d, bias + (j - s.begin) * kTile + at), nothing = hn::Set(d, -kInfinity);
        const VF sum = hn::Add(hn::Load(d, score), more);
        hn::Store(hn::IfThenElse(hn::Eq(more, nothing), nothing, sum), d, score);
      });
    }
    if (head.slope != 0) add_alibi(tile, block, s, scores);
    if (head.mask.data) {
      const float* const mask = segment_tile(tile, head.mask, s, w.mask);
      for_vectors_of(s, [&](int64_t j, int64_t at) REGARD_VECTOR_LAMBDA {
        float* const score = tile_row(scores, block, j) + at;
        const auto may = hn::Ne(hn::Load(d, mask + (j - s.begin) * kTile + at), hn::Zero(d));
        hn::Store(hn::IfThenElse(may, hn::Load(d, score), hn::Set(d, -kInfinity)), d, score);
      });
    }
    if (s.partial) apply_band(tile, block, s, scores);
  }
}

/// Zeros for the keys that lists of blocks leave out between others: weighted_rows runs over them.
template <class T>
void clear_gaps(const Tile<T>& tile, const KeyBlock& block, float* p) {
  for (size_t n = 1; tile.head.blocks && n < block.segments.size(); ++n) {
    for (int64_t j = block.segments[n - 1].end; j < block.segments[n].begin; ++j) {
      std::fill_n(tile_row(p, block, j), kTile, 0.f);
    }
  }
}

/// C [columns, kTile] = alpha C + X' P for the rows x [keys, columns] of a block and a tile p [keys, kTile];
/// alpha null: C += X' P; `first`: C = X' P. The sum over the keys is finished before it meets C.
template <class T>
void weighted_rows(const Tile<T>& tile, const KeyBlock& block, Rows x, int64_t columns, const float* p,
                   const float* alpha, bool first, float* c) {
  block.for_each_group(tile.vectors, [&](int v, int last, Range keys) {
    if (keys == Range{} && !first) return;
    const int64_t lane = v * kLanes, key = keys == Range{} ? block.first_key() : keys.begin;
    multiply({.a = x.data + (key - block.first_key()) * x.stride,
              .a_row = 1,
              .a_step = x.stride,
              .b = p + (key - block.begin) * kTile + lane,
              .b_step = kTile,
              .n = keys.end - keys.begin,
              .c = c + lane,
              .c_row = kTile,
              .finish = first   ? Finish::store
                        : alpha ? Finish::rescale
                                : Finish::add,
              .alpha = alpha ? alpha + lane : nullptr},
             columns, last - v);
  });
}

/// Whether some row of a block that a query may not attend to holds a number that is not finite.
template <class T>
bool needs_guard(const Tile<T>& tile, const KeyBlock& block, Rows x, int64_t columns) {
  const Range keys = tile.masked_keys(block);
  const Rows from{x.data + (keys.end == 0 ? 0 : keys.begin - block.first_key()) * x.stride, x.stride};
  return !all_finite(from, keys.end - keys.begin, columns);
}

/// What 0 x infinity or 0 x NaN must not do to queries that may not attend: rows [keys, columns] of a block
/// with zeros for what is not finite. add_infinite puts it back where it belongs.
inline Rows finite_copy(Rows x, int64_t rows, int64_t columns, AlignedBuffer<float>& buffer) {
  const int64_t stride = (columns + kLanes - 1) / kLanes * kLanes;
  float* const to = buffer.grow(std::max<int64_t>(1, rows * stride));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < stride; ++c) {
      const float value = c < columns ? x.data[r * x.stride + c] : 0.f;
      to[r * stride + c] = std::isfinite(value) ? value : 0.f;
    }
  }
  return {to, stride};
}

/// C [columns, kTile] += X' P for the numbers of x that are not finite, where `scores` are not -infinity.
inline void add_infinite(const KeyBlock& block, Rows x, int64_t columns, const float* p, const float* scores,
                         float* c) {
  for (const Segment& s : block.segments) {
    for (int64_t j = s.begin; j < s.end; ++j) {
      const float* const row = x.data + (j - block.first_key()) * x.stride;
      const int64_t at = (j - block.begin) * kTile;
      for (int64_t column = 0; column < columns; ++column) {
        if (std::isfinite(row[column])) continue;
        for (int64_t n = s.first * kLanes; n < s.last * kLanes; ++n) {
          if (scores[at + n] != -kInfinity) c[column * kTile + n] += p[at + n] * row[column];
        }
      }
    }
  }
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ATTENTION_SCORE_TILE_INL_H_
