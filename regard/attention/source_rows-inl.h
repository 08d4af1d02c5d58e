// The f32 kernels of source_rows.h, compiled once for each instruction set; include after
// hwy/foreach_target.h.

#if defined(REGARD_ATTENTION_SOURCE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_SOURCE_ROWS_INL_H_
#undef REGARD_ATTENTION_SOURCE_ROWS_INL_H_
#else
#define REGARD_ATTENTION_SOURCE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "regard/attention/source_rows.h"
#include "regard/simd/math-inl.h"
#include "regard/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

/// Four rows of a matrix; those behind the last one repeat it.
struct FourRows {
  const float* p[4];
  FourRows(const float* first, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < 4; ++i) p[i] = first + std::min(i, count - 1) * stride;
  }
};

/// e_j = q . h_j, four rows at a time.
HWY_INLINE void products_row(const float* q, const SourceRows<const float>& rows, float* e) {
  namespace hn = hwy::HWY_NAMESPACE;
  namespace sn = regard::simd::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  for (int64_t j = 0; j < rows.count; j += 4) {
    const int64_t count = std::min<int64_t>(4, rows.count - j);
    const FourRows h(rows[j], rows.stride, count);
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    sn::for_vectors(d, rows.width, [&](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
      const V x = io.load(q + i);
      s0 = hn::MulAdd(x, io.load(h.p[0] + i), s0);
      s1 = hn::MulAdd(x, io.load(h.p[1] + i), s1);
      s2 = hn::MulAdd(x, io.load(h.p[2] + i), s2);
      s3 = hn::MulAdd(x, io.load(h.p[3] + i), s3);
    });
    const float sums[4] = {sn::sum(d, s0), sn::sum(d, s1), sn::sum(d, s2), sn::sum(d, s3)};
    for (int64_t i = 0; i < count; ++i) e[j + i] = sums[i];
  }
}

/// c = sum_j alpha_j h_j, eight vectors of columns at a time.
HWY_INLINE void weighted_sum_row(const float* alpha, const SourceRows<const float>& rows, float* c) {
  namespace hn = hwy::HWY_NAMESPACE;
  namespace sn = regard::simd::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 8 * N <= rows.width; i += 8 * N) {
    V s[8];
    REGARD_UNROLL
    for (int64_t v = 0; v < 8; ++v) s[v] = hn::Zero(d);
    const float* h = rows.data + i;
    for (int64_t j = 0; j < rows.count; ++j, h += rows.stride) {
      const V weight = hn::Set(d, alpha[j]);
      REGARD_UNROLL
      for (int64_t v = 0; v < 8; ++v) s[v] = hn::MulAdd(weight, hn::LoadU(d, h + v * N), s[v]);
    }
    REGARD_UNROLL
    for (int64_t v = 0; v < 8; ++v) hn::StoreU(s[v], d, c + i + v * N);
  }
  sn::for_vectors(d, rows.width - i, [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA {
    V s = hn::Zero(d);
    for (int64_t j = 0; j < rows.count; ++j)
      s = hn::MulAdd(hn::Set(d, alpha[j]), io.load(rows[j] + i + k), s);
    io.store(s, c + i + k);
  });
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
