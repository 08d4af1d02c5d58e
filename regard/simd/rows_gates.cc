// f32 kernels of recurrent cells' gates.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/simd/rows_gates.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/simd/math-inl.h"
#include "regard/simd/rows.h"

HWY_BEFORE_NAMESPACE();
namespace regard::simd::HWY_NAMESPACE {

const hn::ScalableTag<float> d;

void gru_forward_row(const GruForward& row, int64_t n) {
  for_vectors(d, n, [&](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const auto x = [&](int64_t k) REGARD_VECTOR_LAMBDA {
      const auto x1 = io.load(row.x + k);
      return row.x2 ? hn::Add(x1, io.load(row.x2 + k)) : x1;
    };
    const auto r = Sigmoid(d, hn::Add(x(i), io.load(row.gh + i)));
    const auto z = Sigmoid(d, hn::Add(x(n + i), io.load(row.gh + n + i)));
    const auto q = hn::Add(io.load(row.gh + 2 * n + i), io.load(row.bn + i));
    const auto candidate = Tanh(d, hn::MulAdd(r, q, x(2 * n + i)));
    const auto h =
        hn::MulAdd(z, hn::Sub(io.load(row.h_prev + i), candidate), candidate);  // (1 - z) n~ + z h_prev
    if (row.gates) {
      io.store(r, row.gates + i);
      io.store(z, row.gates + n + i);
      io.store(candidate, row.gates + 2 * n + i);
      io.store(q, row.gates + 3 * n + i);
    }
    io.store(h, row.h + i);
  });
}

/// Differentiates gru_forward_row.
void gru_backward_row(const GruBackward& row, int64_t n) {
  const auto one = hn::Set(d, 1.f);
  for_vectors(d, n, [&](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const auto r = io.load(row.gates + i), z = io.load(row.gates + n + i);
    const auto candidate = io.load(row.gates + 2 * n + i), q = io.load(row.gates + 3 * n + i);
    const auto dh = hn::Add(io.load(row.dh + i), io.load(row.carry + i));
    const auto rest = hn::Sub(one, z);
    // h = (1 - z) n~ + z h_prev,  z = sigmoid(..);   n~ = tanh(xn + r q);   r = sigmoid(..)
    const auto dz = hn::Mul(hn::Mul(dh, hn::Sub(io.load(row.h_prev + i), candidate)), hn::Mul(z, rest));
    const auto dn = hn::Mul(hn::Mul(dh, rest), hn::NegMulAdd(candidate, candidate, one));
    const auto dr = hn::Mul(hn::Mul(dn, q), hn::Mul(r, hn::Sub(one, r)));
    const auto give = [&](auto gradient, int64_t k) REGARD_VECTOR_LAMBDA {
      if (row.dx) io.store(gradient, row.dx + k);
      if (row.dx_sum) io.store(hn::Add(io.load(row.dx_sum + k), gradient), row.dx_sum + k);
    };
    give(dr, i);
    give(dz, n + i);
    give(dn, 2 * n + i);
    io.store(dr, row.dgh + i);
    io.store(dz, row.dgh + n + i);
    io.store(hn::Mul(dn, r), row.dgh + 2 * n + i);
    io.store(hn::Mul(dh, z), row.carry + i);
  });
}

}  // namespace regard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::simd {

HWY_EXPORT(gru_forward_row);
HWY_EXPORT(gru_backward_row);

void gru_forward(const GruForward& row, int64_t n) { HWY_DYNAMIC_DISPATCH(gru_forward_row)(row, n); }
void gru_backward(const GruBackward& row, int64_t n) { HWY_DYNAMIC_DISPATCH(gru_backward_row)(row, n); }

}  // namespace regard::simd
#endif  // HWY_ONCE
