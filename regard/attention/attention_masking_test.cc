// What may not be attended to: empty rows, masks of every kind, NaN and infinities. On every path: f32 on
// every instruction set, and f64. Cases are those of python/tests/test_cases.py.

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
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

template <class T>
bool all_are_finite(const std::vector<T>& x) {
  return std::all_of(x.begin(), x.end(), [](T v) { return std::isfinite(v); });
}

// Case 1.
TEST(AttentionMasking, FullyMaskedRowIsZero) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 2, .Hkv = 2, .T = 6, .S = 10, .D = 8, .E = 8, .mask = true});
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t i = 0; i < 6; ++i) {
        for (int64_t j = 0; j < 10; ++j) x.mask[static_cast<size_t>((h * 6 + i) * 10 + j)] = i < 5 && j <= i;
      }
    }
    x.forward();
    x.backward();
    Attended<T> dense({.H = 2,
                       .Hkv = 2,
                       .T = 6,
                       .S = 10,
                       .D = 8,
                       .E = 8,
                       .causal = true,
                       .alignment = Alignment::top_left});
    dense.forward();
    for (size_t h = 0; h < 2; ++h) {
      for (size_t e = 0; e < 5 * 8; ++e) EXPECT_EQ(x.out[h * 48 + e], dense.out[h * 48 + e]);
      EXPECT_EQ(x.lse[h * 6 + 5], -kInf<T>);
      for (size_t e = 0; e < 8; ++e) {
        EXPECT_EQ(x.out[(h * 6 + 5) * 8 + e], 0);
        EXPECT_EQ(x.d_q[(h * 6 + 5) * 8 + e], 0);
        EXPECT_NEAR(x.out[h * 48 + e], x.v[h * 80 + e], 1e-6);  // row 0 sees key 0 alone
      }
      for (size_t j = 0; j < 10; ++j) EXPECT_EQ(x.weights[(h * 6 + 5) * 10 + j], 0);
    }
    EXPECT_TRUE(all_are_finite(x.d_k));
  });
}

// Case 2.
TEST(AttentionMasking, BackwardIsThatWithoutTheEmptyRow) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    // Item 1 has two valid keys, a band mask {0} {0,1} {1,2} {2,3}: its row 3 is empty.
    const auto gradients = [](int64_t rows) {
      Attended<T> x({.B = 2,
                     .H = 1,
                     .T = rows,
                     .S = 4,
                     .D = 5,
                     .E = 3,
                     .query_lengths = {rows, rows},
                     .key_lengths = {4, 2},
                     .mask = true});
      for (int64_t i = 0; i < 2 * rows; ++i) {
        for (int64_t j = 0; j < 4; ++j)
          x.mask[static_cast<size_t>(i * 4 + j)] = j == i % rows || j == i % rows - 1;
      }
      const Attended<T> four_rows({.B = 2, .H = 1, .T = 4, .S = 4, .D = 5, .E = 3});
      for (int64_t b = 0; b < 2; ++b) {  // the rows of both are the same
        std::copy_n(four_rows.q.begin() + b * 20, rows * 5, x.q.begin() + b * rows * 5);
        std::copy_n(four_rows.d_out.begin() + b * 12, rows * 3, x.d_out.begin() + b * rows * 3);
        std::copy_n(four_rows.d_lse.begin() + b * 4, rows, x.d_lse.begin() + b * rows);
      }
      std::fill(x.k.begin() + 20 + 10, x.k.end(), kNan<T>);
      std::fill(x.v.begin() + 12 + 6, x.v.end(), kInf<T>);
      x.forward();
      x.backward();
      return x;
    };
    Attended<T> four = gradients(4), three = gradients(3);
    EXPECT_TRUE(all_are_finite(four.d_q) && all_are_finite(four.d_k) && all_are_finite(four.d_v));
    for (size_t d = 0; d < 5; ++d) EXPECT_EQ(four.d_q[20 + 15 + d], 0);
    EXPECT_TRUE(std::equal(four.d_k.begin() + 20, four.d_k.end(), three.d_k.begin() + 20));
    EXPECT_TRUE(std::equal(four.d_v.begin() + 12, four.d_v.end(), three.d_v.begin() + 12));
  });
}

