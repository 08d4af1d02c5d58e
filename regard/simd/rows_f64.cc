// The f64 kernels are the scalar twins.
#include "regard/simd/rows.h"
#include "regard/simd/scalar.h"

namespace regard::simd {

void exp(const double* x, double* y, int64_t n) { scalar::exp(x, y, n); }
void tanh(const double* x, double* y, int64_t n) { scalar::tanh(x, y, n); }
void sigmoid(const double* x, double* y, int64_t n) { scalar::sigmoid(x, y, n); }
void add(const double* a, const double* b, double* y, int64_t n) { scalar::add(a, b, y, n); }
void multiply(const double* a, const double* b, double* y, int64_t n) { scalar::multiply(a, b, y, n); }
void multiply_add(const double* a, const double* b, double* y, int64_t n) {
  scalar::multiply_add(a, b, y, n);
}
void axpy(double alpha, const double* x, double* y, int64_t n) { scalar::axpy(alpha, x, y, n); }
void scale(double alpha, const double* x, double* y, int64_t n) { scalar::scale(alpha, x, y, n); }
void tanh_backward(const double* y, const double* dy, double* dx, int64_t n) {
  scalar::tanh_backward(y, dy, dx, n);
}
void relu(const double* x, double* y, int64_t n) { scalar::relu(x, y, n); }
void relu_backward(const double* y, const double* dy, double* dx, int64_t n) {
  scalar::relu_backward(y, dy, dx, n);
}
double dot(const double* a, const double* b, int64_t n) { return scalar::dot(a, b, n); }
double sum_of_squares(const double* x, int64_t n) { return scalar::sum_of_squares(x, n); }
double largest(const double* x, int64_t n) { return scalar::largest(x, n); }
int64_t arg_max(const double* x, int64_t n) { return scalar::arg_max(x, n); }
void add_column_sums(const double* x, int64_t rows, int64_t row_stride, double* y, int64_t n) {
  scalar::add_column_sums(x, rows, row_stride, y, n);
}
double softmax(const double* x, double* y, int64_t n) { return scalar::softmax(x, y, n); }
double log_sum_exp(const double* x, int64_t n) { return scalar::log_sum_exp(x, n); }
void softmax_backward(const double* y, const double* dy, double* dx, int64_t n) {
  scalar::softmax_backward(y, dy, dx, n);
}
double cross_entropy(double* x, int64_t n, int64_t target, double smoothing, double scale, double* dbias) {
  return scalar::cross_entropy(x, n, target, smoothing, scale, dbias);
}
void gru_forward(const GruForwardF64& row, int64_t n) { scalar::gru_forward<double>(row, n); }
void gru_backward(const GruBackwardF64& row, int64_t n) { scalar::gru_backward<double>(row, n); }
void lstm_forward(const LstmForwardF64& row, int64_t n) { scalar::lstm_forward<double>(row, n); }
void lstm_backward(const LstmBackwardF64& row, int64_t n) { scalar::lstm_backward<double>(row, n); }

}  // namespace regard::simd
