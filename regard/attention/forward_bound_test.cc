// The bound that every form of softmax attention keeps in f32: |error| <= 2e-6 max(1, largest |score|)
// largest |V|, against the same form in f64. Exact attention: attention_test.cc. Here: decoding, additive,
// dot, general, concat, local; every mask they have, every tail, every instruction set.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "regard/attention/additive.h"
#include "regard/attention/decode.h"
#include "regard/attention/local.h"
#include "regard/attention/scores.h"
#include "tests/support/attention_case.h"
#include "tests/support/every_target.h"
#include "tests/support/padded_matrix.h"

namespace regard::attention {
namespace {

using tests::largest;
using tests::normals;
using tests::on_every_target;

template <class T>
void expect_bound(const std::vector<float>& got, const std::vector<double>& expected, double largest_score,
                  const std::vector<T>& v) {
  ASSERT_EQ(got.size(), expected.size());
  const double bound = 2e-6 * std::max(1., largest_score) * largest(v);
  for (size_t n = 0; n < got.size(); ++n) ASSERT_NEAR(static_cast<double>(got[n]), expected[n], bound) << n;
}

/// Sources of every length up to past two vectors of 16, and some longer ones.
std::vector<int64_t> source_starts() {
  std::vector<int64_t> offsets = {0};
  for (int64_t n = 0; n <= 33; ++n) offsets.push_back(offsets.back() + n);
  for (const int64_t n : {63, 64, 65, 130}) offsets.push_back(offsets.back() + n);
  return offsets;
}

enum class Form { additive, dot, general, concat, local_m, local_p };
constexpr Form kForms[] = {Form::additive, Form::dot,     Form::general,
                           Form::concat,   Form::local_m, Form::local_p};

/// A step of one row for each source; K is the width of states and keys, E of values.
template <class T>
struct Step {
  Step(int64_t k, int64_t e) : K(k), E(e) {
    state = normals<T>(R * K, 1), keys = normals<T>(S * K, 2), values = normals<T>(S * E, 3);
    W = normals<T>(K * (2 * K), 4), v = normals<T>(K, 5);
    query.resize(state.size());
    weights.resize(static_cast<size_t>(R * kLongest)), context.resize(static_cast<size_t>(R * E));
    softmax.resize(static_cast<size_t>(R * (2 * kHalf + 1)));
    for (int64_t i = 0; i < R; ++i) {  // in, at the edges of and outside their sources
      const T length = static_cast<T>(offsets[static_cast<size_t>(i + 1)] - offsets[static_cast<size_t>(i)]);
      centres.push_back(length * static_cast<T>(i % 5) / T{4} + T{0.3f});
    }
  }
  static constexpr int64_t kLongest = 130, kHalf = 9;
  const std::vector<int64_t> offsets = source_starts();
  int64_t R = static_cast<int64_t>(offsets.size()) - 1, S = offsets.back(), K, E;
  std::vector<T> state, keys, values, W, v, query, weights, context, softmax, centres;

  static MatrixView<const T> in(const std::vector<T>& x, int64_t rows, int64_t columns) {
    return matrix(x.data(), rows, columns);
  }
  void forward(Form form) {
    const auto q = in(state, R, K), k = in(keys, S, K), h = in(values, S, E);
    const auto queries = matrix(query.data(), R, K), alpha = matrix(weights.data(), R, kLongest),
               c = matrix(context.data(), R, E);
    switch (form) {
      case Form::additive:
        return additive_forward({q, k, h, v.data(), offsets}, alpha, c);
      case Form::dot:
        return dot_forward({q, k, h, offsets}, alpha, c);
      case Form::general:
        return general_forward({q, in(W, K, K), k, h, offsets}, queries, alpha, c);
      case Form::concat:
        return concat_forward({q, in(W, K, 2 * K), v.data(), k, h, offsets}, queries, alpha, c);
      case Form::local_m:
      case Form::local_p:
        return local_forward({.query = q,
                              .keys = k,
                              .scores = {},
                              .values = h,
                              .centres = centres,
                              .half_width = kHalf,
                              .gaussian = form == Form::local_p,
                              .offsets = offsets},
                             matrix(softmax.data(), R, 2 * kHalf + 1), alpha, c);
    }
  }
  /// Of all pairs; after forward().
  double largest_score(Form form) const {
    const bool hidden = form == Form::additive || form == Form::concat;
    const std::vector<T>& left = form == Form::general || form == Form::concat ? query : state;
    double most = 0;
    for (int64_t i = 0; i < R; ++i) {
      for (int64_t j = offsets[static_cast<size_t>(i)]; j < offsets[static_cast<size_t>(i + 1)]; ++j) {
        double sum = 0;
        for (int64_t n = 0; n < K; ++n) {
          const double x = left[static_cast<size_t>(i * K + n)], y = keys[static_cast<size_t>(j * K + n)];
          sum += hidden ? v[static_cast<size_t>(n)] * std::tanh(x + y) : x * y;
        }
        most = std::max(most, std::abs(sum));
      }
    }
    return most;
  }
};

TEST(ForwardBound, EveryScore) {
  for (const Form form : kForms)
    for (const auto& [K, E] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 64}, {3, 17}, {8, 1}, {16, 33}, {33, 16}, {64, 5}, {80, 80}}) {
      SCOPED_TRACE("form " + std::to_string(static_cast<int>(form)) + ", K " + std::to_string(K) + ", E " +
                   std::to_string(E));
      Step<double> f64(K, E);
      f64.forward(form);
      const double score = f64.largest_score(form);
      on_every_target([&, width = K, values = E] {
        Step<float> f32(width, values);
        f32.forward(form);
        expect_bound(f32.context, f64.context, score, f32.values);
      });
      if (HasFatalFailure()) return;
    }
}

