// One row of additive attention in f32. Keys are taken four at a time so that four chains of tanh overlap;
// the values are fetched into the cache meanwhile, because the weighted sum that follows would wait for them.

#include "regard/attention/additive_f32.h"

#include "regard/base/aligned_buffer.h"
#include "regard/simd/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/attention/additive_f32.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/attention/source_rows-inl.h"
#include "regard/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace sn = regard::simd::HWY_NAMESPACE;
using reference::AdditiveRow;
using reference::AdditiveRowGradients;

const hn::ScalableTag<float> d;
using V = hn::Vec<decltype(d)>;

HWY_INLINE SourceRows<const float> row_values(const AdditiveRow<float>& row) {
  return {row.values, row.S, row.E, row.value_stride};
}

/// Fetches columns [begin, end) of four rows of values into the cache.
HWY_INLINE void fetch(const FourRows& values, int64_t begin, int64_t end) {
  constexpr int64_t kLine = 16;  // floats in a cache line
  for (int64_t e = begin; e < end; e += kLine)
    for (int i = 0; i < 4; ++i) __builtin_prefetch(values.p[i] + e, 0, 2);
}

/// e_j = v' tanh(q + k_j) for keys j..j+count of the row, count <= 4.
HWY_INLINE void four_scores(const AdditiveRow<float>& row, int64_t j, int64_t count, float* e) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  const FourRows k(row.keys + j * row.key_stride, row.key_stride, count);
  const FourRows h(row.values + j * row.value_stride, row.value_stride, count);
  const int64_t share =
      (N * row.E + row.A - 1) / std::max<int64_t>(1, row.A);  // columns of E for N columns of A
  int64_t fetched = 0;
  V e0 = hn::Zero(d), e1 = e0, e2 = e0, e3 = e0;
  sn::for_vectors(d, row.A, [&](auto io, int64_t a) REGARD_VECTOR_LAMBDA {
    const V q = io.load(row.q + a), v = io.load(row.v + a);
    e0 = hn::MulAdd(v, sn::TanhClamped(d, hn::Add(q, io.load(k.p[0] + a))), e0);
    e1 = hn::MulAdd(v, sn::TanhClamped(d, hn::Add(q, io.load(k.p[1] + a))), e1);
    e2 = hn::MulAdd(v, sn::TanhClamped(d, hn::Add(q, io.load(k.p[2] + a))), e2);
    e3 = hn::MulAdd(v, sn::TanhClamped(d, hn::Add(q, io.load(k.p[3] + a))), e3);
    fetch(h, fetched, std::min(fetched + share, row.E));
    fetched += share;
  });
  const float sums[4] = {sn::sum(d, e0), sn::sum(d, e1), sn::sum(d, e2), sn::sum(d, e3)};
  for (int64_t i = 0; i < count; ++i) e[i] = sums[i];
}

void forward_row(const AdditiveRow<float>& row, float* alpha, float* c) {
  for (int64_t j = 0; j < row.S; j += 4) four_scores(row, j, std::min<int64_t>(4, row.S - j), alpha + j);
  simd::softmax(alpha, alpha, row.S);
  weighted_sum_row(alpha, row_values(row), c);
}

/// Differentiates e_j = v' tanh(q + k_j) for one vector of columns [a, a + N) (`io` Whole or Tail) and all
/// keys.
template <class IO>
HWY_INLINE void score_gradients(const AdditiveRow<float>& row, const float* de,
                                const AdditiveRowGradients<float>& g, IO io, int64_t a) {
  const V one = hn::Set(d, 1.f), q = io.load(row.q + a), v = io.load(row.v + a);
  V dq = hn::Zero(d), dv = io.load(g.dv + a);
  for (int64_t j = 0; j < row.S; ++j) {
    float* dk = g.dkeys + j * g.dkey_stride + a;
    const V e = hn::Set(d, de[j]),
            t = sn::TanhClamped(d, hn::Add(q, io.load(row.keys + j * row.key_stride + a)));
    const V du = hn::Mul(hn::Mul(e, v), hn::NegMulAdd(t, t, one));
    dv = hn::MulAdd(e, t, dv);
    dq = hn::Add(dq, du);
    io.store(hn::Add(io.load(dk), du), dk);
  }
  io.store(dq, g.dq + a);
  io.store(dv, g.dv + a);
}

