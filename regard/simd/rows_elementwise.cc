// f32 kernels that treat every element alike.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/simd/rows_elementwise.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/simd/math-inl.h"
#include "regard/simd/rows.h"

HWY_BEFORE_NAMESPACE();
namespace regard::simd::HWY_NAMESPACE {

const hn::ScalableTag<float> d;

void exp_row(const float* x, float* y, int64_t n) {
  for_vectors(d, n,
              [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA { io.store(Exp(d, io.load(x + i)), y + i); });
}
void tanh_row(const float* x, float* y, int64_t n) {
  for_vectors(d, n,
              [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA { io.store(Tanh(d, io.load(x + i)), y + i); });
}
void sigmoid_row(const float* x, float* y, int64_t n) {
  for_vectors(d, n,
              [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA { io.store(Sigmoid(d, io.load(x + i)), y + i); });
}
void add_row(const float* a, const float* b, float* y, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    io.store(hn::Add(io.load(a + i), io.load(b + i)), y + i);
  });
}
void multiply_row(const float* a, const float* b, float* y, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    io.store(hn::Mul(io.load(a + i), io.load(b + i)), y + i);
  });
}
void multiply_add_row(const float* a, const float* b, float* y, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    io.store(hn::MulAdd(io.load(a + i), io.load(b + i), io.load(y + i)), y + i);
  });
}
void axpy_row(float alpha, const float* x, float* y, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    io.store(hn::MulAdd(hn::Set(d, alpha), io.load(x + i), io.load(y + i)), y + i);
  });
}
void scale_row(float alpha, const float* x, float* y, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    io.store(hn::Mul(hn::Set(d, alpha), io.load(x + i)), y + i);
  });
}
void tanh_backward_row(const float* y, const float* dy, float* dx, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const auto t = io.load(y + i);
    io.store(hn::Mul(io.load(dy + i), hn::NegMulAdd(t, t, hn::Set(d, 1.f))), dx + i);
  });
}
void relu_row(const float* x, float* y, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const auto v = io.load(x + i);
    io.store(hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v), y + i);
  });
}
void relu_backward_row(const float* y, const float* dy, float* dx, int64_t n) {
  for_vectors(d, n, [=](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    io.store(hn::IfThenElseZero(hn::Gt(io.load(y + i), hn::Zero(d)), io.load(dy + i)), dx + i);
  });
}

void adam_row(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  const auto set = [](float x) REGARD_VECTOR_LAMBDA { return hn::Set(d, x); };
  const auto beta2 = set(step.beta2), rest1 = set(1 - step.beta1), rest2 = set(1 - step.beta2);
  const auto correction1 = set(step.correction1), correction2 = set(step.correction2);
  const auto rate = set(step.rate), epsilon = set(step.epsilon), decay = set(step.decay);
  const auto gradient_scale = set(step.gradient_scale);
  for_vectors(d, n, [&](auto io, int64_t i) REGARD_VECTOR_LAMBDA {
    const auto gradient = hn::Mul(gradient_scale, io.load(g + i)), m0 = io.load(m + i), w0 = io.load(w + i);
    const auto m1 = hn::MulAdd(rest1, hn::Sub(gradient, m0), m0);
    const auto v1 = hn::MulAdd(hn::Mul(rest2, gradient), gradient, hn::Mul(beta2, io.load(v + i)));
    const auto root = hn::Add(hn::Sqrt(hn::Mul(v1, correction2)), epsilon);
    const auto direction = hn::MulAdd(decay, w0, hn::Div(hn::Mul(m1, correction1), root));
    io.store(m1, m + i);
    io.store(v1, v + i);
    io.store(hn::NegMulAdd(rate, direction, w0), w + i);
  });
}

const char* target_name_row() { return hwy::TargetName(HWY_TARGET); }

}  // namespace regard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::simd {

HWY_EXPORT(exp_row);
HWY_EXPORT(tanh_row);
HWY_EXPORT(sigmoid_row);
HWY_EXPORT(add_row);
HWY_EXPORT(multiply_row);
HWY_EXPORT(multiply_add_row);
HWY_EXPORT(axpy_row);
HWY_EXPORT(scale_row);
HWY_EXPORT(tanh_backward_row);
HWY_EXPORT(relu_row);
HWY_EXPORT(relu_backward_row);
HWY_EXPORT(adam_row);
HWY_EXPORT(target_name_row);

void exp(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(exp_row)(x, y, n); }
void tanh(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(tanh_row)(x, y, n); }
void sigmoid(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(sigmoid_row)(x, y, n); }
void add(const float* a, const float* b, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(add_row)(a, b, y, n); }
void multiply(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(multiply_row)(a, b, y, n);
}
void multiply_add(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(multiply_add_row)(a, b, y, n);
}
void axpy(float alpha, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(axpy_row)(alpha, x, y, n);
}
void scale(float alpha, const float* x, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(scale_row)(alpha, x, y, n);
}
void tanh_backward(const float* y, const float* dy, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(tanh_backward_row)(y, dy, dx, n);
}
void relu(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(relu_row)(x, y, n); }
void relu_backward(const float* y, const float* dy, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(relu_backward_row)(y, dy, dx, n);
}
void adam(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  HWY_DYNAMIC_DISPATCH(adam_row)(w, g, m, v, n, step);
}
const char* target_name() { return HWY_DYNAMIC_DISPATCH(target_name_row)(); }

}  // namespace regard::simd
#endif  // HWY_ONCE
