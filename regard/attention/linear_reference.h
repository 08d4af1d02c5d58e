#pragma once
// Linear attention of one head as its formula, in f64: what linear.h is tested against.

#include <cmath>
#include <vector>

#include "regard/attention/linear.h"
#include "regard/base/span.h"

namespace regard::attention::reference {

inline double feature(FeatureMap map, double x) {
  switch (map) {
    case FeatureMap::elu_plus_one:
      return x > 0 ? x + 1 : std::exp(x);
    case FeatureMap::relu:
      return x < 0 ? 0 : x;
    case FeatureMap::identity:
      break;
  }
  return x;
}

/// o_i = scale (phi(q_i)' S_0 + sum_j phi(q_i)' phi(k_j) v_j') / (phi(q_i)' z_0 + sum_j phi(q_i)' phi(k_j));
/// S0 [D, E] and z0 [D].
inline void linear_attention(MatrixView<const double> q, MatrixView<const double> k,
                             MatrixView<const double> v, MatrixView<const double> S0, const double* z0,
                             const LinearOptions& options, MatrixView<double> o) {
  for (int64_t i = 0; i < q.rows; ++i) {
    std::vector<double> numerator(static_cast<size_t>(v.columns));
    double denominator = 0;
    for (int64_t c = 0; c < q.columns; ++c) {
      const double x = feature(options.map, q(i, c));
      denominator += x * z0[c];
      for (int64_t e = 0; e < v.columns; ++e) numerator[static_cast<size_t>(e)] += x * S0(c, e);
    }
    for (int64_t j = 0; j < (options.causal ? i + 1 : k.rows); ++j) {
      double similarity = 0;
      for (int64_t c = 0; c < q.columns; ++c)
        similarity += feature(options.map, q(i, c)) * feature(options.map, k(j, c));
      denominator += similarity;
      for (int64_t e = 0; e < v.columns; ++e) numerator[static_cast<size_t>(e)] += similarity * v(j, e);
    }
    if (!options.normalise) denominator = 1;
    for (int64_t e = 0; e < v.columns; ++e)
      o(i, e) = denominator == 0 ? 0 : options.scale * numerator[static_cast<size_t>(e)] / denominator;
  }
}

}  // namespace regard::attention::reference
