#pragma once
// The scalar twins of regard/simd/rows.h: each function written as its formula, for any floating type. They
// are the f64 kernels, and in f64 what the tests compare the f32 kernels with.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace regard::simd::scalar {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
void exp(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}

template <class T>
void tanh(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

template <class T>
void sigmoid(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = sigmoid(x[i]);
}

template <class T>
void add(const T* a, const T* b, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

template <class T>
void multiply(const T* a, const T* b, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

template <class T>
void multiply_add(const T* a, const T* b, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a[i] * b[i];
}

template <class T>
void axpy(std::type_identity_t<T> alpha, const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

template <class T>
void scale(std::type_identity_t<T> alpha, const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
}

template <class T>
void tanh_backward(const T* y, const T* dy, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

template <class T>
void relu(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? T{0} : x[i];
}

template <class T>
void relu_backward(const T* y, const T* dy, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] > 0 ? dy[i] : T{0};
}

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

template <class T>
T largest(const T* x, int64_t n) {
  T m = -kInfinity<T>;
  for (int64_t i = 0; i < n; ++i)
    if (!(x[i] <= m)) {
      m = x[i];
      if (std::isnan(m)) return m;
    }
  return m;
}

/// NaN loses every comparison: it is chosen only at index 0 with nothing but NaN behind it.
template <class T>
int64_t arg_max(const T* x, int64_t n) {
  int64_t best = n > 0 ? 0 : -1;
  for (int64_t i = 1; i < n; ++i)
    if (x[i] > x[best] || (std::isnan(x[best]) && !std::isnan(x[i]))) best = i;
  return best;
}

template <class T>
void add_column_sums(const T* x, int64_t rows, int64_t row_stride, T* y, int64_t n) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < n; ++j) y[j] += x[i * row_stride + j];
}

template <class T>
T log_sum_exp(const T* x, int64_t n) {
  const T m = largest(x, n);
  if (std::isinf(m) || std::isnan(m)) return m;
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - m);
  return m + std::log(sum);
}

template <class T>
T softmax(const T* x, T* y, int64_t n) {
  const T lse = log_sum_exp(x, n);
  if (lse == -kInfinity<T>) {
    std::fill(y, y + n, T{0});
    return lse;
  }
  if (!std::isfinite(lse)) {
    std::fill(y, y + n, std::numeric_limits<T>::quiet_NaN());
    return lse;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i] - lse);
  return lse;
}

template <class T>
void softmax_backward(const T* y, const T* dy, T* dx, int64_t n) {
  const T mean = dot(y, dy, n);
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - mean);
}

template <class T>
double cross_entropy(T* x, int64_t n, int64_t target, double smoothing, std::type_identity_t<T> scale,
                     T* dbias) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += static_cast<double>(x[j]);
  const double share = smoothing / static_cast<double>(n), x_target = static_cast<double>(x[target]);
  const double lse = static_cast<double>(softmax(x, x, n));
  // Without smoothing a logit of -infinity must not matter.
  const double smooth = smoothing == 0 ? 0 : share * sum;
  for (int64_t j = 0; j < n; ++j) {
    const double probability = static_cast<double>(x[j]);
    x[j] = static_cast<T>(static_cast<double>(scale) *
                          (probability - (j == target ? 1 - smoothing : 0.0) - share));
    if (dbias) dbias[j] += x[j];
  }
  return lse - (1 - smoothing) * x_target - smooth;
}

/// T is the element type, Row GruForward or GruForwardF64.
template <class T, class Row>
void gru_forward(const Row& row, int64_t n) {
  const auto x = [&](int64_t i) { return row.x2 ? row.x[i] + row.x2[i] : row.x[i]; };
  for (int64_t i = 0; i < n; ++i) {
    const T r = sigmoid(x(i) + row.gh[i]);
    const T z = sigmoid(x(n + i) + row.gh[n + i]);
    const T q = row.gh[2 * n + i] + row.bn[i];
    const T candidate = std::tanh(x(2 * n + i) + r * q);
    const T h = (1 - z) * candidate + z * row.h_prev[i];
    if (row.gates) {
      row.gates[i] = r;
      row.gates[n + i] = z;
      row.gates[2 * n + i] = candidate;
      row.gates[3 * n + i] = q;
    }
    row.h[i] = h;
  }
}

