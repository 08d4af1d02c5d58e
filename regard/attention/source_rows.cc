#include "regard/attention/source_rows.h"

#include <algorithm>

#include "regard/simd/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/attention/source_rows.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/attention/source_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

void products_f32(const float* q, const SourceRows<const float>& h, float* e) { products_row(q, h, e); }
void weighted_sum_f32(const float* alpha, const SourceRows<const float>& h, float* c) {
  weighted_sum_row(alpha, h, c);
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::attention {

HWY_EXPORT(products_f32);
HWY_EXPORT(weighted_sum_f32);

void products(const float* q, const SourceRows<const float>& h, float* e) {
  HWY_DYNAMIC_DISPATCH(products_f32)(q, h, e);
}
void weighted_sum(const float* alpha, const SourceRows<const float>& h, float* c) {
  HWY_DYNAMIC_DISPATCH(weighted_sum_f32)(alpha, h, c);
}
void add_outer(const float* alpha, const float* x, const SourceRows<float>& h) {
  for (int64_t j = 0; j < h.count; ++j) simd::axpy(alpha[j], x, h[j], h.width);
}

void products(const double* q, const SourceRows<const double>& h, double* e) {
  for (int64_t j = 0; j < h.count; ++j) e[j] = simd::dot(q, h[j], h.width);
}
void weighted_sum(const double* alpha, const SourceRows<const double>& h, double* c) {
  std::fill(c, c + h.width, 0.0);
  for (int64_t j = 0; j < h.count; ++j) simd::axpy(alpha[j], h[j], c, h.width);
}
void add_outer(const double* alpha, const double* x, const SourceRows<double>& h) {
  for (int64_t j = 0; j < h.count; ++j) simd::axpy(alpha[j], x, h[j], h.width);
}

}  // namespace regard::attention
#endif  // HWY_ONCE
