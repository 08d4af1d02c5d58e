#pragma once
// Local attention of one state as its formulas (Luong et al. 2015, arXiv:1508.04025, 3.2), in f64: what
// local.h is tested against.

#include <cmath>

#include "regard/attention/scores_reference.h"

namespace regard::attention::reference {

/// p = S sigmoid(v' tanh(W s))
inline double centre(const Vector& s, const Matrix& W, const Vector& v, int64_t S) {
  Vector hidden = product(W, s);
  for (double& x : hidden) x = std::tanh(x);
  return static_cast<double>(S) * simd::scalar::sigmoid(product(v.data(), hidden.data(), W.rows));
}

/// alpha over all positions: softmax over |s - p| <= D, with local-p's factor if `gaussian`.
inline Vector local_weights(Vector e, double p, int64_t D, bool gaussian) {
  const auto inside = [&](size_t s) {
    return std::abs(static_cast<double>(s) - p) <= static_cast<double>(D);
  };
  for (size_t s = 0; s < e.size(); ++s)
    if (!inside(s)) e[s] = -simd::scalar::kInfinity<double>;
  Vector alpha = softmax(e);
  const double sigma = static_cast<double>(D) / 2;
  if (gaussian)
    for (size_t s = 0; s < e.size(); ++s)
      alpha[s] *= std::exp(-std::pow(static_cast<double>(s) - p, 2) / (2 * sigma * sigma));
  return alpha;
}

}  // namespace regard::attention::reference
