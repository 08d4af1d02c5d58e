#include "regard/attention/local.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "regard/attention/local_reference.h"
#include "regard/base/numeric_gradient.h"
#include "tests/support/every_target.h"
#include "tests/support/expect_error.h"
#include "tests/support/padded_matrix.h"

namespace regard::attention {
namespace {

using tests::expect_shape_error;
using tests::normals;
using tests::on_every_target;
using tests::Padded;

template <class T>
struct Step {
  Step(const std::vector<int64_t>& lengths, std::vector<int32_t> map, std::vector<double> p, int64_t D,
       bool g, bool computed, int64_t k = 5, int64_t e = 4)
      : sentences(std::move(map)), half_width(D), K(k), E(e), gaussian(g), with_query(computed) {
    for (const int64_t n : lengths) offsets.push_back(offsets.back() + n), longest = std::max(longest, n);
    R = static_cast<int64_t>(p.size());
    const int64_t S = offsets.back();
    for (const double x : p) centres.push_back(static_cast<T>(x));
    query = {R, K, uint64_t{1}};
    keys = {S, K, uint64_t{2}};
    scores = {R, longest, uint64_t{3}};
    values = {S, E, uint64_t{4}};
    softmax = {R, 2 * D + 1, T{77}};
    weights = {R, longest, T{77}};
    context = {R, E, T{77}};
    d_context = {R, E, uint64_t{5}};
    d_weights = {R, longest, uint64_t{6}};
    d_query = {R, K, T{0}};
    d_keys = {S, K, T{0}};
    d_scores = {R, longest, T{0}};
    d_values = {S, E, T{0}};
    d_centres.assign(centres.size(), T{5});
  }
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> sentences;
  int64_t R = 0, half_width, K, E, longest = 0;
  bool gaussian, with_query;
  std::vector<T> centres, d_centres;
  Padded<T> query, keys, scores, values, softmax, weights, context;
  Padded<T> d_context, d_weights, d_query, d_keys, d_scores, d_values;