/// The same for columns [a, a + 2 N): two chains of tanh overlap.
HWY_INLINE void two_score_gradients(const AdditiveRow<float>& row, const float* de,
                                    const AdditiveRowGradients<float>& g, int64_t a) {
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  const V one = hn::Set(d, 1.f);
  const V q0 = hn::LoadU(d, row.q + a), q1 = hn::LoadU(d, row.q + a + N);
  const V v0 = hn::LoadU(d, row.v + a), v1 = hn::LoadU(d, row.v + a + N);
  V dq0 = hn::Zero(d), dq1 = dq0, dv0 = hn::LoadU(d, g.dv + a), dv1 = hn::LoadU(d, g.dv + a + N);
  const float* k = row.keys + a;
  float* dk = g.dkeys + a;
  for (int64_t j = 0; j < row.S; ++j, k += row.key_stride, dk += g.dkey_stride) {
    const V e = hn::Set(d, de[j]);
    const V t0 = sn::TanhClamped(d, hn::Add(q0, hn::LoadU(d, k)));
    const V t1 = sn::TanhClamped(d, hn::Add(q1, hn::LoadU(d, k + N)));
    const V du0 = hn::Mul(hn::Mul(e, v0), hn::NegMulAdd(t0, t0, one));
    const V du1 = hn::Mul(hn::Mul(e, v1), hn::NegMulAdd(t1, t1, one));
    dv0 = hn::MulAdd(e, t0, dv0);
    dv1 = hn::MulAdd(e, t1, dv1);
    dq0 = hn::Add(dq0, du0);
    dq1 = hn::Add(dq1, du1);
    hn::StoreU(hn::Add(hn::LoadU(d, dk), du0), d, dk);
    hn::StoreU(hn::Add(hn::LoadU(d, dk + N), du1), d, dk + N);
  }
  hn::StoreU(dq0, d, g.dq + a);
  hn::StoreU(dq1, d, g.dq + a + N);
  hn::StoreU(dv0, d, g.dv + a);
  hn::StoreU(dv1, d, g.dv + a + N);
}

/// Differentiates forward_row.
void backward_row(const AdditiveRow<float>& row, const float* alpha, const AdditiveRowGradients<float>& g) {
  static thread_local AlignedBuffer<float> scratch;
  float* de = scratch.grow(row.S);
  products_row(g.dc, row_values(row), de);
  if (g.dalpha) simd::add(de, g.dalpha, de, row.S);
  if (g.dvalues)
    for (int64_t j = 0; j < row.S; ++j) simd::axpy(alpha[j], g.dc, g.dvalues + j * g.dvalue_stride, row.E);
  simd::softmax_backward(alpha, de, de, row.S);
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  int64_t a = 0;
  for (; a + 2 * N <= row.A; a += 2 * N) two_score_gradients(row, de, g, a);
  sn::for_vectors(d, row.A - a,
                  [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA { score_gradients(row, de, g, io, a + k); });
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::attention {

HWY_EXPORT(forward_row);
HWY_EXPORT(backward_row);

void additive_forward_row(const reference::AdditiveRow<float>& row, float* alpha, float* c) {
  HWY_DYNAMIC_DISPATCH(forward_row)(row, alpha, c);
}

void additive_backward_row(const reference::AdditiveRow<float>& row, const float* alpha,
                           const reference::AdditiveRowGradients<float>& d) {
  HWY_DYNAMIC_DISPATCH(backward_row)(row, alpha, d);
}

}  // namespace regard::attention
#endif  // HWY_ONCE
