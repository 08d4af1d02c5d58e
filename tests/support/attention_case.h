#pragma once
// Random problems of exact attention with any of its options, the same numbers in f32 and f64.

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "regard/attention/attention.h"
#include "regard/base/random.h"
#include "tests/support/padded_matrix.h"

namespace regard::tests {

/// Which problem: a size and options. Everything a test varies has a name here.
struct AttentionCase {
  std::string name{};
  int64_t B = 1, H = 2, Hkv = 1, T = 5, S = 7, D = 3, E = 3;
  double magnitude = 1;  ///< of queries
  double softcap = 0;
  bool causal = false;
  attention::Window window{};
  attention::Alignment alignment = attention::Alignment::bottom_right;
  std::vector<int64_t> offsets{}, query_lengths{}, key_lengths{}, query_starts{}, key_starts{};
  bool mask = false, alibi = false, sink = false;
  enum class Bias { none, pairs, keys } bias = Bias::none;
  double minus_infinity = 0;  ///< share of the bias
  int64_t query_block = 0, key_block = 0;
  double dropout = 0;

  int64_t items() const { return query_starts.empty() ? B : static_cast<int64_t>(query_starts.size()) - 1; }
};

/// The operands and results of a case in T.
template <class T>
struct AttentionNumbers {
  using R = attention::Real<T>;

  explicit AttentionNumbers(const AttentionCase& c) : shape(c) {
    const auto numbers = [](int64_t n, uint64_t seed, double times = 1) {
      std::vector<T> x;
      for (const float number : normals<float>(n, seed)) {
        x.push_back(static_cast<T>(static_cast<R>(number * static_cast<float>(times))));
      }
      return x;
    };
    const auto reals = [](int64_t n, uint64_t seed) { return normals<R>(n, seed); };
    q = numbers(c.B * c.H * c.T * c.D, 1, c.magnitude);
    k = numbers(c.B * c.Hkv * c.S * c.D, 2);
    v = numbers(c.B * c.Hkv * c.S * c.E, 3);
    d_out = numbers(c.B * c.H * c.T * c.E, 4);
    d_lse = reals(c.B * c.H * c.T, 5);
    pairs_ = c.items() * c.H * c.T * c.S;
    RandomStream random(7, 1);
    if (c.bias == AttentionCase::Bias::pairs) bias = reals(pairs_, 6);
    if (c.bias == AttentionCase::Bias::keys) bias = reals(c.items() * c.S, 6);
    for (R& x : bias) {
      if (random.uniform() < c.minus_infinity) x = -std::numeric_limits<R>::infinity();
    }
    if (c.mask) mask = std::make_unique<bool[]>(static_cast<size_t>(pairs_));
    for (int64_t n = 0; n < pairs_ && c.mask; ++n) mask[static_cast<size_t>(n)] = random.uniform() < 0.6;
    sink = reals(c.H, 8);
    for (int64_t h = 0; h < c.H; ++h)
      slopes.push_back(static_cast<R>(std::exp2(-static_cast<double>(h + 1))));
    if (c.query_block > 0) list_blocks(random);
    const auto nan = std::numeric_limits<R>::quiet_NaN();
    out.assign(d_out.size(), static_cast<T>(nan));
    lse.assign(d_lse.size(), nan);
    d_q.assign(q.size(), static_cast<T>(nan));
    d_k.assign(k.size(), static_cast<T>(nan));
    d_v.assign(v.size(), static_cast<T>(nan));
    d_bias.assign(bias.size(), nan);
    d_sink.assign(sink.size(), nan);
  }

  attention::AttentionOptions<R> options() const {
    const AttentionCase& c = shape;
    attention::AttentionOptions<R> o;
    o.softcap = c.softcap;
    o.causal = c.causal;
    o.window = c.window;
    o.alignment = c.alignment;
    o.offsets = c.offsets;
    o.query_lengths = c.query_lengths, o.key_lengths = c.key_lengths;
    o.query_starts = c.query_starts, o.key_starts = c.key_starts;
    if (c.mask) o.mask = dense(static_cast<const bool*>(mask.get()), std::array{c.items(), c.H, c.T, c.S});
    if (c.bias != AttentionCase::Bias::none) o.bias = bias_view(bias.data());
    if (c.alibi) o.alibi_slopes = slopes;
    if (c.sink) o.sink = sink;
    if (c.query_block > 0) o.blocks = {c.query_block, c.key_block, row_starts, key_blocks};
    o.dropout = {.probability = c.dropout, .seed = 11, .step = 3, .layer = 1};
    return o;
  }

