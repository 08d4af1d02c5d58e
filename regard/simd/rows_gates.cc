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
    const auto change = hn::Sub(io.load(row.h_prev + i), candidate);
    const auto h = hn::MulAdd(z, change, candidate);  // (1 - z) n~ + z h_prev
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

void lstm_forward_row(const LstmForward& row, int64_t n) {
  for_vectors(d, n, [&](auto io, int64_t j) REGARD_VECTOR_LAMBDA {
    const auto sum = [&](int64_t k) REGARD_VECTOR_LAMBDA {
      const auto x = io.load(row.x + k);
      return hn::Add(row.x2 ? hn::Add(x, io.load(row.x2 + k)) : x, io.load(row.gh + k));
    };
    const auto i = Sigmoid(d, sum(j)), f = Sigmoid(d, sum(n + j));
    const auto g = Tanh(d, sum(2 * n + j)), o = Sigmoid(d, sum(3 * n + j));
    const auto c = hn::MulAdd(f, io.load(row.c_prev + j), hn::Mul(i, g));
    if (row.gates) {
      io.store(i, row.gates + j);
      io.store(f, row.gates + n + j);
      io.store(g, row.gates + 2 * n + j);
      io.store(o, row.gates + 3 * n + j);
    }
    io.store(c, row.c + j);
    io.store(hn::Mul(o, Tanh(d, c)), row.h + j);
  });
}

/// Differentiates lstm_forward_row.
void lstm_backward_row(const LstmBackward& row, int64_t n) {
  const auto one = hn::Set(d, 1.f);
  for_vectors(d, n, [&](auto io, int64_t j) REGARD_VECTOR_LAMBDA {
    const auto i = io.load(row.gates + j), f = io.load(row.gates + n + j);
    const auto g = io.load(row.gates + 2 * n + j), o = io.load(row.gates + 3 * n + j);
    const auto t = Tanh(d, io.load(row.c + j));
    // h = o tanh(c)
    const auto dh = hn::Add(io.load(row.dh + j), io.load(row.h_carry + j));
    const auto later = io.load(row.c_carry + j);
    const auto dc = hn::MulAdd(hn::Mul(dh, o), hn::NegMulAdd(t, t, one),
                               row.dc ? hn::Add(io.load(row.dc + j), later) : later);
    // c = f c_prev + i g;   i, f, o = sigmoid(..);   g = tanh(..)
    const auto di = hn::Mul(hn::Mul(dc, g), hn::Mul(i, hn::Sub(one, i)));
    const auto df = hn::Mul(hn::Mul(dc, io.load(row.c_prev + j)), hn::Mul(f, hn::Sub(one, f)));
    const auto dg = hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, one));
    const auto d_o = hn::Mul(hn::Mul(dh, t), hn::Mul(o, hn::Sub(one, o)));
    const auto give = [&](auto gradient, int64_t k) REGARD_VECTOR_LAMBDA {
      io.store(gradient, row.dgates + k);
      if (row.dx_sum) io.store(hn::Add(io.load(row.dx_sum + k), gradient), row.dx_sum + k);
    };
    give(di, j);
    give(df, n + j);
    give(dg, 2 * n + j);
    give(d_o, 3 * n + j);
    io.store(hn::Mul(dc, f), row.c_carry + j);
  });
}

}  // namespace regard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::simd {

HWY_EXPORT(gru_forward_row);
HWY_EXPORT(gru_backward_row);
HWY_EXPORT(lstm_forward_row);
HWY_EXPORT(lstm_backward_row);

void gru_forward(const GruForward& row, int64_t n) { HWY_DYNAMIC_DISPATCH(gru_forward_row)(row, n); }
void gru_backward(const GruBackward& row, int64_t n) { HWY_DYNAMIC_DISPATCH(gru_backward_row)(row, n); }
void lstm_forward(const LstmForward& row, int64_t n) { HWY_DYNAMIC_DISPATCH(lstm_forward_row)(row, n); }
void lstm_backward(const LstmBackward& row, int64_t n) { HWY_DYNAMIC_DISPATCH(lstm_backward_row)(row, n); }

}  // namespace regard::simd
#endif  // HWY_ONCE
