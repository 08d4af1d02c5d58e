// f32 kernels of norms, activations and dropout.

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/simd/layer_rows.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/simd/layer_rows.h"
#include "regard/simd/math-inl.h"
#include "regard/simd/philox-inl.h"
#include "regard/simd/scalar_layers.h"

HWY_BEFORE_NAMESPACE();
namespace regard::simd::HWY_NAMESPACE {

const hn::ScalableTag<float> d;
using V = hn::Vec<decltype(d)>;

RowMoments<float> layer_norm_row(const float* x, const float* gain, const float* bias, double epsilon,
                                 float* y, int64_t n) {
  if (n == 0) return {};
  const auto N = static_cast<int64_t>(hn::Lanes(d));
  V total0 = hn::Zero(d), total1 = total0;
  int64_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    total0 = hn::Add(total0, hn::LoadU(d, x + i));
    total1 = hn::Add(total1, hn::LoadU(d, x + i + N));
  }
  for_vectors(d, n - i,
              [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA { total0 = hn::Add(total0, io.load(x + i + k)); });
  const float mean = sum(d, hn::Add(total0, total1)) / static_cast<float>(n);
  const V m = hn::Set(d, mean);
  V squares0 = hn::Zero(d), squares1 = squares0;
  for (i = 0; i + 2 * N <= n; i += 2 * N) {
    const V a = hn::Sub(hn::LoadU(d, x + i), m), b = hn::Sub(hn::LoadU(d, x + i + N), m);
    squares0 = hn::MulAdd(a, a, squares0);
    squares1 = hn::MulAdd(b, b, squares1);
  }
  for_vectors(d, n - i, [&](auto io, int64_t k) REGARD_VECTOR_LAMBDA {
    const V a = hn::Sub(io.load(x + i + k, mean), m);
    squares0 = hn::MulAdd(a, a, squares0);
  });
  const float variance = sum(d, hn::Add(squares0, squares1)) / static_cast<float>(n);
  const float scale = 1 / std::sqrt(variance + static_cast<float>(epsilon));
  const V s = hn::Set(d, scale);
  for_vectors(d, n, [=](auto io, int64_t k) REGARD_VECTOR_LAMBDA {
    const V h = hn::Mul(hn::Sub(io.load(x + k), m), s);
    io.store(hn::MulAdd(h, io.load(gain + k), io.load(bias + k)), y + k);
  });
  return {mean, scale};
}

void layer_norm_backward_row(const float* x, RowMoments<float> moments, const float* gain, const float* dy,
                             float* dx, float* dgain, float* dbias, int64_t n) {
  if (n == 0) return;
  const V m = hn::Set(d, moments.mean), s = hn::Set(d, moments.scale);
  V sum_d = hn::Zero(d), sum_dh = sum_d;
  for_vectors(d, n, [&](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const V g = io.load(dy + i), h = hn::Mul(hn::Sub(io.load(x + i), m), s),
            dh = hn::Mul(g, io.load(gain + i));
    sum_d = hn::Add(sum_d, dh);
    sum_dh = hn::MulAdd(dh, h, sum_dh);
    io.store(hn::MulAdd(g, h, io.load(dgain + i)), dgain + i);
    io.store(hn::Add(g, io.load(dbias + i)), dbias + i);
  });
  const V mean_d = hn::Set(d, sum(d, sum_d) / static_cast<float>(n));
  const V mean_dh = hn::Set(d, sum(d, sum_dh) / static_cast<float>(n));
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const V h = hn::Mul(hn::Sub(io.load(x + i), m), s);
    const V centred = hn::Sub(hn::Mul(io.load(dy + i), io.load(gain + i)), mean_d);
    io.store(hn::Mul(s, hn::NegMulAdd(h, mean_dh, centred)), dx + i);
  });
}

void swish_row(const float* x, float* y, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const V v = io.load(x + i);
    io.store(hn::Mul(v, Sigmoid(d, v)), y + i);
  });
}
void swish_backward_row(const float* x, const float* dy, float* dx, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const V v = io.load(x + i), s = Sigmoid(d, v), one = hn::Set(d, 1.f);
    const V slope = hn::Mul(s, hn::MulAdd(v, hn::Sub(one, s), one));
    io.store(hn::Mul(io.load(dy + i), slope), dx + i);
  });
}

void elu_plus_one_row(const float* x, float* y, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const V v = io.load(x + i);
    io.store(hn::IfThenElse(hn::Gt(v, hn::Zero(d)), hn::Add(v, hn::Set(d, 1.f)), Exp(d, v)), y + i);
  });
}
void elu_plus_one_backward_row(const float* y, const float* dy, float* dx, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const V v = io.load(y + i), g = io.load(dy + i);
    io.store(hn::IfThenElse(hn::Gt(v, hn::Set(d, 1.f)), g, hn::Mul(g, v)), dx + i);
  });
}

const hn::RebindToUnsigned<decltype(d)> du;
using U = hn::Vec<decltype(du)>;
constexpr int64_t kWords = 4 * static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<uint32_t>()));

