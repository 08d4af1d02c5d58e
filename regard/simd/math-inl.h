// Vector functions of f32 for kernels that Highway compiles once for each instruction set; include after
// hwy/foreach_target.h. Accuracies hold on every instruction set, with and without fused multiply-adds.

#if defined(REGARD_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_SIMD_MATH_INL_H_
#undef REGARD_SIMD_MATH_INL_H_
#else
#define REGARD_SIMD_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>

/// Stands behind the parameters of a lambda that computes with vectors:
/// compiled for the target, always inlined.
#undef REGARD_VECTOR_LAMBDA
#define REGARD_VECTOR_LAMBDA HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace regard::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// exp(x), at most 1.5 ulp; exactly 0 below -87.33 (never subnormal),
/// infinity above log(largest float), NaN stays NaN.
/// x = n log 2 + r with |r| <= log(2) / 2; exp(r) by a polynomial of degree 6; n is added to the exponent.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 12582912.f);  // 1.5 2^23: adding it rounds to an integer, held in the low bits
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, 1.44269504f)), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);  // 15 bits: exact without fused multiply-add
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  V p = hn::MulAdd(hn::Set(d, 1.3836845796e-03f), r, hn::Set(d, 8.3748159314e-03f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1668225581e-02f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666420168e-01f));
  p = hn::MulAdd(p, r, hn::Set(d, .5f));
  p = hn::MulAdd(hn::Mul(p, r), r, r);  // exp(r) - 1
  p = hn::Add(p, hn::Set(d, 1.f));
  V y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.33f)), hn::Zero(d), y);
  y = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.7228390f)), hn::Set(d, std::numeric_limits<float>::infinity()),
                     y);
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

constexpr float kTanhLimit = 8.2f;

/// tanh(x), |error| <= 4e-7; 1 - 1.5e-7 in size beyond +-8.2, NaN stays NaN.
/// An odd rational function, degrees 11 / 6.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhClamped(D d, V x) {
  // The order of operands matters on x86, where Min and Max return the second one if either is NaN.
  V c = hn::Min(hn::Set(d, kTanhLimit), hn::Max(hn::Set(d, -kTanhLimit), x));
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  c = hn::IfThenElse(hn::Eq(x, x), c, x);
#endif
  const V c2 = hn::Mul(c, c);
  V p = hn::MulAdd(c2, hn::Set(d, 2.2354212785e-11f), hn::Set(d, -1.4304428044e-08f));
  p = hn::MulAdd(p, c2, hn::Set(d, 9.7568939269e-06f));
  p = hn::MulAdd(p, c2, hn::Set(d, 2.9732034213e-03f));
  p = hn::MulAdd(p, c2, hn::Set(d, 1.2967646903e-01f));
  p = hn::Mul(hn::MulAdd(p, c2, hn::Set(d, 9.9999997582e-01f)), c);
  V q = hn::MulAdd(c2, hn::Set(d, 2.3541585333e-04f), hn::Set(d, 2.3976724812e-02f));
  q = hn::MulAdd(q, c2, hn::Set(d, 4.6300958533e-01f));
  q = hn::MulAdd(q, c2, hn::Set(d, 1.f));
  V inverse = hn::ApproximateReciprocal(q);
  inverse = hn::MulAdd(inverse, hn::NegMulAdd(q, inverse, hn::Set(d, 1.f)), inverse);  // a step of Newton's
  return hn::Mul(p, inverse);
}

/// tanh(x), |error| <= 4e-7; exactly +-1 beyond +-8.2, NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::CopySign(hn::Set(d, 1.f), x);
  const V y = hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, kTanhLimit)), one, TanhClamped(d, x));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

/// 1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2, |error| <= 4e-7; exactly 0 and 1 beyond +-16.4, NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V half = hn::Set(d, .5f);
  return hn::MulAdd(Tanh(d, hn::Mul(x, half)), half, half);
}

/// Reads and writes whole vectors.
template <class D>
struct Whole {
  HWY_INLINE hn::Vec<D> load(const float* p, float = 0) const { return hn::LoadU(D(), p); }
  HWY_INLINE void store(hn::Vec<D> v, float* p) const { hn::StoreU(v, D(), p); }
};

/// Reads and writes the last `count` elements of a row through
/// a padded copy, so that they see the same arithmetic.
template <class D>
struct Tail {
  int64_t count;

  HWY_INLINE hn::Vec<D> load(const float* p, float padding = 0) const {
    HWY_ALIGN float copy[hn::MaxLanes(D())];
    for (int64_t i = 0; i < static_cast<int64_t>(hn::MaxLanes(D())); ++i)
      copy[i] = i < count ? p[i] : padding;
    return hn::Load(D(), copy);
  }
  HWY_INLINE void store(hn::Vec<D> v, float* p) const {
    HWY_ALIGN float copy[hn::MaxLanes(D())];
    hn::Store(v, D(), copy);
    for (int64_t i = 0; i < count; ++i) p[i] = copy[i];
  }
};

/// body(io, i) for every vector of a row of n: io is Whole for all but the last, incomplete one.
template <class D, class Body>
HWY_INLINE void for_vectors(D d, int64_t n, const Body& body) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + N <= n; i += N) body(Whole<D>(), i);
  if (i < n) body(Tail<D>{n - i}, i);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE float sum(D d, V v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

/// The largest lane; none may be NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE float largest_lane(D d, V v) {
#if HWY_TARGET == HWY_EMU128
  // There MaxOfLanes begins at the lowest finite number (Highway 1.0.3) and would lose -infinity.
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  return *std::max_element(lanes, lanes + hn::MaxLanes(D()));
#else
  return hn::GetLane(hn::MaxOfLanes(d, v));
#endif
}

}  // namespace regard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