  template <class X>
  View4<X> bias_view(X* data) const {
    View4<X> x = dense(data, std::array{shape.items(), shape.H, shape.T, shape.S});
    if (shape.bias == AttentionCase::Bias::keys) x.stride = {shape.S, 0, 0, 1};
    return x;
  }
  View4<T> q_view() { return dense(q.data(), std::array{shape.B, shape.H, shape.T, shape.D}); }
  View4<T> k_view() { return dense(k.data(), std::array{shape.B, shape.Hkv, shape.S, shape.D}); }
  View4<T> v_view() { return dense(v.data(), std::array{shape.B, shape.Hkv, shape.S, shape.E}); }
  View4<T> out_view(std::vector<T>& x) {
    return dense(x.data(), std::array{shape.B, shape.H, shape.T, shape.E});
  }
  View3<R> row_view(std::vector<R>& x) { return dense(x.data(), std::array{shape.B, shape.H, shape.T}); }
  View4<R> pair_view(std::vector<R>& x) {
    return dense(x.data(), std::array{shape.items(), shape.H, shape.T, shape.S});
  }

  attention::AttentionOutputs<T> outputs(bool all) {
    attention::AttentionOutputs<T> o{.out = out_view(out), .log_sum_exp = row_view(lse)};
    if (all) {
      const auto nan = std::numeric_limits<R>::quiet_NaN();
      weights.assign(static_cast<size_t>(pairs_), nan);
      scores = weights;
      column_sums.assign(static_cast<size_t>(shape.B * shape.H * shape.S), nan);
      o.weights = pair_view(weights);
      o.scores = pair_view(scores);
      o.column_sums = dense(column_sums.data(), std::array{shape.B, shape.H, shape.S});
    }
    return o;
  }
  attention::AttentionGradients<T> gradients() {
    attention::AttentionGradients<T> g{.d_out = out_view(d_out),
                                       .d_log_sum_exp = row_view(d_lse),
                                       .d_q = dense(d_q.data(), q_view().shape),
                                       .d_k = dense(d_k.data(), k_view().shape),
                                       .d_v = dense(d_v.data(), v_view().shape)};
    if (shape.bias != AttentionCase::Bias::none) g.d_bias = bias_view(d_bias.data());
    if (shape.sink) g.d_sink = d_sink;
    return g;
  }
  void forward(bool all = false, ThreadPool* pool = nullptr) {
    attention::attention_forward(q_view(), k_view(), v_view(), outputs(all), options(), pool);
  }
  void backward(ThreadPool* pool = nullptr) {
    attention::attention_backward(q_view(), k_view(), v_view(), out_view(out), row_view(lse), gradients(),
                                  options(), pool);
  }

  AttentionCase shape;
  std::vector<T> q, k, v, d_out, out, d_q, d_k, d_v;
  std::vector<R> d_lse, bias, sink, slopes, lse, weights, scores, column_sums, d_bias, d_sink;
  std::unique_ptr<bool[]> mask;
  std::vector<int64_t> row_starts{0}, key_blocks;

 private:
  int64_t pairs_ = 0;

  void list_blocks(RandomStream& random) {
    for (int64_t r = 0; r * shape.query_block < shape.T; ++r) {
      for (int64_t c = 0; c * shape.key_block < shape.S; ++c) {
        if (random.uniform() < 0.5) key_blocks.push_back(c);
      }
      row_starts.push_back(static_cast<int64_t>(key_blocks.size()));
    }
  }
};

/// The largest size of a finite number.
template <class X>
double largest(const std::vector<X>& x) {
  double most = 0;
  for (const X& v : x) {
    const double size = std::abs(static_cast<double>(static_cast<attention::Real<X>>(v)));
    if (std::isfinite(size)) most = std::max(most, size);
  }
  return most;
}

/// One of each option, and what is likely to clash.
inline std::vector<AttentionCase> attention_options() {
  using Bias = AttentionCase::Bias;
  using attention::Alignment;
  return {
      {.name = "plain"},
      {.name = "causal", .causal = true},
      {.name = "causal from the top left", .causal = true, .alignment = Alignment::top_left},
      {.name = "window", .window = {5, 3}},
      {.name = "causal window", .causal = true, .window = {20, -1}},
      {.name = "softcap", .magnitude = 3, .softcap = 2.5},
      {.name = "mask", .mask = true},
      {.name = "bias", .bias = Bias::pairs},
      {.name = "bias with -infinity", .bias = Bias::pairs, .minus_infinity = 0.5},
      {.name = "bias of keys", .bias = Bias::keys, .minus_infinity = 0.2},
      {.name = "ALiBi, causal", .causal = true, .alibi = true},
      {.name = "sink", .causal = true, .sink = true},
      {.name = "blocks", .query_block = 24, .key_block = 20},
      {.name = "dropout", .dropout = 0.3},
      {.name = "everything",
       .softcap = 3,
       .causal = true,
       .window = {70, -1},
       .mask = true,
       .alibi = true,
       .sink = true,
       .bias = Bias::pairs,
       .minus_infinity = 0.1,
       .query_block = 50,
       .key_block = 33,
       .dropout = 0.2},
  };
}

}  // namespace regard::tests
