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

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

using DU = hn::Rebind<uint32_t, DF>;
using VU = hn::Vec<DU>;

#if HWY_TARGET != HWY_SCALAR
/// The upper and lower halves of a's products with a constant.
HWY_INLINE void multiply_wide(VU a, uint32_t constant, VU& upper, VU& lower) {
  const DU d;
  const hn::Repartition<uint64_t, DU> d64;
  const VU b = hn::Set(d, constant);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))), b);
  upper = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  lower = hn::Mul(a, b);
}

/// philox of regard/base/random.h in every lane.
HWY_INLINE void philox_lanes(VU (&counter)[4], std::array<uint32_t, 2> key) {
  const DU d;
  for (int round = 0; round < 10; ++round) {
    VU upper0, lower0, upper1, lower1;
    multiply_wide(counter[0], 0xD2511F53u, upper0, lower0);
    multiply_wide(counter[2], 0xCD9E8D57u, upper1, lower1);
    counter[0] = hn::Xor(hn::Xor(upper1, counter[1]), hn::Set(d, key[0]));
    counter[1] = lower1;
    counter[2] = hn::Xor(hn::Xor(upper0, counter[3]), hn::Set(d, key[1]));
    counter[3] = lower0;
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
}
#else
HWY_INLINE void philox_lanes(VU (&counter)[4], std::array<uint32_t, 2> key) {
  const DU d;
  const auto words = philox(
      {hn::GetLane(counter[0]), hn::GetLane(counter[1]), hn::GetLane(counter[2]), hn::GetLane(counter[3])},
      key);
  for (size_t n = 0; n < 4; ++n) counter[n] = hn::Set(d, words[n]);
}
#endif

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
    philox_lanes(words, dropout.key);
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
