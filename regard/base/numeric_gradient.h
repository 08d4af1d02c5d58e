#pragma once
// Numeric differentiation on spans: the witness of every hand-written gradient.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace regard {

/// d f / d x_i for every i by central differences with Richardson's extrapolation (error of order h^4):
/// (4 D(h/2) - D(h)) / 3. `x` is changed during the call and restored. Work in f64.
inline std::vector<double> numeric_gradient(const std::function<double()>& f, std::span<double> x,
                                            double h = 2e-3) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double x0 = x[i];
    const auto difference = [&](double step) {
      x[i] = x0 + step;
      const double above = f();
      x[i] = x0 - step;
      const double below = f();
      return (above - below) / (2 * step);
    };
    const double coarse = difference(h), fine = difference(h / 2);
    x[i] = x0;
    gradient[i] = (4 * fine - coarse) / 3;
  }
  return gradient;
}

/// The largest of |a_i - n_i| / max(|a_i|, |n_i|, floor * max_j |n_j|):
/// the measure of every gradient check. Infinity if an entry is not finite.
inline double gradient_error(std::span<const double> analytic, std::span<const double> numeric,
                             double floor = 1e-3) {
  double largest = 0, worst = 0;
  for (double n : numeric) largest = std::max(largest, std::abs(n));
  for (size_t i = 0; i < numeric.size(); ++i) {
    const double scale = std::max({std::abs(analytic[i]), std::abs(numeric[i]), floor * largest});
    if (!(std::isfinite(analytic[i]) && std::isfinite(numeric[i]))) return INFINITY;
    if (scale > 0) worst = std::max(worst, std::abs(analytic[i] - numeric[i]) / scale);
  }
  return worst;
}

}  // namespace regard