  LocalOperands<T> operands() {
    LocalOperands<T> o{.query = query.view(),
                       .keys = keys.view(),
                       .scores = scores.view(),
                       .values = values.view(),
                       .centres = centres,
                       .half_width = half_width,
                       .gaussian = gaussian,
                       .offsets = offsets,
                       .sentences = sentences};
    if (!with_query) o.query = o.keys = {};
    return o;
  }
  void forward(ThreadPool* pool = nullptr) {
    local_forward(operands(), softmax.view(), weights.view(), context.view(), pool);
  }
  void backward(ThreadPool* pool = nullptr) {
    local_backward(operands(), softmax.view(),
                   {d_context.view(), d_weights.view(), d_query.view(), d_keys.view(), d_scores.view(),
                    d_values.view(), d_centres},
                   pool);
  }
  size_t sentence(int64_t i) const {
    return sentences.empty() ? static_cast<size_t>(i)
                             : static_cast<size_t>(sentences[static_cast<size_t>(i)]);
  }
  int64_t length(int64_t i) const { return offsets[sentence(i) + 1] - offsets[sentence(i)]; }
  double loss() {
    forward();
    double sum = 0;
    for (int64_t i = 0; i < R; ++i) {
      for (int64_t j = 0; j < length(i); ++j) sum += weights(i, j) * d_weights(i, j);
      for (int64_t e = 0; e < E; ++e) sum += context(i, e) * d_context(i, e);
    }
    return sum;
  }
};

TEST(Local, MonotonicByHand) {
  // Equal scores: the mean of the window. Source of 5, D = 1, centres 0, 2, 5 (one position left) and 7
  // (none).
  const std::vector<double> scores(20), h = {0, 1, 2, 3, 4}, centres = {0, 2, 5, 7};
  const std::vector<int64_t> offsets = {0, 5};
  const std::vector<int32_t> sentences = {0, 0, 0, 0};
  std::vector<double> softmax(12), weights(20), c(4);
  LocalOperands<double> o;
  o.scores = matrix(scores.data(), 4, 5);
  o.values = matrix(h.data(), 5, 1);
  o.centres = centres;
  o.half_width = 1;
  o.offsets = offsets;
  o.sentences = sentences;
  local_forward(o, matrix(softmax.data(), 4, 3), matrix(weights.data(), 4, 5), matrix(c.data(), 4, 1));
  EXPECT_EQ(c, (std::vector<double>{0.5, 2, 4, 0}));
  EXPECT_EQ(std::vector<double>(weights.begin() + 5, weights.begin() + 10),
            (std::vector<double>{0, 1. / 3, 1. / 3, 1. / 3, 0}));
}

TEST(Local, PredictiveByHand) {
  // One position in reach, at distance 1 from p: weight exp(-1 / (2 (D/2)^2)), not 1.
  const std::vector<double> scores = {3}, h = {2}, centres = {1};
  const std::vector<int64_t> offsets = {0, 1};
  std::vector<double> softmax(5), weights(1), c(1);
  LocalOperands<double> o;
  o.scores = matrix(scores.data(), 1, 1);
  o.values = matrix(h.data(), 1, 1);
  o.centres = centres;
  o.half_width = 2;
  o.gaussian = true;
  o.offsets = offsets;
  local_forward(o, matrix(softmax.data(), 1, 5), matrix(weights.data(), 1, 1), matrix(c.data(), 1, 1));
  EXPECT_NEAR(weights[0], std::exp(-0.5), 1e-15);
  EXPECT_NEAR(c[0], 2 * std::exp(-0.5), 1e-15);
}

const std::vector<int64_t> kLengths = {7, 0, 12, 1};
const std::vector<int32_t> kSentences = {0, 2, 2, 1, 3, 0, 2, 2};
const std::vector<double> kCentres = {3.3, 0.2, 11.6, 0, 0.4, 20, -1.7, 6.5};

TEST(Local, F64IsTheFormulas) {
  for (const bool gaussian : {false, true})
    for (const bool computed : {false, true})
      for (const int64_t D : {1, 2, 5}) {
        Step<double> p(kLengths, kSentences, kCentres, D, gaussian, computed);
        p.forward();
        for (int64_t i = 0; i < p.R; ++i) {
          const int64_t begin = p.offsets[p.sentence(i)], S = p.length(i);
          const reference::Matrix h = p.values.view().row_range(begin, begin + S);
          reference::Vector e(p.scores.view().row(i), p.scores.view().row(i) + S);
          if (computed)
            e = reference::dot_scores({p.query.view().row(i), p.query.view().row(i) + p.K},
                                      p.keys.view().row_range(begin, begin + S));
          const reference::Vector alpha =
              reference::local_weights(e, p.centres[static_cast<size_t>(i)], D, gaussian);
          const reference::Vector c = reference::context(alpha, h);
          for (int64_t j = 0; j < S; ++j) EXPECT_NEAR(p.weights(i, j), alpha[static_cast<size_t>(j)], 1e-14);
          for (int64_t n = 0; n < p.E; ++n) EXPECT_NEAR(p.context(i, n), c[static_cast<size_t>(n)], 1e-14);
        }
      }
}

TEST(Local, Gradients) {
  for (const bool gaussian : {false, true})
    for (const bool computed : {false, true}) {
      Step<double> p(kLengths, kSentences, kCentres, 2, gaussian, computed);
      p.forward();
      p.backward();
      const auto error = [&](const std::vector<double>& analytic, std::vector<double>& x) {
        return gradient_error(analytic, numeric_gradient([&] { return p.loss(); }, x));
      };
      EXPECT_LT(error(p.d_values.data, p.values.data), 1e-6);
      EXPECT_LT(error(p.d_centres, p.centres), 1e-6);
      if (computed) {
        EXPECT_LT(error(p.d_query.data, p.query.data), 1e-6);
        EXPECT_LT(error(p.d_keys.data, p.keys.data), 1e-6);
      } else {
        EXPECT_LT(error(p.d_scores.data, p.scores.data), 1e-6);
      }
    }
}

void expect_close(const std::vector<float>& y, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], tolerance * (1 + std::abs(expected[i])));
}

