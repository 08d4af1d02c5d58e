// What users rely on: positions, groups, sinks, softcap, dropout, sizes of zero. On every path: f32 on every
// instruction set, and f64. Cases are those of python/tests/test_cases.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "regard/attention/attention.h"
#include "tests/support/attended.h"

namespace regard::attention {
namespace {

using tests::Attended;
using tests::AttentionCase;
using tests::on_every_path;

template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

template <class T>
void expect_all(const std::vector<T>& x, double value) {
  for (size_t n = 0; n < x.size(); ++n) ASSERT_EQ(static_cast<double>(x[n]), value) << n;
}
template <class T>
bool all_are_finite(const std::vector<T>& x) {
  return std::all_of(x.begin(), x.end(), [](T v) { return std::isfinite(v); });
}

// Case 9.
TEST(AttentionSemantics, SoftcapBeforeMaskAndWithoutOverflow) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x(
        {.H = 1, .T = 4, .S = 6, .D = 3, .E = 2, .softcap = 0.5, .bias = AttentionCase::Bias::keys});
    x.bias = {0, 0, 0, 0, -kInf<T>, -kInf<T>};
    std::fill(x.v.begin() + 8, x.v.end(), T{1e30f});
    x.forward();
    EXPECT_LT(tests::largest(x.out), 10);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(x.weights[i * 6 + 4], 0);

    Attended<T> y({.H = 1, .T = 1, .S = 5, .D = 1, .E = 1, .softcap = 50});
    y.changed.scale = 1;
    y.q = {1}, y.k = {1, 100, 1000, 5000, -10000};
    y.forward();
    const std::vector<double> expected = {0.99986669, 48.201379, 50, 50, -50};
    for (size_t j = 0; j < 5; ++j) EXPECT_NEAR(y.scores[j], expected[j], 5e-6 * std::abs(expected[j]));
  });
}

/// The allowed keys of each row as text, from the weights.
template <class T>
std::vector<std::string> pattern(AttentionCase c) {
  c.H = 1;
  Attended<T> x(c);
  x.forward();
  std::vector<std::string> rows;
  for (int64_t i = 0; i < c.T; ++i) {
    rows.emplace_back();
    for (int64_t j = 0; j < c.S; ++j)
      rows.back() += x.weights[static_cast<size_t>(i * c.S + j)] > 0 ? '1' : '0';
  }
  return rows;
}
using Pattern = std::vector<std::string>;

// Case 10.
TEST(AttentionSemantics, CausalAlignment) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    EXPECT_EQ(pattern<T>({.T = 2, .S = 5, .causal = true}), (Pattern{"11110", "11111"}));
    EXPECT_EQ(pattern<T>({.T = 5, .S = 2, .causal = true}), (Pattern{"00", "00", "00", "10", "11"}));
    EXPECT_EQ(pattern<T>({.T = 1, .S = 8, .causal = true, .alignment = Alignment::top_left}),
              (Pattern{"10000000"}));
    EXPECT_EQ(pattern<T>(
                  {.T = 2, .S = 4, .causal = true, .alignment = Alignment::explicit_offsets, .offsets = {1}}),
              (Pattern{"1100", "1110"}));
    EXPECT_EQ(pattern<T>({.T = 4, .S = 4, .causal = true, .key_lengths = {3}}),  // both lengths are 3
              (Pattern{"1000", "1100", "1110", "0000"}));
    EXPECT_EQ(pattern<T>({.T = 3, .S = 4, .causal = true, .key_lengths = {3}}),
              (Pattern{"1000", "1100", "1110"}));
    EXPECT_EQ(pattern<T>({.T = 4, .S = 6, .query_block = 2, .key_block = 4}).size(), 4u);
  });
}

// Case 11.
TEST(AttentionSemantics, WindowIsInclusive) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 1, .T = 5, .S = 5, .D = 1, .E = 1, .window = {2, 0}});
    x.q.assign(5, 0), x.v = {0, 1, 2, 3, 4};
    x.forward();
    EXPECT_NEAR(x.out[4], 3, 1e-6);
    x.changed.window = {1, 2};
    x.forward();
    const std::vector<double> expected = {1, 1.5, 2.5, 3, 3.5};
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(x.out[i], expected[i], 1e-6);
  });
  on_every_path([](auto zero) {
    using T = decltype(zero);
    for (const int64_t S : {1, 2, 16, 65, 97, 200}) {
      Attended<T> causal({.T = S, .S = S, .causal = true}), all({.T = S, .S = S, .window = {-1, 0}}),
          last({.T = S, .S = S, .window = {S - 1, 0}});
      causal.forward();
      all.forward();
      last.forward();
      EXPECT_EQ(causal.out, all.out);
      EXPECT_EQ(causal.out, last.out);
    }
  });
}

