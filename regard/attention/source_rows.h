#pragma once
// What attention does with the keys and values of one source: products with a query, sums with weights. f32
// (Highway, dynamic dispatch) and f64 (scalar, accurate).

#include <cstdint>

namespace regard::attention {

/// `count` rows of `width` numbers, `stride` apart.
template <class T>
struct SourceRows {
  T* data;
  int64_t count, width, stride;

  T* operator[](int64_t j) const { return data + j * stride; }
};

/// e_j = q . h_j
void products(const float* q, const SourceRows<const float>& h, float* e);
void products(const double* q, const SourceRows<const double>& h, double* e);
/// c = sum_j alpha_j h_j; 0 without rows.
void weighted_sum(const float* alpha, const SourceRows<const float>& h, float* c);
void weighted_sum(const double* alpha, const SourceRows<const double>& h, double* c);
/// h_j += alpha_j x
void add_outer(const float* alpha, const float* x, const SourceRows<float>& h);
void add_outer(const double* alpha, const double* x, const SourceRows<double>& h);

}  // namespace regard::attention