TEST(Local, F32EqualsF64) {
  on_every_target([] {
    for (const bool gaussian : {false, true})
      for (const bool computed : {false, true})
        for (const int64_t K : {1, 3, 16, 37, 130}) {
          Step<float> f32({70, 0, 12, 1}, kSentences, kCentres, 10, gaussian, computed, K, K + 3);
          Step<double> f64({70, 0, 12, 1}, kSentences, kCentres, 10, gaussian, computed, K, K + 3);
          f32.forward();
          f32.backward();
          f64.forward();
          f64.backward();
          expect_close(f32.weights.data, f64.weights.data, 1e-5);
          expect_close(f32.context.data, f64.context.data, 1e-5);
          expect_close(f32.d_query.data, f64.d_query.data, 4e-5);
          expect_close(f32.d_keys.data, f64.d_keys.data, 4e-5);
          expect_close(f32.d_scores.data, f64.d_scores.data, 4e-5);
          expect_close(f32.d_values.data, f64.d_values.data, 4e-5);
          expect_close(f32.d_centres, f64.d_centres, 4e-5);
        }
  });
}

TEST(Local, WindowsOutsideTheSourceAreEmpty) {
  for (const bool computed : {false, true}) {
    Step<float> p({4, 0}, {0, 0, 1, 0}, {6.5, -3, 0, std::numeric_limits<double>::infinity()}, 2, true,
                  computed);
    p.forward();
    p.backward();
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t e = 0; e < p.E; ++e) EXPECT_EQ(p.context(i, e), 0);
      for (int64_t j = 0; j < p.length(i); ++j) EXPECT_EQ(p.weights(i, j), 0);
      for (int64_t k = 0; k < p.K; ++k) EXPECT_EQ(p.d_query(i, k), 0);
      EXPECT_EQ(p.d_centres[static_cast<size_t>(i)], 0);
    }
    EXPECT_EQ(p.d_values.data, std::vector<float>(p.d_values.data.size()));
    EXPECT_EQ(p.context(0, p.E), 77);  // padding is untouched
  }
}

TEST(Local, NanCentresAreSeenAndOthersAreNot) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  on_every_target([&] {
    for (const bool gaussian : {false, true}) {
      Step<float> p({9, 9}, {}, {static_cast<double>(nan), 4}, 2, gaussian, true, 20, 20);
      for (const int64_t j : {10, 16}) p.keys(j, 3) = p.values(j, 3) = nan;  // just outside the second window
      p.forward();
      for (int64_t e = 0; e < 20; ++e) {
        EXPECT_TRUE(std::isnan(p.context(0, e)));
        EXPECT_TRUE(std::isfinite(p.context(1, e)));
      }
    }
  });
}

TEST(LocalThreads, AnyNumberGivesTheSameBits) {
  for (const bool shared : {false, true}) {
    std::vector<int64_t> lengths;
    std::vector<int32_t> map;
    std::vector<double> centres;
    for (int32_t i = 0; i < 19; ++i)
      lengths.push_back((i * 7) % 23), map.push_back(shared ? i % 5 : i), centres.push_back(i * 0.7);
    Step<float> expected(lengths, map, centres, 4, true, true, 33, 21);
    const Step<float> fresh = expected;
    expected.forward();
    expected.backward();
    for (const int threads : {1, 2, 4}) {
      ThreadPool pool(threads);
      Step<float> p = fresh;
      p.forward(&pool);
      p.backward(&pool);
      EXPECT_EQ(p.weights.data, expected.weights.data);
      EXPECT_EQ(p.context.data, expected.context.data);
      EXPECT_EQ(p.d_query.data, expected.d_query.data);
      EXPECT_EQ(p.d_keys.data, expected.d_keys.data);
      EXPECT_EQ(p.d_values.data, expected.d_values.data);
      EXPECT_EQ(p.d_centres, expected.d_centres);
    }
  }
}