// Case 12.
TEST(AttentionSemantics, GroupedHeads) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    for (const auto& [Hq, Hkv] :
         std::vector<std::pair<int64_t, int64_t>>{{4, 2}, {6, 2}, {28, 4}, {9, 3}, {65, 5}}) {
      Attended<T> x({.H = Hq, .Hkv = Hkv, .T = 2, .S = 3, .D = 1, .E = 1});
      for (int64_t h = 0; h < Hkv; ++h) std::fill_n(x.v.begin() + h * 3, 3, static_cast<T>(h));
      std::fill(x.d_out.begin(), x.d_out.end(), T{1});
      x.forward();
      x.backward();
      for (int64_t h = 0; h < Hq; ++h)
        EXPECT_NEAR(x.out[static_cast<size_t>(h * 2)], static_cast<double>(h / (Hq / Hkv)), 1e-5);
      // The weights of 2 rows of each head of the group sum to 1.
      for (size_t h = 0; h < static_cast<size_t>(Hkv); ++h) {
        EXPECT_NEAR(x.d_v[h * 3] + x.d_v[h * 3 + 1] + x.d_v[h * 3 + 2], 2. * static_cast<double>(Hq / Hkv),
                    1e-4);
      }
    }
  });
}

// Case 16.
TEST(AttentionSemantics, LogSumExpIsNatural) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 1, .T = 1, .S = 1, .D = 1, .E = 1});
    x.changed.scale = 1;
    x.q = {1}, x.k = {2.5};
    x.forward();
    EXPECT_NEAR(x.lse[0], 2.5, 1e-6);
    Attended<T> y({.H = 1, .T = 1, .S = 2, .D = 1, .E = 1});
    y.changed.scale = 1;
    y.q = {1}, y.k = {2.5, 2.5};
    y.forward();
    EXPECT_NEAR(y.lse[0], 2.5 + 0.693147, 1e-6);
    y.changed.scale = 0;  // an explicit 0 is 0
    y.k = {2.5, 100};
    y.forward();
    EXPECT_NEAR(y.lse[0], 0.693147, 1e-6);
  });
}

TEST(AttentionSemantics, SinkTakesWeight) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 2, .Hkv = 2, .T = 1, .S = 2, .D = 1, .E = 1, .mask = true, .sink = true});
    const bool mask[] = {true, true, false, false};
    std::copy_n(mask, 4, x.mask.get());
    x.q.assign(2, 0), x.sink = {static_cast<T>(std::log(2.0)), T(0.25)}, x.v = {1, 3, 5, 7};
    x.changed = x.options();
    x.forward();
    EXPECT_NEAR(x.weights[0], 0.25, 1e-6);  // exp(0) / (1 + 1 + 2)
    EXPECT_NEAR(x.out[0], 1, 1e-6);
    EXPECT_NEAR(x.lse[0], std::log(4.0), 1e-6);
    EXPECT_EQ(x.out[1], 0);  // an empty row: all to the sink
    EXPECT_NEAR(x.lse[1], 0.25, 1e-6);
  });
}

// Case 14.
TEST(AttentionSemantics, ZeroLengths) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    for (const AttentionCase& c :
         std::vector<AttentionCase>{{.B = 0, .H = 0, .Hkv = 0, .T = 2, .S = 2, .D = 0, .E = 0},
                                    {.B = 0, .T = 2, .S = 2},
                                    {.T = 0, .S = 4},
                                    {.T = 3, .S = 0},
                                    {.T = 3, .S = 4, .D = 0},
                                    {.T = 3, .S = 4, .E = 0}}) {
      Attended<T> x(c);
      x.forward();
      x.backward();
      if (c.S == 0) expect_all(x.out, 0);
      if (c.S == 0) expect_all(x.lse, -kInf<double>);
      if (c.S == 0) expect_all(x.d_q, 0);
      if (c.T == 0) expect_all(x.d_k, 0);
      if (c.D == 0) expect_all(x.scores, 0);
      EXPECT_TRUE(all_are_finite(x.out));
    }
    Attended<T> ragged({.H = 9,
                        .Hkv = 3,
                        .T = 2,
                        .S = 8,
                        .D = 64,
                        .E = 64,
                        .query_starts = {0, 1, 1, 2},
                        .key_starts = {0, 3, 3, 8}});
    ragged.forward(false);
    EXPECT_TRUE(all_are_finite(ragged.out));
  });
}

