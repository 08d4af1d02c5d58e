// Exact attention forward: a tile of queries meets the keys block by block (the running softmax of Milakov
// and Gimelshein 2018). For each query, in its lane, after every block:
//   m = the largest score so far     l = sum_j exp(s_j - m)     o = sum_j exp(s_j - m) v_j

#include "regard/attention/attention_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/attention/attention_forward_f32.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "regard/attention/score_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

/// The statistics of a tile's queries.
struct Running {
  alignas(64) float m[kTile], l[kTile];
  alignas(64) float alpha[kTile];  ///< what the last block multiplied l and o by
};

/// m, alpha and the weights exp(s - m) of kVectors vectors from `vector` on, in place; l includes them. All
/// of these vectors have the same keys.
template <int kVectors>
HWY_INLINE void softmax_vectors(const KeyBlock& block, int vector, float* scores, Running& r) {
  const DF d;
  const int64_t lane = vector * kLanes;
  VF m[kVectors], sum[kVectors];
  REGARD_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    m[v] = hn::Load(d, r.m + lane + v * kLanes);
    sum[v] = hn::Zero(d);
  }
  for (const Segment& s : block.segments) {
    if (vector < s.first || vector >= s.last) continue;
    const float* at = tile_row(scores, block, s.begin) + lane;
    for (int64_t n = s.end - s.begin; n > 0; --n, at += kTile) {
      REGARD_UNROLL
      for (int v = 0; v < kVectors; ++v) m[v] = hn::Max(m[v], hn::Load(d, at + v * kLanes));
    }
  }
  VF base[kVectors];
  REGARD_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const VF nothing = hn::Set(d, -kInfinity);
    base[v] = hn::IfThenElse(hn::Eq(m[v], nothing), hn::Zero(d), m[v]);
    const VF alpha = exp_difference(hn::Load(d, r.m + lane + v * kLanes), base[v]);
    hn::Store(alpha, d, r.alpha + lane + v * kLanes);
    hn::Store(m[v], d, r.m + lane + v * kLanes);
  }
  for (const Segment& s : block.segments) {
    if (vector < s.first || vector >= s.last) continue;
    float* at = tile_row(scores, block, s.begin) + lane;
    for (int64_t n = s.end - s.begin; n > 0; --n, at += kTile) {
      REGARD_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const VF p = exp_difference(hn::Load(d, at + v * kLanes), base[v]);
        sum[v] = hn::Add(sum[v], p);
        hn::Store(p, d, at + v * kLanes);
      }
    }
  }
  REGARD_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    float* const l = r.l + lane + v * kLanes;
    hn::Store(hn::MulAdd(hn::Load(d, l), hn::Load(d, r.alpha + lane + v * kLanes), sum[v]), d, l);
  }
}

/// The same for all vectors of the tile.
HWY_NOINLINE void softmax_block(const KeyBlock& block, int vectors, float* scores, Running& r) {
  block.for_each_group(vectors, [&](int first, int last, Range) {
    for (int v = first; v < last; v += kMostVectors) {
      const int now = std::min(kMostVectors, last - v);
      if (now == 1) softmax_vectors<1>(block, v, scores, r);
      if (now == 2) softmax_vectors<2>(block, v, scores, r);
      if constexpr (kMostVectors > 2) {
        if (now == 3) softmax_vectors<3>(block, v, scores, r);
        if (now == 4) softmax_vectors<4>(block, v, scores, r);
      }
    }
  });
}