/// Philox words of the counters first, first + 1, ...: kWords of them, four a counter, in order.
HWY_INLINE void philox_words(uint64_t key, uint32_t first, uint32_t* words) {
  const U zero = hn::Zero(du);
  U counter[4] = {hn::Add(hn::Iota(du, 0), hn::Set(du, first)), zero, zero, zero};
  philox_lanes(counter, {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  hn::StoreInterleaved4(counter[0], counter[1], counter[2], counter[3], du, words);
}

/// store(io, i, x_i factor or 0) for every vector of the row.
template <class Store>
HWY_INLINE void for_kept(const float* x, int64_t n, const DropoutRow& row, const Store& store) {
  const hn::RebindToSigned<decltype(d)> di;
  HWY_ALIGN uint32_t words[kWords];
  const V factor = hn::Set(d, static_cast<float>(row.factor));
  const U flip = hn::Set(du, 0x80000000U);  // unsigned comparison by signed numbers
  const auto threshold = hn::BitCast(di, hn::Xor(hn::Set(du, row.threshold), flip));
  for (int64_t begin = 0; begin < n; begin += kWords) {
    philox_words(row.key, static_cast<uint32_t>(begin / 4), words);
    for_vectors(d, std::min(kWords, n - begin), [&](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
      const auto word = hn::BitCast(di, hn::Xor(hn::Load(du, words + i), flip));
      const V kept = hn::Mul(io.load(x + begin + i), factor);
      store(io, begin + i, hn::IfThenZeroElse(hn::RebindMask(d, hn::Lt(word, threshold)), kept));
    });
  }
}

void dropout_row(const float* x, float* y, int64_t n, const DropoutRow& row) {
  for_kept(x, n, row, [=](auto io, int64_t i, V kept) REGARD_VECTOR_LAMBDA { io.store(kept, y + i); });
}
void add_dropout_row(const float* a, const float* x, float* y, int64_t n, const DropoutRow& row) {
  for_kept(x, n, row, [=](auto io, int64_t i, V kept) REGARD_VECTOR_LAMBDA {
    io.store(hn::Add(io.load(a + i), kept), y + i);
  });
}

}  // namespace regard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::simd {

HWY_EXPORT(layer_norm_row);
HWY_EXPORT(layer_norm_backward_row);
HWY_EXPORT(swish_row);
HWY_EXPORT(swish_backward_row);
HWY_EXPORT(elu_plus_one_row);
HWY_EXPORT(elu_plus_one_backward_row);
HWY_EXPORT(dropout_row);
HWY_EXPORT(add_dropout_row);

RowMoments<float> layer_norm(const float* x, const float* gain, const float* bias, double epsilon, float* y,
                             int64_t n) {
  return HWY_DYNAMIC_DISPATCH(layer_norm_row)(x, gain, bias, epsilon, y, n);
}
void layer_norm_backward(const float* x, RowMoments<float> moments, const float* gain, const float* dy,
                         float* dx, float* dgain, float* dbias, int64_t n) {
  HWY_DYNAMIC_DISPATCH(layer_norm_backward_row)(x, moments, gain, dy, dx, dgain, dbias, n);
}
void swish(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(swish_row)(x, y, n); }
void swish_backward(const float* x, const float* dy, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(swish_backward_row)(x, dy, dx, n);
}
void elu_plus_one(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(elu_plus_one_row)(x, y, n); }
void elu_plus_one_backward(const float* y, const float* dy, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(elu_plus_one_backward_row)(y, dy, dx, n);
}
void dropout(const float* x, float* y, int64_t n, const DropoutRow& row) {
  HWY_DYNAMIC_DISPATCH(dropout_row)(x, y, n, row);
}
void add_dropout(const float* a, const float* x, float* y, int64_t n, const DropoutRow& row) {
  HWY_DYNAMIC_DISPATCH(add_dropout_row)(a, x, y, n, row);
}

// The f64 kernels are the scalar twins.
RowMoments<double> layer_norm(const double* x, const double* gain, const double* bias, double epsilon,
                              double* y, int64_t n) {
  return scalar::layer_norm(x, gain, bias, epsilon, y, n);
}
void layer_norm_backward(const double* x, RowMoments<double> moments, const double* gain, const double* dy,
                         double* dx, double* dgain, double* dbias, int64_t n) {
  scalar::layer_norm_backward(x, moments, gain, dy, dx, dgain, dbias, n);
}
void swish(const double* x, double* y, int64_t n) { scalar::swish(x, y, n); }
void swish_backward(const double* x, const double* dy, double* dx, int64_t n) {
  scalar::swish_backward(x, dy, dx, n);
}
void elu_plus_one(const double* x, double* y, int64_t n) { scalar::elu_plus_one(x, y, n); }
void elu_plus_one_backward(const double* y, const double* dy, double* dx, int64_t n) {
  scalar::elu_plus_one_backward(y, dy, dx, n);
}
void dropout(const double* x, double* y, int64_t n, const DropoutRow& row) { scalar::dropout(x, y, n, row); }
void add_dropout(const double* a, const double* x, double* y, int64_t n, const DropoutRow& row) {
  scalar::add_dropout(a, x, y, n, row);
}

}  // namespace regard::simd
#endif  // HWY_ONCE