/// A cache and its queries with one of the masks.
template <class T>
struct Decoding {
  Decoding(int64_t s, int64_t d, int64_t e, double magnitude) : S(s), D(d), E(e) {
    q = normals<T>(kItems * kHeads * kQueries * D, 1), k = normals<T>(kItems * kHeads * S * D, 2);
    v = normals<T>(kItems * kHeads * S * E, 3),
    out.resize(static_cast<size_t>(kItems * kHeads * kQueries * E));
    for (T& x : q) x *= static_cast<T>(magnitude);
    for (int64_t h = 0; h < kHeads; ++h) slopes.push_back(T{0.5f} / static_cast<T>(h + 1));
    lengths = {S, S / 2, 0};
  }
  static constexpr int64_t kItems = 3, kHeads = 2, kQueries = 2;
  int64_t S, D, E;
  std::vector<T> q, k, v, out, slopes;
  std::vector<int64_t> lengths;

  View4<const T> in(const std::vector<T>& x, int64_t rows, int64_t width) const {
    return dense(x.data(), std::array<int64_t, 4>{kItems, kHeads, rows, width});
  }
  void forward(const std::string& mask) {
    DecodeOptions<T> options;
    if (mask == "causal") options.causal = true;
    if (mask == "window") options.window = {20, 0};
    if (mask == "lengths") options.key_lengths = lengths;
    if (mask == "ALiBi") options.alibi_slopes = slopes;
    if (mask == "sink") options.sink = slopes;
    if (mask == "softcap") options.softcap = 2;
    const DecodeCache<T> cache{in(k, S, D), in(v, S, E), {}};
    const View4<const T> queries = in(q, kQueries, D);
    const View4<T> result = dense(out.data(), std::array<int64_t, 4>{kItems, kHeads, kQueries, E});
    if constexpr (std::is_same_v<T, float>) {
      std::vector<float> scratch(static_cast<size_t>(decode_scratch_size(queries, cache)));
      decode(queries, cache, result, {}, scratch, options);
    } else {
      decode(queries, cache, result, {}, options);
    }
  }
  double largest_score() const {
    double most = 0;
    for (int64_t n = 0; n < kItems * kHeads; ++n)
      for (int64_t i = 0; i < kQueries; ++i)
        for (int64_t j = 0; j < S; ++j) {
          double sum = 0;
          for (int64_t d = 0; d < D; ++d)
            sum += q[static_cast<size_t>((n * kQueries + i) * D + d)] *
                   k[static_cast<size_t>((n * S + j) * D + d)];
          most = std::max(most, std::abs(sum) / std::sqrt(static_cast<double>(D)));
        }
    return most;
  }
};

TEST(ForwardBound, Decoding) {
  for (const std::string mask : {"none", "causal", "window", "lengths", "ALiBi", "sink", "softcap"})
    for (const auto& [D, E] : std::vector<std::pair<int64_t, int64_t>>{{1, 16}, {7, 64}, {64, 33}, {80, 3}})
      for (const int64_t S : {1, 2, 15, 16, 17, 31, 33, 129, 1040}) {
        if (S > 1000 && D != 64) continue;  // two parts of the cache
        SCOPED_TRACE(mask + ", S " + std::to_string(S) + ", D " + std::to_string(D) + ", E " +
                     std::to_string(E));
        const double magnitude = S == 129 ? 20 : 1;  // scores of up to 80
        Decoding<double> f64(S, D, E, magnitude);
        f64.forward(mask);
        const double score = f64.largest_score();
        on_every_target([&, d = D, e = E, s = S] {
          Decoding<float> f32(s, d, e, magnitude);
          f32.forward(mask);
          expect_bound(f32.out, f64.out, score, f32.v);
        });
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace regard::attention