/// Differentiates gru_forward.
template <class T, class Row>
void gru_backward(const Row& row, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T r = row.gates[i], z = row.gates[n + i], candidate = row.gates[2 * n + i],
            q = row.gates[3 * n + i];
    const T dh = row.dh[i] + row.carry[i];                        // h = (1 - z) n~ + z h_prev
    const T dz = dh * (row.h_prev[i] - candidate) * z * (1 - z);  // z = sigmoid(..)
    const T dn = dh * (1 - z) * (1 - candidate * candidate);      // n~ = tanh(xn + r q)
    const T dr = dn * q * r * (1 - r);                            // r = sigmoid(..)
    const T dx[3] = {dr, dz, dn};
    for (int64_t part = 0; part < 3; ++part) {
      if (row.dx) row.dx[part * n + i] = dx[part];
      if (row.dx_sum) row.dx_sum[part * n + i] += dx[part];
    }
    row.dgh[i] = dr;
    row.dgh[n + i] = dz;
    row.dgh[2 * n + i] = dn * r;
    row.carry[i] = dh * z;
  }
}

/// T is the element type, Row LstmForward or LstmForwardF64.
template <class T, class Row>
void lstm_forward(const Row& row, int64_t n) {
  const auto sum = [&](int64_t k) { return (row.x2 ? row.x[k] + row.x2[k] : row.x[k]) + row.gh[k]; };
  for (int64_t j = 0; j < n; ++j) {
    const T i = sigmoid(sum(j));
    const T f = sigmoid(sum(n + j));
    const T g = std::tanh(sum(2 * n + j));
    const T o = sigmoid(sum(3 * n + j));
    if (row.gates) {
      row.gates[j] = i;
      row.gates[n + j] = f;
      row.gates[2 * n + j] = g;
      row.gates[3 * n + j] = o;
    }
    row.c[j] = f * row.c_prev[j] + i * g;
    row.h[j] = o * std::tanh(row.c[j]);
  }
}

/// Differentiates lstm_forward.
template <class T, class Row>
void lstm_backward(const Row& row, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const T i = row.gates[j], f = row.gates[n + j], g = row.gates[2 * n + j], o = row.gates[3 * n + j];
    const T t = std::tanh(row.c[j]);
    const T dh = row.dh[j] + row.h_carry[j];  // h = o tanh(c)
    const T dc = (row.dc ? row.dc[j] : T{0}) + row.c_carry[j] + dh * o * (1 - t * t);
    const T d[4] = {dc * g * i * (1 - i),              // c = f c_prev + i g,  i = sigmoid(..)
                    dc * row.c_prev[j] * f * (1 - f),  // f = sigmoid(..)
                    dc * i * (1 - g * g),              // g = tanh(..)
                    dh * t * o * (1 - o)};             // o = sigmoid(..)
    for (int64_t part = 0; part < 4; ++part) {
      row.dgates[part * n + j] = d[part];
      if (row.dx_sum) row.dx_sum[part * n + j] += d[part];
    }
    row.c_carry[j] = dc * f;
  }
}

template <class T, class Step>
void adam(T* w, const T* g, T* m, T* v, int64_t n, const Step& step) {
  const T b1 = step.beta1, b2 = step.beta2;
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = static_cast<T>(step.gradient_scale) * g[i];
    m[i] += (1 - b1) * (gradient - m[i]);
    v[i] = b2 * v[i] + (1 - b2) * gradient * gradient;
    const T root = std::sqrt(v[i] * static_cast<T>(step.correction2)) + static_cast<T>(step.epsilon);
    w[i] -= static_cast<T>(step.rate) *
            (m[i] * static_cast<T>(step.correction1) / root + static_cast<T>(step.decay) * w[i]);
  }
}

}  // namespace regard::simd::scalar