// Case 15.
TEST(AttentionSemantics, DropoutByHand) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    // Two keys of weight 1/2, p = 1/2: what is kept counts once. v0 = 3, v1 = 10.
    Attended<T> x({.H = 1, .T = 1, .S = 2, .D = 1, .E = 1, .dropout = 0.5});
    x.q = {0}, x.v = {3, 10}, x.d_out = {1}, x.d_lse = {0};
    std::vector<int> seen(4);
    for (uint64_t seed = 0; seed < 64; ++seed) {
      x.changed.dropout.seed = seed;
      x.forward();
      x.backward();
      const bool kept[] = {x.d_v[0] != 0, x.d_v[1] != 0};  // backward draws the forward's numbers again
      EXPECT_NEAR(x.out[0], (kept[0] ? 3 : 0) + (kept[1] ? 10 : 0), 1e-6);
      for (const size_t j : {0, 1}) EXPECT_NEAR(x.d_v[j], kept[j] ? 1 : 0, 1e-6);
      ++seen[(kept[0] ? 1 : 0) + (kept[1] ? 2 : 0)];
    }
    for (const int times : seen) EXPECT_GT(times, 4);
    x.changed.dropout.probability = 0.1;
    x.v = {1, 0};
    for (uint64_t seed = 0; seed < 20; ++seed) {
      x.changed.dropout.seed = seed;
      x.forward();
      EXPECT_TRUE(x.out[0] == 0 || std::abs(x.out[0] - 0.5 * 1.1111111) < 1e-6) << x.out[0];
    }
  });
}
// Case 15.
TEST(AttentionSemantics, DropoutKeepsTheMean) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 1, .T = 8, .S = 40, .dropout = 0.1}), plain({.H = 1, .T = 8, .S = 40});
    plain.forward();
    std::vector<double> mean(x.out.size());
    const int seeds = 2000;
    for (int seed = 0; seed < seeds; ++seed) {
      x.changed.dropout.seed = static_cast<uint64_t>(seed);
      x.forward(false);
      for (size_t n = 0; n < mean.size(); ++n) mean[n] += static_cast<double>(x.out[n]) / seeds;
    }
    for (size_t n = 0; n < mean.size(); ++n) EXPECT_NEAR(mean[n], plain.out[n], 0.02);
    // With V = 1 an output is the sum of the kept weights, each times 1 / 0.9.
    std::fill(x.v.begin(), x.v.end(), T{1});
    std::fill(x.q.begin(), x.q.end(), T{0});
    x.forward(false);
    for (const T o : x.out) {
      const double kept = static_cast<double>(o) * 0.9 * 40;
      EXPECT_NEAR(kept, std::round(kept), 1e-4);
    }
    x.changed.dropout.probability = 1;
    x.forward();
    expect_all(x.out, 0);
    EXPECT_NEAR(x.weights[0], 1. / 40, 1e-6);  // weights are those before dropout
  });
}

// Case 18.
TEST(AttentionSemantics, BlockPlusOneWithMaskAndBias) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    const int64_t S = std::is_same_v<T, float> ? 1025 : 97;
    Attended<T> x(
        {.H = 1, .T = S, .S = S, .D = 4, .E = 4, .causal = true, .bias = AttentionCase::Bias::pairs});
    for (int64_t i = 0; i < S; ++i) {
      for (int64_t j = 0; j < S; ++j) x.bias[static_cast<size_t>(i * S + j)] = static_cast<T>(i - j);
    }
    x.forward(false);
    x.backward();
    EXPECT_TRUE(all_are_finite(x.out) && all_are_finite(x.d_q) && all_are_finite(x.d_k) &&
                all_are_finite(x.d_v));
    EXPECT_TRUE(all_are_finite(x.d_bias));
  });
}

}  // namespace
}  // namespace regard::attention