/// The sink joins the sums. `rescale` becomes what each row of o is to be multiplied by.
template <class T>
void finish(const Head<T>& head, int vectors, const Running& r, float* rescale, TileStatistics* statistics) {
  const DF d;
  const VF nothing = hn::Set(d, -kInfinity);
  for (int64_t lane = 0; lane < vectors * kLanes; lane += kLanes) {
    VF m = hn::Load(d, r.m + lane), l = hn::Load(d, r.l + lane), old = hn::Set(d, 1.f);
    if (head.has_sink) {
      const VF sink = hn::Set(d, head.sink), larger = hn::Max(m, sink);
      const VF base = hn::IfThenElse(hn::Eq(larger, nothing), hn::Zero(d), larger);
      old = exp_difference(m, base);
      l = hn::MulAdd(l, old, exp_difference(sink, base));
      m = larger;
    }
    const auto empty = hn::Eq(l, hn::Zero(d));
    const VF factor = hn::IfThenElse(empty, hn::Zero(d), hn::Div(hn::Set(d, 1.f), l));
    hn::Store(hn::Mul(factor, old), d, rescale + lane);
    if (!statistics) continue;
    const VF logarithm = hn::IfThenElse(hn::Eq(l, l), hn::Log(d, l), l);
    hn::Store(hn::IfThenElse(empty, hn::Zero(d), m), d, statistics->m + lane);
    hn::Store(factor, d, statistics->factor + lane);
    hn::Store(hn::IfThenElse(empty, nothing, hn::Add(m, logarithm)), d, statistics->log_sum_exp + lane);
  }
}

template <class T>
void forward_tile_on_target(const ForwardTile<T>& call) {
  const Head<T>& head = call.head;
  const Tile<T> tile{head, call.first, call.count};
  const int64_t D = head.q.columns, E = head.v.columns;
  Workspace& w = workspace();
  float* const q = w.q.grow(std::max<int64_t>(1, D * kTile));
  float* const o = w.o.grow(std::max<int64_t>(1, E * kTile));
  float* const scores = w.scores.grow(kKeyBlock * kTile);
  to_tile(head.q.row_range(tile.first, tile.first + tile.count), head.scale, q);
  Running running;
  std::fill_n(running.m, kTile, -kInfinity);
  std::fill_n(running.l, kTile, 0.f);
  bool first = true;
  KeyBlocks(head, tile.first, tile.count, kLanes, w.segments).for_each([&](const KeyBlock& block) {
    const int64_t begin = block.first_key(), keys = block.end_key() - begin;
    const Rows k = float_rows(head.k.row_range(begin, begin + keys), 1, w.k_rows);
    score_block(tile, block, q, k, w, scores, nullptr);
    const Rows v = float_rows(head.v.row_range(begin, begin + keys), 1, w.v_rows);
    const bool guarded = needs_guard(tile, block, v, E);
    const Rows finite = guarded ? finite_copy(v, keys, E, w.finite_rows) : v;
    if (guarded) std::copy_n(scores, kKeyBlock * kTile, w.saved.grow(kKeyBlock * kTile));
    softmax_block(block, tile.vectors, scores, running);
    if (head.dropout.active()) apply_dropout(head.dropout, tile.first, block, scores);
    clear_gaps(tile, block, scores);
    weighted_rows(tile, block, finite, E, scores, running.alpha, first, o);
    if (guarded) add_infinite(block, v, E, scores, w.saved.data(), o);
    first = false;
  });
  if (first) std::fill_n(o, E * kTile, 0.f);
  alignas(64) float rescale[kTile];
  finish(head, tile.vectors, running, rescale, call.statistics);
  from_tile(o, rescale, call.out.row_range(tile.first, tile.first + tile.count));
}

void forward_f32(const ForwardTile<float>& tile) { forward_tile_on_target(tile); }
void forward_bf16(const ForwardTile<BFloat16>& tile) { forward_tile_on_target(tile); }

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::attention {

HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_bf16);

void forward_tile(const ForwardTile<float>& tile) { HWY_DYNAMIC_DISPATCH(forward_f32)(tile); }
void forward_tile(const ForwardTile<BFloat16>& tile) { HWY_DYNAMIC_DISPATCH(forward_bf16)(tile); }

}  // namespace regard::attention
#endif  // HWY_ONCE
