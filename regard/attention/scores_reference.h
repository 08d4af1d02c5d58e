#pragma once
// The scores of Luong et al. 2015, arXiv:1508.04025, 3.1, as they are printed, for one state and one source
// in f64: what scores.h is tested against.

#include <cmath>
#include <vector>

#include "regard/base/span.h"
#include "regard/simd/scalar.h"

namespace regard::attention::reference {

using Vector = std::vector<double>;
using Matrix = MatrixView<const double>;

inline double product(const double* a, const double* b, int64_t n) { return simd::scalar::dot(a, b, n); }

/// W x
inline Vector product(const Matrix& W, const Vector& x) {
  Vector y(static_cast<size_t>(W.rows));
  for (int64_t a = 0; a < W.rows; ++a) y[static_cast<size_t>(a)] = product(W.row(a), x.data(), W.columns);
  return y;
}

/// score(s, h_j) = s' h_j for all j.
inline Vector dot_scores(const Vector& s, const Matrix& h) { return product(h, s); }

/// score(s, h_j) = s' W h_j
inline Vector general_scores(const Vector& s, const Matrix& W, const Matrix& h) {
  Vector e;
  for (int64_t j = 0; j < h.rows; ++j) {
    const Vector Wh = product(W, Vector(h.row(j), h.row(j) + h.columns));
    e.push_back(product(s.data(), Wh.data(), W.rows));
  }
  return e;
}

/// score(s, h_j) = v' tanh(W [s; h_j])
inline Vector concat_scores(const Vector& s, const Matrix& W, const Vector& v, const Matrix& h) {
  Vector e;
  for (int64_t j = 0; j < h.rows; ++j) {
    Vector both = s;
    both.insert(both.end(), h.row(j), h.row(j) + h.columns);
    Vector hidden = product(W, both);
    for (double& x : hidden) x = std::tanh(x);
    e.push_back(product(v.data(), hidden.data(), W.rows));
  }
  return e;
}

/// scores = W s, of which the source's first S count; positions behind W's rows have none.
inline Vector location_scores(const Vector& s, const Matrix& W, int64_t S) {
  Vector e = product(W, s);
  e.resize(static_cast<size_t>(S), -simd::scalar::kInfinity<double>);
  return e;
}

/// alpha = softmax(e)
inline Vector softmax(const Vector& e) {
  Vector alpha(e.size());
  simd::scalar::softmax(e.data(), alpha.data(), static_cast<int64_t>(e.size()));
  return alpha;
}

/// c = sum_j alpha_j h_j
inline Vector context(const Vector& alpha, const Matrix& h) {
  Vector c(static_cast<size_t>(h.columns));
  for (int64_t j = 0; j < h.rows; ++j)
    simd::scalar::axpy(alpha[static_cast<size_t>(j)], h.row(j), c.data(), h.columns);
  return c;
}

}  // namespace regard::attention::reference