TEST(Local, CentresAndTheirGradients) {
  const std::vector<int64_t> offsets = {0, 7, 7, 19};
  const std::vector<int32_t> sentences = {2, 0, 1, 2};
  Padded<double> state(4, 5, uint64_t{1}), W(3, 5, uint64_t{2}), hidden(4, 3, 0.), d_state(4, 5, 0.),
      d_W(3, 5, 0.), d_hidden(4, 3, 0.);
  std::vector<double> v = normals<double>(3, 3), centres(4), d_v(3);
  const std::vector<double> d_centres = normals<double>(4, 4);
  const auto operands = [&] {
    return CentreOperands<double>{state.view(), W.view(), v.data(), offsets, sentences};
  };
  const auto loss = [&] {
    centres_forward(operands(), hidden.view(), centres);
    return reference::product(centres.data(), d_centres.data(), 4);
  };
  loss();
  for (size_t i = 0; i < 4; ++i) {
    const double* s = state.view().row(static_cast<int64_t>(i));
    const auto b = static_cast<size_t>(sentences[i]);
    EXPECT_NEAR(centres[i], reference::centre({s, s + 5}, W.view(), v, offsets[b + 1] - offsets[b]), 1e-13);
  }
  centres_backward(operands(), hidden.view(), centres,
                   {d_centres, d_state.view(), d_W.view(), d_v.data(), d_hidden.view()});
  EXPECT_LT(gradient_error(d_state.data, numeric_gradient(loss, state.data)), 1e-6);
  EXPECT_LT(gradient_error(d_W.data, numeric_gradient(loss, W.data)), 1e-6);
  EXPECT_LT(gradient_error(d_v, numeric_gradient(loss, v)), 1e-6);

  const std::vector<float> s32(state.data.begin(), state.data.end()), W32(W.data.begin(), W.data.end()),
      v32(v.begin(), v.end());
  std::vector<float> hidden32(12), centres32(4);
  const std::vector<double> expected = (loss(), centres);
  on_every_target([&] {
    centres_forward(
        {{s32.data() + 1, 4, 5, 8, 1}, {W32.data() + 1, 3, 5, 8, 1}, v32.data(), offsets, sentences},
        matrix(hidden32.data(), 4, 3), centres32);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(centres32[i], expected[i], 2e-5);
  });
}

TEST(Local, ShapeErrors) {
  const auto broken = [](const std::function<void(Step<float>&)>& change, const std::string& part,
                         bool computed = true) {
    Step<float> p({2, 3}, {}, {0, 1}, 2, true, computed);
    change(p);
    expect_shape_error([&] { p.forward(), p.backward(); }, part);
  };
  broken([](auto& p) { p.keys.columns = 3; }, "[local attention] keys [5, 3], expected [5, 5]");
  broken([](auto& p) { p.query.rows = 3; }, "query [3, 5], expected [2, 5]");
  broken([](auto& p) { p.scores.columns = 2; }, "scores [2, 2], expected [2, 3]", false);
  broken([](auto& p) { p.softmax.columns = 4; }, "softmax [2, 4], expected [2, 5]");
  broken([](auto& p) { p.weights.columns = 2; }, "weights [2, 2], expected [2, 3]");
  broken([](auto& p) { p.context.columns = 3; }, "context [2, 3], expected [2, 4]");
  broken([](auto& p) { p.half_width = 0; }, "half_width is 0, expected at least 1 with a Gaussian");
  broken([](auto& p) { p.half_width = -1, p.gaussian = false; }, "half_width is -1, expected at least 0");
  broken([](auto& p) { p.offsets.back() = 6; }, "offsets end at 6");
  broken([](auto& p) { p.d_centres.resize(3); }, "d_centres [3], expected [2]");
  broken([](auto& p) { p.d_keys.rows = 4; }, "d_keys [4, 5], expected [5, 5]");
  broken([](auto& p) { p.d_scores.rows = 1; }, "d_scores [1, 3], expected [2, 3]", false);
}

}  // namespace
}  // namespace regard::attention
