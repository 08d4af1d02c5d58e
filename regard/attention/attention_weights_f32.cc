// The weights and scores of a tile whose statistics are known, and their sums over the queries.

#include "regard/attention/attention_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/attention/attention_weights_f32.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/attention/score_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

/// Copies what the segments hold of a tile into rows of queries.
void write_tile(const KeyBlock& block, int64_t first, int64_t count, const float* tile,
                const MatrixView<float>& to) {
  alignas(64) float ones[kTile];
  std::fill_n(ones, kTile, 1.f);
  for (const Segment& s : block.segments) {
    const int64_t lane = s.first * kLanes, end = std::min(count, s.last * kLanes);
    from_tile(tile + (s.begin - block.begin) * kTile + lane, ones,
              to.row_range(first + lane, first + end).column_range(s.begin, s.end));
  }
}

template <class T>
void weights_tile_on_target(const WeightsTile<T>& call) {
  const DF d;
  const Head<T>& head = call.head;
  const Tile<T> tile{head, call.first, call.count};
  const TileStatistics& statistics = call.statistics;
  Workspace& w = workspace();
  float* const q = w.q.grow(std::max<int64_t>(1, head.q.columns * kTile));
  float* const scores = w.scores.grow(kKeyBlock * kTile);
  to_tile(head.q.row_range(tile.first, tile.first + tile.count), head.scale, q);
  KeyBlocks(head, tile.first, tile.count, kLanes, w.segments).for_each([&](const KeyBlock& block) {
    const int64_t begin = block.first_key(), keys = block.end_key() - begin;
    const Rows k = float_rows(head.k.row_range(begin, begin + keys), 1, w.k_rows);
    score_block(tile, block, q, k, w, scores, nullptr);
    if (call.scores.data) write_tile(block, tile.first, tile.count, scores, call.scores);
    for (const Segment& s : block.segments) {
      for_vectors_of(s, [&](int64_t j, int64_t lane) REGARD_VECTOR_LAMBDA {
        float* const at = tile_row(scores, block, j) + lane;
        const VF score = hn::Load(d, at);
        const VF p = hn::Mul(exp_difference(score, hn::Load(d, statistics.m + lane)),
                             hn::Load(d, statistics.factor + lane));
        hn::Store(hn::IfThenZeroElse(hn::Eq(score, hn::Set(d, -kInfinity)), p), d, at);
      });
      for (int64_t j = s.begin; j < s.end && call.column_sums; ++j) {
        const float* const row = tile_row(scores, block, j);
        for (int64_t n = s.first * kLanes; n < std::min(tile.count, s.last * kLanes); ++n) {
          call.column_sums[j] += static_cast<double>(row[n]);
        }
      }
    }
    if (call.weights.data) write_tile(block, tile.first, tile.count, scores, call.weights);
  });
}

void weights_f32(const WeightsTile<float>& tile) { weights_tile_on_target(tile); }
void weights_bf16(const WeightsTile<BFloat16>& tile) { weights_tile_on_target(tile); }

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::attention {

HWY_EXPORT(weights_f32);
HWY_EXPORT(weights_bf16);

void weights_tile(const WeightsTile<float>& tile) { HWY_DYNAMIC_DISPATCH(weights_f32)(tile); }
void weights_tile(const WeightsTile<BFloat16>& tile) { HWY_DYNAMIC_DISPATCH(weights_bf16)(tile); }

}  // namespace regard::attention
#endif  // HWY_ONCE
