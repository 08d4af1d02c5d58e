#pragma once
// Decoding written as its formulas, in f64: what the kernel is compared with, and the f64 path of decode.h.

#include <cmath>
#include <limits>
#include <vector>

#include "regard/attention/decode.h"
#include "regard/simd/scalar.h"

namespace regard::attention::reference {

/// One row: query i of head h of item b.
template <class Q, class T, class R>
struct DecodeRow {
  const View4<const Q>& q;
  const DecodeCache<T>& cache;
  const DecodeOptions<R>& options;
  int64_t b, h, i;

  int64_t kv_head() const { return h / (q.shape[1] / cache.keys.shape[1]); }
  int64_t length() const {
    const int64_t pages = cache.block_table.data ? cache.block_table.columns : 1;
    return options.key_lengths.empty() ? pages * cache.keys.shape[2]
                                       : options.key_lengths[static_cast<size_t>(b)];
  }
  /// Where the query stands among the keys.
  int64_t position() const {
    return i + (options.offsets.empty() ? length() - q.shape[2] : options.offsets[static_cast<size_t>(b)]);
  }
  bool allowed(int64_t j) const {
    const int64_t p = position();
    return j < length() && (!options.causal || j <= p) &&
           (options.window.left < 0 || p - j <= options.window.left) &&
           (options.window.right < 0 || j - p <= options.window.right);
  }
  /// Element c of position j of keys or values.
  double at(const View4<const T>& x, int64_t j, int64_t c) const {
    const int64_t size = x.shape[2];
    const int64_t page = cache.block_table.data ? cache.block_table(b, j / size) : b;
    return static_cast<double>(static_cast<R>(x(page, kv_head(), j % size, c)));
  }
  double score(int64_t j) const {
    const int64_t D = q.shape[3];
    double s = 0;
    for (int64_t c = 0; c < D; ++c) s += static_cast<double>(q(b, h, i, c)) * at(cache.keys, j, c);
    s *= options.scale.value_or(1 / std::sqrt(static_cast<double>(D)));
    if (options.softcap > 0) s = options.softcap * std::tanh(s / options.softcap);
    if (!options.alibi_slopes.empty())
      s -= static_cast<double>(options.alibi_slopes[static_cast<size_t>(h)]) *
           std::abs(static_cast<double>(position() - j));
    return s;
  }
  /// s over the keys, and behind them the sink; p = softmax(s); o = sum_j p_j v_j. Returns log sum_j
  /// exp(s_j).
  template <class Out>
  double attend(const View4<Out>& out) const {
    std::vector<int64_t> keys;
    std::vector<double> s;
    for (int64_t j = 0; j < length(); ++j)
      if (allowed(j)) keys.push_back(j), s.push_back(score(j));
    if (!options.sink.empty()) s.push_back(static_cast<double>(options.sink[static_cast<size_t>(h)]));
    std::vector<double> p(s.size());
    const double lse = simd::scalar::softmax(s.data(), p.data(), static_cast<int64_t>(s.size()));
    for (int64_t c = 0; c < out.shape[3]; ++c) {
      double o = 0;
      for (size_t n = 0; n < keys.size(); ++n) o += p[n] * at(cache.values, keys[n], c);
      out(b, h, i, c) = static_cast<Out>(o);
    }
    return lse;
  }
};

/// All rows. log_sum_exp without data is left out.
template <class Q, class T, class R, class Out>
void decode(const View4<const Q>& q, const DecodeCache<T>& cache, const DecodeOptions<R>& options,
            const View4<Out>& out, const View3<Out>& log_sum_exp) {
  for (int64_t b = 0; b < q.shape[0]; ++b)
    for (int64_t h = 0; h < q.shape[1]; ++h)
      for (int64_t i = 0; i < q.shape[2]; ++i) {
        const double lse = DecodeRow<Q, T, R>{q, cache, options, b, h, i}.attend(out);
        if (log_sum_exp) log_sum_exp(b, h, i) = static_cast<Out>(lse);
      }
}

}  // namespace regard::attention::reference