// Case 3.
TEST(AttentionMasking, BlocksOfMinusInfinityBeforeTheFirstScore) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    for (const int64_t window : {10, 100}) {
      Attended<T> x({.H = 1, .T = 600, .S = 600, .D = 2, .E = 2, .bias = AttentionCase::Bias::pairs});
      std::fill(x.q.begin(), x.q.end(), T{1});
      std::fill(x.k.begin(), x.k.end(), T{1});
      for (size_t n = 0; n < x.v.size(); ++n) x.v[n] = n % 2 == 0 ? T{3} : T{-2};
      for (int64_t i = 0; i < 600; ++i) {
        for (int64_t j = 0; j < 600; ++j) {
          x.bias[static_cast<size_t>(i * 600 + j)] = j <= i && j > i - window ? T{0} : -kInf<T>;
        }
      }
      x.forward(false);
      for (size_t n = 0; n < x.out.size(); ++n) ASSERT_NEAR(x.out[n], n % 2 == 0 ? 3 : -2, 1e-6) << n;
    }
  });
}

// Case 4.
TEST(AttentionMasking, NanIsNotAnEmptyRow) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.B = 2, .H = 4, .Hkv = 4, .T = 16, .S = 16, .D = 8, .E = 8});
    std::fill(x.q.begin(), x.q.end(), kNan<T>);
    x.forward();
    for (const T o : x.out) ASSERT_TRUE(std::isnan(o));
    for (const T l : x.lse) ASSERT_TRUE(std::isnan(l));
  });
}

TEST(AttentionMasking, AnInfiniteScoreIsNan) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 1, .T = 3, .S = 40, .bias = AttentionCase::Bias::pairs});
    x.bias[40 + 7] = kInf<T>;
    x.forward();
    for (size_t e = 0; e < 3; ++e) {
      EXPECT_TRUE(std::isfinite(x.out[e]));
      EXPECT_TRUE(std::isnan(x.out[3 + e]));
      EXPECT_TRUE(std::isfinite(x.out[6 + e]));
    }
    EXPECT_TRUE(std::isnan(x.lse[1]));
  });
}

// Case 5.
TEST(AttentionMasking, ALargeFiniteMaskDoesNotDisable) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 1, .T = 3, .S = 4, .D = 5, .E = 2, .bias = AttentionCase::Bias::pairs});
    std::fill_n(x.bias.begin(), 4, T(-3.4028e38));
    x.forward();
    x.backward();
    for (size_t e = 0; e < 2; ++e)
      EXPECT_NEAR(x.out[e], (x.v[e] + x.v[2 + e] + x.v[4 + e] + x.v[6 + e]) / 4, 1e-6);
    EXPECT_TRUE(all_are_finite(x.d_q) && all_are_finite(x.d_k));
  });
}

// Case 6.
TEST(AttentionMasking, VeryNegativeScores) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 1, .T = 1, .S = 2, .D = 1, .E = 1});
    x.q = {1}, x.k = {-60000, -60001}, x.v = {1, 3};
    x.changed.scale = 1;
    x.forward();
    EXPECT_NEAR(x.out[0], 1.5378828, 1e-6);
    EXPECT_NEAR(x.weights[1], 0.26894142, 1e-6);
  });
}

// Case 6.
TEST(AttentionMasking, AddingAConstantToARowChangesItsLogSumExpAlone) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 1, .T = 20, .S = 110, .bias = AttentionCase::Bias::pairs});
    std::fill(x.bias.begin(), x.bias.end(), T{0});
    Attended<T> y({.H = 1, .T = 20, .S = 110, .bias = AttentionCase::Bias::pairs});
    std::fill(y.bias.begin(), y.bias.end(), T{1000});
    x.forward();
    y.forward();
    const double tolerance = std::is_same_v<T, float> ? 1000 * 0x1p-24 * 4 : 1e-12;
    for (size_t n = 0; n < x.out.size(); ++n) EXPECT_NEAR(x.out[n], y.out[n], tolerance);
    for (size_t n = 0; n < x.lse.size(); ++n) EXPECT_NEAR(x.lse[n] + 1000, y.lse[n], tolerance);
  });
}

