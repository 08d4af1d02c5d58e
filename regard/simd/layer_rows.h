#pragma once
// Row kernels of feed-forward networks and of what stands around them: norms, activations, dropout. f32
// (Highway, dynamic dispatch) and f64 (scalar, accurate), as in regard/simd/rows.h; the scalar twins are in
// regard/simd/scalar_layers.h. Rows may be unaligned; unless said, input and output may be the same memory.

#include <cstdint>

namespace regard::simd {

/// What normalises a row: its mean, and 1 / sqrt(variance + epsilon) with the variance over n.
template <class T>
struct RowMoments {
  T mean = 0, scale = 0;
};

/// y = (x - mean) scale gain + bias.  Ba, Kiros and Hinton 2016, arXiv:1607.06450, equation 4.
RowMoments<float> layer_norm(const float* x, const float* gain, const float* bias, double epsilon, float* y,
                             int64_t n);
RowMoments<double> layer_norm(const double* x, const double* gain, const double* bias, double epsilon,
                              double* y, int64_t n);

/// Backward of it. With h = (x - mean) scale and d = dy gain:
///   dx = scale (d - mean_j d_j - h mean_j d_j h_j)   dgain += dy h   dbias += dy
/// dx may be dy, not x.
void layer_norm_backward(const float* x, RowMoments<float> moments, const float* gain, const float* dy,
                         float* dx, float* dgain, float* dbias, int64_t n);
void layer_norm_backward(const double* x, RowMoments<double> moments, const double* gain, const double* dy,
                         double* dx, double* dgain, double* dbias, int64_t n);

/// y = x sigmoid(x).  Ramachandran, Zoph and Le 2017, arXiv:1710.05941, with beta = 1.
void swish(const float* x, float* y, int64_t n);
void swish(const double* x, double* y, int64_t n);
/// dx = dy s (1 + x (1 - s)),  s = sigmoid(x)
void swish_backward(const float* x, const float* dy, float* dx, int64_t n);
void swish_backward(const double* x, const double* dy, double* dx, int64_t n);

/// y = x + 1 for x > 0, else exp(x): elu plus one, positive everywhere.  Katharopoulos et al. 2020,
/// arXiv:2006.16236, equation 7. NaN stays NaN.
void elu_plus_one(const float* x, float* y, int64_t n);
void elu_plus_one(const double* x, double* y, int64_t n);
/// dx = y > 1 ? dy : dy y
void elu_plus_one_backward(const float* y, const float* dy, float* dx, int64_t n);
void elu_plus_one_backward(const double* y, const double* dy, double* dx, int64_t n);

/// Which numbers of a row are dropped: number i is kept if word i % 4 of philox({i / 4, 0, 0, 0}, key) is at
/// least `threshold` = probability 2^32, and then multiplied by `factor` = 1 / (1 - probability).
struct DropoutRow {
  uint64_t key = 0;
  uint32_t threshold = 0;
  double factor = 1;
};
/// y = x, some numbers dropped. It is its own backward.
void dropout(const float* x, float* y, int64_t n, const DropoutRow& row);
void dropout(const double* x, double* y, int64_t n, const DropoutRow& row);
/// y = a + x, some numbers of x dropped.
void add_dropout(const float* a, const float* x, float* y, int64_t n, const DropoutRow& row);
void add_dropout(const double* a, const double* x, double* y, int64_t n, const DropoutRow& row);

}  // namespace regard::simd
