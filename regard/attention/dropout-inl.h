// Dropout of a tile: DropoutMask for all queries of a vector at once.

#if defined(REGARD_ATTENTION_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_DROPOUT_INL_H_
#undef REGARD_ATTENTION_DROPOUT_INL_H_
#else
#define REGARD_ATTENTION_DROPOUT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "regard/attention/key_blocks.h"
#include "regard/attention/problem.h"
#include "regard/attention/register_tile-inl.h"
#include "regard/simd/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

using DU = hn::Rebind<uint32_t, DF>;
using VU = hn::Vec<DU>;

/// Multiplies one vector of queries, from lane `lane` of the tile, of keys [begin, end) of a tile of weights
/// (or of their gradients) by what dropout keeps. `at` is the row of key `begin`.
HWY_INLINE void drop_vector(const DropoutMask& dropout, int64_t first_query, int64_t begin, int64_t end,
                            float* at) {
  const DF d;
  const DU du;
  HWY_ALIGN uint32_t query[kLanes], upper[kLanes];
  for (int64_t n = 0; n < kLanes; ++n) {
    const auto counter = dropout.counter(first_query + n, 0);
    query[n] = counter[1];
    upper[n] = counter[3];
  }
  const VF factor = hn::Set(d, static_cast<float>(dropout.factor));
  const VU threshold = hn::Set(du, static_cast<uint32_t>(std::min<uint64_t>(dropout.threshold, 0xFFFFFFFFu)));
  const bool none = dropout.threshold > 0xFFFFFFFFu;
  for (int64_t j4 = begin / 4; j4 * 4 < end; ++j4) {
    const auto counter = dropout.counter(0, j4);
    VU words[4] = {hn::Set(du, counter[0]), hn::Load(du, query), hn::Set(du, counter[2]),
                   hn::Xor(hn::Load(du, upper), hn::Set(du, counter[3]))};
    regard::simd::HWY_NAMESPACE::philox_lanes(words, dropout.key);
    for (int64_t j = std::max(begin, j4 * 4); j < std::min(end, j4 * 4 + 4); ++j, at += kTile) {
      const auto dropped = hn::RebindMask(d, hn::Lt(words[j % 4], threshold));
      const VF kept = hn::IfThenZeroElse(dropped, hn::Mul(hn::Load(d, at), factor));
      hn::Store(none ? hn::Zero(d) : kept, d, at);
    }
  }
}

/// The same for all segments of a block.
inline void apply_dropout(const DropoutMask& dropout, int64_t first_query, const KeyBlock& block, float* p) {
  for (const Segment& s : block.segments) {
    for (int64_t lane = s.first * kLanes; lane < s.last * kLanes; lane += kLanes) {
      drop_vector(dropout, first_query + lane, s.begin, s.end, p + (s.begin - block.begin) * kTile + lane);
    }
  }
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_ATTENTION_DROPOUT_INL_H_
