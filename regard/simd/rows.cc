#include "regard/simd/rows.h"

#include "regard/simd/scalar.h"

namespace regard::simd {

void exp(const float* x, float* y, int64_t n) { scalar::exp(x, y, n); }
void tanh(const float* x, float* y, int64_t n) { scalar::tanh(x, y, n); }
void sigmoid(const float* x, float* y, int64_t n) { scalar::sigmoid(x, y, n); }
void add(const float* a, const float* b, float* y, int64_t n) { scalar::add(a, b, y, n); }
void multiply(const float* a, const float* b, float* y, int64_t n) { scalar::multiply(a, b, y, n); }
void multiply_add(const float* a, const float* b, float* y, int64_t n) { scalar::multiply_add(a, b, y, n); }
void axpy(float alpha, const float* x, float* y, int64_t n) { scalar::axpy(alpha, x, y, n); }
void scale(float alpha, const float* x, float* y, int64_t n) { scalar::scale(alpha, x, y, n); }
void tanh_backward(const float* y, const float* dy, float* dx, int64_t n) {
  scalar::tanh_backward(y, dy, dx, n);
}
float dot(const float* a, const float* b, int64_t n) { return scalar::dot(a, b, n); }
double sum_of_squares(const float* x, int64_t n) { return scalar::sum_of_squares(x, n); }
float largest(const float* x, int64_t n) { return scalar::largest(x, n); }
int64_t arg_max(const float* x, int64_t n) { return scalar::arg_max(x, n); }
void add_column_sums(const float* x, int64_t rows, int64_t row_stride, float* y, int64_t n) {
  scalar::add_column_sums(x, rows, row_stride, y, n);
}
float softmax(const float* x, float* y, int64_t n) { return scalar::softmax(x, y, n); }
float log_sum_exp(const float* x, int64_t n) { return scalar::log_sum_exp(x, n); }
void softmax_backward(const float* y, const float* dy, float* dx, int64_t n) {
  scalar::softmax_backward(y, dy, dx, n);
}
double cross_entropy(float* x, int64_t n, int64_t target, double smoothing, float scale, float* dbias) {
  return scalar::cross_entropy(x, n, target, smoothing, scale, dbias);
}
void gru_forward(const GruForward& row, int64_t n) { scalar::gru_forward<float>(row, n); }
void gru_backward(const GruBackward& row, int64_t n) { scalar::gru_backward<float>(row, n); }
void adam(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  scalar::adam(w, g, m, v, n, step);
}
const char* target_name() { return "scalar"; }

}  // namespace regard::simd
