// The tiled kernels beside the definition in f64: every option, every tail, every instruction set.

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

/// |x - expected| <= tolerance, with equal infinities.
template <class X>
void expect_close(const std::vector<X>& x, const std::vector<double>& expected, double tolerance,
                  const char* name) {
  ASSERT_EQ(x.size(), expected.size());
  for (size_t n = 0; n < x.size(); ++n) {
    const double got = static_cast<double>(static_cast<Real<X>>(x[n]));
    if (got == expected[n]) continue;
    ASSERT_NEAR(got, expected[n], tolerance) << name << " " << n;
  }
}

void expect_forward_is_the_definition(const AttentionCase& c) {
  SCOPED_TRACE(describe(c));
  AttentionNumbers<float> f32(c);
  AttentionNumbers<double> f64(c);
  f32.forward(true);
  f64.forward(true);
  const double score = std::max(1.0, largest(f64.scores));
  expect_close(f32.out, f64.out, 2e-6 * score * largest(f64.v), "out");
  expect_close(f32.lse, f64.lse, 1e-6 * score, "log_sum_exp");
  expect_close(f32.scores, f64.scores, 1e-6 * score, "scores");
  expect_close(f32.weights, f64.weights, 2e-6 * score, "weights");
  expect_close(f32.column_sums, f64.column_sums, 2e-6 * score * std::max(1.0, largest(f64.column_sums)),
               "sums");
}

void expect_backward_is_the_definition(const AttentionCase& c) {
  SCOPED_TRACE(describe(c));
  AttentionNumbers<float> f32(c);
  AttentionNumbers<double> f64(c);
  f32.forward();
  f32.backward();
  f64.forward();
  f64.backward();
  const auto near = [](const std::vector<float>& x, const std::vector<double>& expected, const char* name) {
    expect_close(x, expected, 4e-6 * std::max(1.0, largest(expected)), name);
  };
  near(f32.d_q, f64.d_q, "d_q");
  near(f32.d_k, f64.d_k, "d_k");
  near(f32.d_v, f64.d_v, "d_v");
  if (f32.options().bias) near(f32.d_bias, f64.d_bias, "d_bias");
  if (c.sink) near(f32.d_sink, f64.d_sink, "d_sink");
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
  on_every_target([] {
    for (const AttentionCase& c : cases(1)) expect_forward_is_the_definition(c);
  });
}

TEST(Attention, BackwardIsTheDefinition) {
  on_every_target([] {
    for (const AttentionCase& c : cases(2)) expect_backward_is_the_definition(c);
  });
}

}  // namespace
}  // namespace regard::attention