// Case 7.
TEST(AttentionMasking, CausalWithANegativeOffset) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x(
        {.H = 1, .T = 4, .S = 4, .D = 3, .E = 2, .causal = true, .query_lengths = {4}, .key_lengths = {2}});
    x.forward();
    for (size_t n = 0; n < 4; ++n) EXPECT_EQ(x.out[n], 0);
    EXPECT_EQ(x.lse[1], -kInf<T>);
    EXPECT_EQ(x.out[4], x.v[0]);
    EXPECT_EQ(x.weights[2 * 4 + 0], 1);
  });
}

// Case 8.
TEST(AttentionMasking, BooleanMaskSelects) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    Attended<T> x({.H = 1, .T = 2, .S = 2, .D = 3, .E = 3, .causal = true, .mask = true});
    const bool mask[] = {true, false, true, true};
    std::copy_n(mask, 4, x.mask.get());
    x.forward();
    EXPECT_TRUE(all_are_finite(x.out));
    EXPECT_EQ(x.out[0], x.v[0]);
    EXPECT_EQ(x.weights[1], 0);
  });
}

/// What a query may not attend to does not reach it, whatever it is: by mask, bias, diagonal and window, both
/// ways.
TEST(AttentionMasking, DisallowedNumbersDoNotLeak) {
  on_every_path([](auto zero) {
    using T = decltype(zero);
    for (const T poison : {kNan<T>, kInf<T>, -kInf<T>}) {
      for (const AttentionCase& c : std::vector<AttentionCase>{
               {.name = "causal", .H = 1, .T = 70, .S = 70, .D = 5, .E = 6, .causal = true},
               {.name = "window", .H = 1, .T = 70, .S = 70, .D = 5, .E = 6, .window = {10, 4}},
               {.name = "mask", .H = 1, .T = 70, .S = 70, .D = 16, .E = 16, .mask = true},
               {.name = "bias",
               .H = 1,
               .T = 70,
               .S = 70,
               .D = 5,
               .E = 16,
               .bias = AttentionCase::Bias::pairs,
               .minus_infinity = 0.4}}) {
        SCOPED_TRACE(c.name);
        Attended<T> clean(c), x(c);
        clean.forward();
        clean.backward();
        const int64_t key = 37;
        std::fill_n(x.row(x.k, key, c.D), c.D, poison);
        std::fill_n(x.row(x.v, key, c.E), c.E, poison);
        x.forward();
        x.backward();
        for (int64_t i = 0; i < c.T; ++i) {
          const bool sees = clean.weights[static_cast<size_t>(i * c.S + key)] > 0;
          for (int64_t e = 0; e < c.E; ++e) {
            const T o = x.row(x.out, i, c.E)[e];
            if (sees && std::isnan(poison)) {
              ASSERT_TRUE(std::isnan(o)) << i;
            } else if (!sees) {
              ASSERT_EQ(o, clean.row(clean.out, i, c.E)[e]) << i;
            }
          }
          for (int64_t n = 0; n < c.D && !sees; ++n)
            ASSERT_EQ(x.row(x.d_q, i, c.D)[n], clean.row(clean.d_q, i, c.D)[n]) << i;
        }
        // A poisoned query reaches the gradients of the keys that it sees, and no others.
        Attended<T> y(c);
        std::fill_n(y.row(y.q, key, c.D), c.D, poison);
        std::fill_n(y.row(y.d_out, key, c.E), c.E, poison);
        y.forward();
        y.backward();
        for (int64_t j = 0; j < c.S; ++j) {
          if (clean.weights[static_cast<size_t>(key * c.S + j)] > 0) continue;
          for (int64_t n = 0; n < c.D; ++n)
            ASSERT_EQ(y.row(y.d_k, j, c.D)[n], clean.row(clean.d_k, j, c.D)[n]) << j;
          for (int64_t e = 0; e < c.E; ++e)
            ASSERT_EQ(y.row(y.d_v, j, c.E)[e], clean.row(clean.d_v, j, c.E)[e]) << j;
        }
      }
    }
  });
}

}  // namespace
}  // namespace regard::attention
