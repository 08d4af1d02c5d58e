#pragma once
// Kernels over one row of numbers, f32 (Highway, dynamic dispatch) and f64 (scalar, accurate). Each has a
// scalar twin in regard/simd/scalar.h that reads like the formula and is what the tests compare with. Rows
// may be unaligned; n may be 0. Unless said, input and output may be the same memory. An element's value
// never depends on its position or on n.

#include <cstdint>

namespace regard::simd {

// --- elementwise
void exp(const float* x, float* y, int64_t n);  ///< at most 1.5 ulp; below -87.33 exactly 0
void exp(const double* x, double* y, int64_t n);
void tanh(const float* x, float* y, int64_t n);  ///< |error| <= 4e-7; +-1 at infinity, NaN stays NaN
void tanh(const double* x, double* y, int64_t n);
void sigmoid(const float* x, float* y, int64_t n);  ///< |error| <= 4e-7
void sigmoid(const double* x, double* y, int64_t n);
void add(const float* a, const float* b, float* y, int64_t n);  ///< y = a + b
void add(const double* a, const double* b, double* y, int64_t n);
void multiply(const float* a, const float* b, float* y, int64_t n);  ///< y = a b
void multiply(const double* a, const double* b, double* y, int64_t n);
void multiply_add(const float* a, const float* b, float* y, int64_t n);  ///< y += a b
void multiply_add(const double* a, const double* b, double* y, int64_t n);
void axpy(float alpha, const float* x, float* y, int64_t n);  ///< y += alpha x
void axpy(double alpha, const double* x, double* y, int64_t n);
void scale(float alpha, const float* x, float* y, int64_t n);  ///< y = alpha x
void scale(double alpha, const double* x, double* y, int64_t n);
void tanh_backward(const float* y, const float* dy, float* dx, int64_t n);  ///< dx = dy (1 - y^2)
void tanh_backward(const double* y, const double* dy, double* dx, int64_t n);
void relu(const float* x, float* y, int64_t n);  ///< y = max(x, 0); NaN stays NaN
void relu(const double* x, double* y, int64_t n);
void relu_backward(const float* y, const float* dy, float* dx, int64_t n);  ///< dx = y > 0 ? dy : 0
void relu_backward(const double* y, const double* dy, double* dx, int64_t n);

// --- reductions
float dot(const float* a, const float* b, int64_t n);
double dot(const double* a, const double* b, int64_t n);
double sum_of_squares(const float* x, int64_t n);  ///< accumulated in f64
double sum_of_squares(const double* x, int64_t n);
float largest(const float* x, int64_t n);  ///< -infinity for n = 0; NaN if any is NaN
double largest(const double* x, int64_t n);
int64_t arg_max(const float* x, int64_t n);  ///< the lowest index of the largest; -1 for n = 0
int64_t arg_max(const double* x, int64_t n);
/// y += sum over rows of x [rows, n] with `row_stride`; rows are added in order.
void add_column_sums(const float* x, int64_t rows, int64_t row_stride, float* y, int64_t n);
void add_column_sums(const double* x, int64_t rows, int64_t row_stride, double* y, int64_t n);

// --- softmax
/// y = softmax(x), returns log-sum-exp. All -infinity: y = 0, returns -infinity. NaN or +infinity: y is NaN.
float softmax(const float* x, float* y, int64_t n);
double softmax(const double* x, double* y, int64_t n);
float log_sum_exp(const float* x, int64_t n);
double log_sum_exp(const double* x, int64_t n);
/// dx = y (dy - sum_j y_j dy_j)
void softmax_backward(const float* y, const float* dy, float* dx, int64_t n);
void softmax_backward(const double* y, const double* dy, double* dx, int64_t n);

/// Cross-entropy of one row of logits with label smoothing e spread over all n entries:
///   loss = lse(x) - (1 - e) x_target - e / n sum_j x_j      Szegedy et al. 2016, arXiv:1512.00567, section 7
/// Returns the loss and replaces x by its gradient,
///   scale * d loss / d x_j = scale * (softmax(x)_j - (1 - e) [j = target] - e / n),
/// which is also added to dbias [n] unless dbias is null.
double cross_entropy(float* x, int64_t n, int64_t target, double smoothing, float scale, float* dbias);
double cross_entropy(double* x, int64_t n, int64_t target, double smoothing, double scale, double* dbias);

// --- gates of recurrent cells
/// A GRU that resets after the product (cuDNN's and PyTorch's form), one row of width n:
///   r = sigmoid(xr + hr)   z = sigmoid(xz + hz)   q = hn + bn
///   n~ = tanh(xn + r q)    h = (1 - z) n~ + z h_prev
/// x holds [xr | xz | xn]: the input's projection with all biases but bn, given as the sum of `x` and, if not
/// null, `x2`. gh holds [hr | hz | hn] = W_hh h_prev, no bias. Writes gates [r | z | n~ | q] (4 n) for
/// backward (null: not kept) and h.
struct GruForward {
  const float* x;
  const float* x2;  // may be null
  const float* gh;
  const float* bn;  // [n]
  const float* h_prev;
  float* gates;  // [4 n], may be null; may be the memory of x2 or gh only if that has room for 4 n
  float* h;
};
void gru_forward(const GruForward& row, int64_t n);
/// Backward of it. dh is the gradient of h as the sum of `dh` and `carry`.
/// Writes dx [dr | dz | dn~] (3 n; may be null), adds the same to dx_sum (may be null),
/// writes dgh [dr | dz | dn~ r] (3 n),
/// and carry = dh z (the direct part of d h_prev; the caller adds W_hh' dgh).
/// The gradient of bn is the column sum of dgh's last part. dgh may be `gates`.
struct GruBackward {
  const float* gates;  // [4 n]
  const float* h_prev;
  const float* dh;
  float* carry;
  float* dx;
  float* dx_sum;
  float* dgh;
};
void gru_backward(const GruBackward& row, int64_t n);
struct GruForwardF64 {
  const double *x, *x2, *gh, *bn, *h_prev;
  double *gates, *h;
};
void gru_forward(const GruForwardF64& row, int64_t n);
struct GruBackwardF64 {
  const double *gates, *h_prev, *dh;
  double *carry, *dx, *dx_sum, *dgh;
};
void gru_backward(const GruBackwardF64& row, int64_t n);

/// A long short-term memory, one row of width n:
///   i = sigmoid(xi + hi)   f = sigmoid(xf + hf)   g = tanh(xg + hg)   o = sigmoid(xo + ho)
///   c = f c_prev + i g     h = o tanh(c)
/// x holds [xi | xf | xg | xo]: the input's projection with all biases,
/// given as the sum of `x` and, if not null, `x2`. gh holds W_hh h_prev in the same order.
/// Writes gates [i | f | g | o] for backward (null: not kept), c and h.
struct LstmForward {
  const float* x;
  const float* x2;  // may be null
  const float* gh;
  const float* c_prev;
  float* gates;  // [4 n], may be null; may be the memory of x2 or gh
  float* c;      // may be c_prev
  float* h;
};
void lstm_forward(const LstmForward& row, int64_t n);
/// Backward of it. The gradient of h is the sum of `dh` and `h_carry`,
/// that of c, beside what comes through h, the sum of `dc` and `c_carry`.
/// Writes dgates [di | df | dg | do] (the gradient of x and of gh), adds the same to dx_sum (may be null),
/// and writes c_carry = the gradient of c_prev (that of h_prev is W_hh' dgates). dgates may be `gates`.
struct LstmBackward {
  const float* gates;  // [4 n]
  const float* c_prev;
  const float* c;
  const float* dh;
  const float* dc;  // may be null
  const float* h_carry;
  float* c_carry;
  float* dx_sum;
  float* dgates;
};
void lstm_backward(const LstmBackward& row, int64_t n);
struct LstmForwardF64 {
  const double *x, *x2, *gh, *c_prev;
  double *gates, *c, *h;
};
void lstm_forward(const LstmForwardF64& row, int64_t n);
struct LstmBackwardF64 {
  const double *gates, *c_prev, *c, *dh, *dc, *h_carry;
  double *c_carry, *dx_sum, *dgates;
};
void lstm_backward(const LstmBackwardF64& row, int64_t n);

// --- optimiser
/// Adam (Kingma and Ba 2015, algorithm 1) with decoupled decay (Loshchilov and Hutter 2019) over n elements:
///   g = gradient_scale g;  m += (1 - b1)(g - m);  v = b2 v + (1 - b2) g^2
///   w -= rate (m correction1 / (sqrt(v correction2) + epsilon) + decay w),   correction_i = 1 / (1 - b_i^t)
struct AdamStep {
  float rate, beta1, beta2, epsilon, decay, correction1, correction2, gradient_scale;
};
void adam(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step);

/// The name of the instruction set that dispatch chose ("AVX3", "AVX2", "EMU128", ...).
const char* target_name();

}  // namespace regard::simd
