// Attention over all keys from attention over parts of them.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "regard/attention/attention.h"
#include "regard/attention/problem.h"
#include "regard/base/error.h"

namespace regard::attention {
namespace {

template <class R>
void check(std::span<const PartialState<R>> parts, std::span<const R> sink, const View4<R>& out,
           const View3<R>& log_sum_exp) {
  const auto [B, H, T, E] = out.shape;
  const std::array<int64_t, 3> statistics = {B, H, T};
  expect_shape("log_sum_exp", log_sum_exp.shape, statistics, "B, H, T");
  for (const PartialState<R>& part : parts) {
    expect_shape("part's out", part.out.shape, out.shape, "B, H, T, E");
    expect_shape("part's log_sum_exp", part.log_sum_exp.shape, statistics, "B, H, T");
  }
  if (!sink.empty() && static_cast<int64_t>(sink.size()) != H)
    throw ShapeError("[attention] sink [" + std::to_string(sink.size()) + "], expected [" +
                     std::to_string(H) + "] (H)");
}

/// One row: factors become what the parts' outputs are multiplied by; the log-sum-exp of all.
template <class R>
double merge_row(const std::vector<double>& l, double sink, std::vector<double>& factors) {
  constexpr double kEmpty = -std::numeric_limits<double>::infinity();
  double largest = sink;
  for (const double x : l) largest = std::max(largest, x);
  double sum = sink == kEmpty ? 0 : std::exp(sink - largest);
  for (size_t p = 0; p < l.size(); ++p) {
    factors[p] = l[p] == kEmpty ? 0 : std::exp(l[p] - largest);
    sum += factors[p];
  }
  for (double& x : factors) x = sum == 0 ? 0 : x / sum;
  return sum == 0 ? kEmpty : largest + std::log(sum);
}

template <class R>
void merge_states(std::span<const PartialState<R>> parts, std::span<const R> sink, const View4<R>& out,
                  const View3<R>& log_sum_exp) {
  check(parts, sink, out, log_sum_exp);
  const auto [B, H, T, E] = out.shape;
  std::vector<double> l(parts.size()), factors(parts.size());
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      const double sink_h =
          sink.empty() ? -std::numeric_limits<double>::infinity() : sink[static_cast<size_t>(h)];
      for (int64_t i = 0; i < T; ++i) {
        for (size_t p = 0; p < parts.size(); ++p) l[p] = parts[p].log_sum_exp(b, h, i);
        log_sum_exp(b, h, i) = static_cast<R>(merge_row<R>(l, sink_h, factors));
        for (int64_t e = 0; e < E; ++e) {
          double sum = 0;
          for (size_t p = 0; p < parts.size(); ++p) {
            if (l[p] != -std::numeric_limits<double>::infinity())
              sum += factors[p] * parts[p].out(b, h, i, e);
          }
          out(b, h, i, e) = static_cast<R>(sum);
        }
      }
    }
  }
}

}  // namespace

void merge(std::span<const PartialState<float>> parts, std::span<const float> sink, View4<float> out,
           View3<float> log_sum_exp) {
  merge_states(parts, sink, out, log_sum_exp);
}
void merge(std::span<const PartialState<double>> parts, std::span<const double> sink, View4<double> out,
           View3<double> log_sum_exp) {
  merge_states(parts, sink, out, log_sum_exp);
}

}  // namespace regard::attention
