// philox of regard/base/random.h for a vector of counters, one a lane.

#if defined(REGARD_SIMD_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_SIMD_PHILOX_INL_H_
#undef REGARD_SIMD_PHILOX_INL_H_
#else
#define REGARD_SIMD_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace regard::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using PhiloxTag = hn::ScalableTag<uint32_t>;
using PhiloxVector = hn::Vec<PhiloxTag>;

/// The 64-bit products of lanes with a constant, as their high and low words.
HWY_INLINE void multiply_words(PhiloxVector a, uint32_t constant, PhiloxVector& high, PhiloxVector& low) {
  const PhiloxTag d;
#if HWY_TARGET == HWY_SCALAR
  const uint64_t product = uint64_t{hn::GetLane(a)} * constant;
  high = hn::Set(d, static_cast<uint32_t>(product >> 32));
  low = hn::Set(d, static_cast<uint32_t>(product));
#else
  const hn::Repartition<uint64_t, PhiloxTag> d64;
  const PhiloxVector b = hn::Set(d, constant);
  const auto even = hn::MulEven(a, b);
  const auto shifted = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a)));
  const auto odd = hn::MulEven(shifted, b);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::Mul(a, b);
#endif
}

/// The four words of each lane's counter, in place.
HWY_INLINE void philox_lanes(PhiloxVector (&counter)[4], std::array<uint32_t, 2> key) {
  const PhiloxTag d;
  for (int round = 0; round < 10; ++round) {
    PhiloxVector high0, low0, high1, low1;
    multiply_words(counter[0], 0xD2511F53U, high0, low0);
    multiply_words(counter[2], 0xCD9E8D57U, high1, low1);
    counter[0] = hn::Xor(hn::Xor(high1, counter[1]), hn::Set(d, key[0]));
    counter[1] = low1;
    counter[2] = hn::Xor(hn::Xor(high0, counter[3]), hn::Set(d, key[1]));
    counter[3] = low0;
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
}

}  // namespace regard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // REGARD_SIMD_PHILOX_INL_H_
