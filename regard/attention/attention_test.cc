// The tiled kernels beside the definition in f64: every option, every tail, every instruction set. The
// forward keeps the bound that attention.h promises, 2e-6 max(1, largest |score|) largest |V|. Cases are
// those of python/tests/test_cases.py.

#include "regard/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/attention_case.h"
#include "tests/support/every_target.h"

namespace regard::attention {
namespace {

using tests::attention_options;
using tests::AttentionCase;
using tests::AttentionNumbers;
using tests::largest;
using tests::on_every_target;

std::string describe(const AttentionCase& c) {
  return c.name + ", T " + std::to_string(c.T) + ", S " + std::to_string(c.S) + ", D " + std::to_string(c.D) +
         ", E " + std::to_string(c.E);
}

/// |x - expected| <= tolerance, with equal infinities and NaN where NaN is expected.
template <class X>
void expect_close(const std::vector<X>& x, const std::vector<double>& expected, double tolerance,
                  const char* name) {
  ASSERT_EQ(x.size(), expected.size());
  for (size_t n = 0; n < x.size(); ++n) {
    const double got = static_cast<double>(static_cast<Real<X>>(x[n]));
    if (got == expected[n] || (std::isnan(got) && std::isnan(expected[n]))) continue;
    ASSERT_NEAR(got, expected[n], tolerance) << name << " " << n;
  }
}

void expect_forward_is_the_definition(const AttentionCase& c) {
  SCOPED_TRACE(describe(c));
  AttentionNumbers<double> f64(c);
  f64.forward(true);
  const double score = std::max(1.0, largest(f64.scores));
  on_every_target([&] {
    AttentionNumbers<float> f32(c);
    f32.forward(true);
    expect_close(f32.out, f64.out, 2e-6 * score * largest(f64.v), "out");
    expect_close(f32.lse, f64.lse, 1e-6 * score, "log_sum_exp");
    expect_close(f32.scores, f64.scores, 1e-6 * score, "scores");
    expect_close(f32.weights, f64.weights, 2e-6 * score, "weights");
    expect_close(f32.column_sums, f64.column_sums, 2e-6 * score * std::max(1.0, largest(f64.column_sums)),
                 "sums");
  });
}

void expect_backward_is_the_definition(const AttentionCase& c) {
  SCOPED_TRACE(describe(c));
  AttentionNumbers<double> f64(c);
  f64.forward();
  f64.backward();
  // dP sums E products before most of it cancels.
  const double tolerance = 1e-6 * std::max(4., std::sqrt(static_cast<double>(c.E)));
  const auto near = [&](const std::vector<float>& x, const std::vector<double>& expected, const char* name) {
    expect_close(x, expected, tolerance * std::max(1.0, largest(expected)), name);
  };
  on_every_target([&] {
    AttentionNumbers<float> f32(c);
    f32.forward();
    f32.backward();
    near(f32.d_q, f64.d_q, "d_q");
    near(f32.d_k, f64.d_k, "d_k");
    near(f32.d_v, f64.d_v, "d_v");
    if (f32.options().bias) near(f32.d_bias, f64.d_bias, "d_bias");
    if (c.sink) near(f32.d_sink, f64.d_sink, "d_sink");
  });
}

const std::vector<int64_t> kLengths = {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130, 257};
const std::vector<int64_t> kWidths = {1, 3, 16, 32, 64, 80, 128};

/// Every option with every length of queries and of keys, each with some others.
std::vector<AttentionCase> cases(size_t step) {
  std::vector<AttentionCase> all;
  size_t n = 0;
  for (const AttentionCase& option : attention_options()) {
    for (size_t t = 0; t < kLengths.size(); t += step) {
      AttentionCase c = option;
      c.T = kLengths[(t + n) % kLengths.size()];
      c.S = kLengths[(t * 5 + n * 3 + 7) % kLengths.size()];
      c.D = kWidths[n % kWidths.size()];
      c.E = kWidths[(n / 2 + t) % kWidths.size()];
      all.push_back(c);
      ++n;
    }
  }
  return all;
}

TEST(Attention, ForwardIsTheDefinition) {
  for (const AttentionCase& c : cases(3)) expect_forward_is_the_definition(c);
}
TEST(Attention, BackwardIsTheDefinition) {
  for (const AttentionCase& c : cases(5)) expect_backward_is_the_definition(c);
}
TEST(SlowAttention, ForwardIsTheDefinition) {
  for (const AttentionCase& c : cases(1)) expect_forward_is_the_definition(c);
}
TEST(SlowAttention, BackwardIsTheDefinition) {
  for (const AttentionCase& c : cases(1)) expect_backward_is_the_definition(c);
}

/// Cases whose batch, lengths and heads matter.
std::vector<AttentionCase> batches() {
  return {
      {.name = "grouped heads", .B = 2, .H = 6, .Hkv = 2, .T = 19, .S = 37, .D = 16, .E = 8, .causal = true},
      {.name = "65 heads on 5", .H = 65, .Hkv = 5, .T = 3, .S = 9, .D = 4, .E = 5},
      {.name = "key lengths",
       .B = 4,
       .H = 2,
       .T = 40,
       .S = 40,
       .D = 8,
       .E = 8,
       .causal = true,
       .key_lengths = {40, 0, 17, 33}},
      {.name = "both lengths",
       .B = 3,
       .H = 2,
       .T = 21,
       .S = 130,
       .D = 8,
       .E = 24,
       .causal = true,
       .query_lengths = {21, 5, 20},
       .key_lengths = {100, 130, 3}},
      {.name = "explicit offsets",
       .B = 3,
       .H = 2,
       .T = 50,
       .S = 70,
       .D = 8,
       .E = 8,
       .causal = true,
       .window = {30, 0},
       .alignment = Alignment::explicit_offsets,
       .offsets = {-20, 45, 4},
       .alibi = true},
      {.name = "ragged",
       .H = 4,
       .Hkv = 2,
       .T = 90,
       .S = 100,
       .D = 8,
       .E = 8,
       .causal = true,
       .query_starts = {0, 1, 1, 66, 90},
       .key_starts = {0, 3, 8, 8, 95},
       .mask = true,
       .sink = true,
       .bias = AttentionCase::Bias::pairs},
      {.name = "blocks of lengths",
       .B = 2,
       .H = 2,
       .T = 150,
       .S = 150,
       .D = 8,
       .E = 8,
       .causal = true,
       .key_lengths = {150, 77},
       .query_block = 70,
       .key_block = 7,
       .dropout = 0.1},
  };
}
TEST(Attention, BatchesAreTheDefinition) {
  for (const AttentionCase& c : batches()) {
    expect_forward_is_the_definition(c);
    expect_backward_is_the_definition(c);
  }
}

TEST(Attention, LargeScoresKeepTheBound) {
  // Scores of 100 and more: the error may grow with them and not more.
  for (const double magnitude : {10., 60.}) {
    AttentionCase c{.name = "large", .T = 70, .S = 200, .D = 64, .E = 64, .magnitude = magnitude};
    expect_forward_is_the_definition(c);
  }
}

// Case 17.
TEST(Attention, EveryWidth) {
  for (const int64_t D :
       {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40, 63, 65, 72, 80, 96, 112, 129, 160, 192, 257}) {
    expect_forward_is_the_definition({.name = "width", .T = 18, .S = 35, .D = D, .E = D});
    expect_backward_is_the_definition({.name = "width", .H = 1, .T = 18, .S = 7, .D = D, .E = 258 - D});
  }
}

/// bf16 is what f32 gives for the same numbers, rounded once.
TEST(Attention, BFloat16IsRoundedOnce) {
  on_every_target([] {
    for (AttentionCase c : attention_options()) {
      c.T = 67, c.S = 101, c.D = 24, c.E = 40;
      SCOPED_TRACE(describe(c));
      AttentionNumbers<BFloat16> bf16(c);
      AttentionNumbers<float> f32(c);
      const auto widen = [](const std::vector<BFloat16>& x) {
        return std::vector<float>(x.begin(), x.end());
      };
      f32.q = widen(bf16.q), f32.k = widen(bf16.k), f32.v = widen(bf16.v), f32.d_out = widen(bf16.d_out);
      bf16.forward(true);
      f32.forward(true);
      EXPECT_EQ(bf16.lse, f32.lse);
      EXPECT_EQ(bf16.weights, f32.weights);
      for (size_t n = 0; n < f32.out.size(); ++n) ASSERT_EQ(bf16.out[n].bits, BFloat16(f32.out[n]).bits);
      f32.out = widen(bf16.out);
      bf16.backward();
      f32.backward();
      for (size_t n = 0; n < f32.d_q.size(); ++n) ASSERT_EQ(bf16.d_q[n].bits, BFloat16(f32.d_q[n]).bits);
      for (size_t n = 0; n < f32.d_k.size(); ++n) ASSERT_EQ(bf16.d_k[n].bits, BFloat16(f32.d_k[n]).bits);
      for (size_t n = 0; n < f32.d_v.size(); ++n) ASSERT_EQ(bf16.d_v[n].bits, BFloat16(f32.d_v[n]).bits);
    }
  });
}

}  // namespace
}  // namespace regard::attention
