#include "regard/attention/scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "regard/attention/scores_reference.h"
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

enum class Score { dot, general, concat, location };
constexpr Score kScores[] = {Score::dot, Score::general, Score::concat, Score::location};

/// One step with any of the scores. For dot, N = K.
template <class T>
struct Step {
  Step(Score which, const std::vector<int64_t>& lengths, std::vector<int32_t> map, int64_t n, int64_t e)
      : score(which), sentences(std::move(map)), N(n), E(e) {
    for (const int64_t length : lengths) {
      offsets.push_back(offsets.back() + length);
      longest = std::max(longest, length);
    }
    R = static_cast<int64_t>(sentences.empty() ? lengths.size() : sentences.size());
    S = offsets.back();
    state = {R, N, uint64_t{1}};
    values = {S, E, uint64_t{2}};
    const int64_t K = score == Score::dot ? N : score == Score::concat ? kHidden : E;
    keys = {S, K, uint64_t{3}};
    W = score == Score::general  ? Padded<T>{N, K, uint64_t{4}}
        : score == Score::concat ? Padded<T>{kHidden, N + E, uint64_t{4}}
                                 : Padded<T>{kPositions, N, uint64_t{4}};
    for (T& w : W.data) w *= T{0.3f};
    v = normals<T>(kHidden, 5);
    query = {R, K, T{77}};
    weights = {R, longest, T{77}};
    context = {R, E, T{77}};
    d_context = {R, E, uint64_t{6}};
    d_weights = {R, longest, uint64_t{7}};
    d_state = {R, N, T{5}};
    d_query = {R, K, T{5}};
    d_keys = {S, K, T{0}};
    d_values = {S, E, T{0}};
    d_W = {W.rows, W.columns, T{0}};
    d_scores = {R, longest, T{5}};
    d_v.assign(v.size(), T{0});
  }
  static constexpr int64_t kHidden = 6, kPositions = 7;

  Score score;
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> sentences;
  int64_t R = 0, N, E, S = 0, longest = 0;
  Padded<T> state, keys, values, W, query, weights, context;
  Padded<T> d_context, d_weights, d_state, d_query, d_keys, d_values, d_W, d_scores;
  std::vector<T> v, d_v;

  ScoreGradients<T> shared() { return {d_context.view(), d_weights.view(), d_values.view()}; }
  DotOperands<T> dot() { return {state.view(), keys.view(), values.view(), offsets, sentences}; }
  GeneralOperands<T> general() {
    return {state.view(), W.view(), keys.view(), values.view(), offsets, sentences};
  }
  ConcatOperands<T> concat() {
    return {state.view(), W.view(), v.data(), keys.view(), values.view(), offsets, sentences};
  }
  LocationOperands<T> location() { return {state.view(), W.view(), values.view(), offsets, sentences}; }

  void forward(ThreadPool* pool = nullptr) {
    switch (score) {
      case Score::dot:
        return dot_forward(dot(), weights.view(), context.view(), pool);
      case Score::general:
        return general_forward(general(), query.view(), weights.view(), context.view(), pool);
      case Score::concat:
        concat_keys(values.view(), W.view(), keys.view());
        return concat_forward(concat(), query.view(), weights.view(), context.view(), pool);
      case Score::location:
        return location_forward(location(), weights.view(), context.view(), pool);
    }
  }
  void backward(ThreadPool* pool = nullptr) { backward(shared(), pool); }
  void backward(const ScoreGradients<T>& g, ThreadPool* pool = nullptr) {
    switch (score) {
      case Score::dot:
        return dot_backward(dot(), weights.view(), {g, d_state.view(), d_keys.view()}, pool);
      case Score::general:
        return general_backward(general(), query.view(), weights.view(),
                                {g, d_state.view(), d_W.view(), d_keys.view(), d_query.view()}, pool);
      case Score::concat:
        concat_backward(concat(), query.view(), weights.view(),
                        {g, d_state.view(), d_W.view(), d_v.data(), d_keys.view(), d_query.view()}, pool);
        return concat_keys_backward(values.view(), W.view(), d_keys.view(), g.d_values, d_W.view());
      case Score::location:
        return location_backward(location(), weights.view(), {g, d_state.view(), d_W.view(), d_scores.view()},
                                 pool);
    }
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

const std::vector<int64_t> kLengths = {3, 0, 9, 1};

reference::Vector row(Padded<double>& x, int64_t i) { return {x.view().row(i), x.view().row(i) + x.columns}; }

TEST(Scores, F64IsAsPrinted) {
  for (const Score score : kScores) {
    Step<double> p(score, kLengths, {2, 0, 1, 3, 2}, 5, 4);
    p.forward();
    for (int64_t i = 0; i < p.R; ++i) {
      const int64_t begin = p.offsets[p.sentence(i)], end = begin + p.length(i);
      const reference::Matrix keys = p.keys.view().row_range(begin, end),
                              h = p.values.view().row_range(begin, end);
      const reference::Matrix W = p.W.view();
      const reference::Vector s = row(p.state, i);
      const reference::Vector alpha =
          reference::softmax(score == Score::dot       ? reference::dot_scores(s, keys)
                             : score == Score::general ? reference::general_scores(s, W, keys)
                             : score == Score::concat  ? reference::concat_scores(s, W, p.v, h)
                                                       : reference::location_scores(s, W, h.rows));
      const reference::Vector c = reference::context(alpha, h);
      for (size_t j = 0; j < alpha.size(); ++j)
        EXPECT_NEAR(p.weights(i, static_cast<int64_t>(j)), alpha[j], 1e-14);
      for (size_t e = 0; e < c.size(); ++e) EXPECT_NEAR(p.context(i, static_cast<int64_t>(e)), c[e], 1e-13);
    }
  }
}

TEST(Scores, Gradients) {
  for (const Score score : kScores) {
    SCOPED_TRACE(static_cast<int>(score));
    Step<double> p(score, kLengths, {2, 0, 1, 3, 2}, 5, 4);
    p.d_state.data.assign(p.d_state.data.size(), 0);
    p.forward();
    p.backward();
    const auto error = [&](const Padded<double>& analytic, Padded<double>& x) {
      return gradient_error(analytic.data, numeric_gradient([&] { return p.loss(); }, x.data));
    };
    EXPECT_LT(error(p.d_state, p.state), 1e-6);
    EXPECT_LT(error(p.d_values, p.values), 1e-6);
    if (score == Score::dot || score == Score::general) {
      EXPECT_LT(error(p.d_keys, p.keys), 1e-6);
    }
    if (score != Score::dot) {
      EXPECT_LT(error(p.d_W, p.W), 1e-6);
    }
    if (score == Score::concat) {
      EXPECT_LT(gradient_error(p.d_v, numeric_gradient([&] { return p.loss(); }, p.v)), 1e-6);
    }
  }
}

void expect_close(const std::vector<float>& y, const std::vector<double>& expected, double tolerance,
                  const char* name) {
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << name << " " << i;
}

TEST(Scores, F32EqualsF64) {
  on_every_target([] {
    for (const Score score : kScores)
      for (int64_t n = 1; n <= 36; n += n < 20 ? 1 : 5) {
        const std::vector<int64_t> lengths = {4, 0, 5, 37, 2};
        const int64_t E = 1 + (n * 7) % 150;
        Step<float> f32(score, lengths, {3, 1, 0, 2, 4, 3}, n, E);
        Step<double> f64(score, lengths, {3, 1, 0, 2, 4, 3}, n, E);
        f32.forward();
        f64.forward();
        f32.backward();
        f64.backward();
        const double tolerance = 1e-6 * static_cast<double>(std::max(n, E));
        expect_close(f32.weights.data, f64.weights.data, tolerance, "weights");
        expect_close(f32.context.data, f64.context.data, tolerance, "context");
        expect_close(f32.d_state.data, f64.d_state.data, 4 * tolerance, "d_state");
        expect_close(f32.d_keys.data, f64.d_keys.data, 4 * tolerance, "d_keys");
        expect_close(f32.d_values.data, f64.d_values.data, 4 * tolerance, "d_values");
        expect_close(f32.d_W.data, f64.d_W.data, 4 * tolerance, "d_W");
        if (::testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(Scores, EmptySourcesGiveZero) {
  for (const Score score : kScores) {
    Step<float> p(score, {0, 2}, {}, 20, 30);
    p.forward();
    p.backward();
    for (int64_t e = 0; e < 30; ++e) EXPECT_EQ(p.context(0, e), 0);
    for (int64_t n = 0; n < 20; ++n) EXPECT_EQ(p.d_state(0, n), 0);
    EXPECT_NEAR(p.weights(1, 0) + p.weights(1, 1), 1, 1e-6);
    EXPECT_EQ(p.d_state(1, 20), 5);  // padding is untouched
    EXPECT_EQ(p.context(1, 30), 77);
    Step<float> none(score, {}, {}, 3, 4);
    none.forward();
    none.backward();
  }
}

TEST(Scores, PositionsWithoutALocationScoreWeighNothing) {
  Step<double> p(Score::location, {12}, {}, 3, 2);
  p.forward();
  p.backward();
  double sum = 0;
  for (int64_t j = 0; j < 7; ++j) sum += p.weights(0, j);
  EXPECT_NEAR(sum, 1, 1e-14);
  for (int64_t j = 7; j < 12; ++j) EXPECT_EQ(p.weights(0, j), 0);
}

TEST(Scores, KeysMayBeTheValues) {
  Step<double> apart(Score::dot, kLengths, {}, 6, 6);
  apart.keys = apart.values;
  Step<double> same = apart;
  apart.forward();
  apart.backward();
  DotOperands<double> o = same.dot();
  o.keys = o.values;
  dot_forward(o, same.weights.view(), same.context.view());
  dot_backward(o, same.weights.view(), {same.shared(), same.d_state.view(), same.d_values.view()});
  EXPECT_EQ(same.context.data, apart.context.data);
  for (int64_t j = 0; j < apart.S; ++j)
    for (int64_t e = 0; e < 6; ++e)
      EXPECT_NEAR(same.d_values(j, e), apart.d_values(j, e) + apart.d_keys(j, e), 1e-14);
}

TEST(Scores, ARowAloneEqualsTheRowInABatch) {
  on_every_target([] {
    for (const Score score : kScores) {
      const std::vector<int64_t> lengths = {7, 1, 33, 4};
      Step<float> all(score, lengths, {}, 43, 150);
      all.forward();
      all.backward();
      for (int32_t b = 0; b < 4; ++b) {
        Step<float> alone(score, lengths, {b}, 43, 150);
        std::copy_n(all.state.view().row(b), 43, alone.state.view().row(0));
        std::copy_n(all.d_context.view().row(b), 150, alone.d_context.view().row(0));
        std::copy_n(all.d_weights.view().row(b), all.longest, alone.d_weights.view().row(0));
        alone.forward();
        alone.backward();
        for (int64_t j = 0; j < all.length(b); ++j) EXPECT_EQ(alone.weights(0, j), all.weights(b, j));
        for (int64_t e = 0; e < 150; ++e) EXPECT_EQ(alone.context(0, e), all.context(b, e));
        for (int64_t n = 0; n < 43; ++n) EXPECT_EQ(alone.d_state(0, n), all.d_state(b, n));
      }
    }
  });
}

TEST(ScoresThreads, AnyNumberGivesTheSameBits) {
  for (const Score score : kScores)
    for (const bool shared : {false, true}) {
      std::vector<int64_t> lengths;
      std::vector<int32_t> map;
      for (int32_t i = 0; i < 23; ++i) lengths.push_back((i * 5) % 12), map.push_back(shared ? i % 7 : i);
      Step<float> expected(score, lengths, map, 33, 50);
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
        EXPECT_EQ(p.d_state.data, expected.d_state.data);
        EXPECT_EQ(p.d_keys.data, expected.d_keys.data);
        EXPECT_EQ(p.d_values.data, expected.d_values.data);
        EXPECT_EQ(p.d_W.data, expected.d_W.data);
      }
    }
}

TEST(Scores, NanReachesTheContextOfItsRow) {
  on_every_target([] {
    for (const Score score : kScores) {
      Step<float> p(score, {3, 4}, {}, 21, 30);
      p.state(1, 4) = std::numeric_limits<float>::quiet_NaN();
      p.forward();
      for (int64_t e = 0; e < 30; ++e) {
        EXPECT_TRUE(std::isfinite(p.context(0, e)));
        EXPECT_TRUE(std::isnan(p.context(1, e)));
      }
    }
  });
}

TEST(Scores, ShapeErrors) {
  const auto broken = [](Score score, const std::function<void(Step<float>&)>& change,
                         const std::string& part) {
    Step<float> p(score, {2, 3}, {}, 4, 5);
    change(p);
    expect_shape_error([&] { p.forward(), p.backward(); }, part);
  };
  broken(
      Score::dot, [](auto& p) { p.keys.columns = 3; }, "[dot attention] keys [5, 3], expected [5, 4]");
  broken(
      Score::dot, [](auto& p) { p.values.rows = 4; }, "values [4, 5], expected [5, 5]");
  broken(
      Score::dot, [](auto& p) { p.weights.columns = 2; }, "weights [2, 2], expected [2, 3]");
  broken(
      Score::dot, [](auto& p) { p.offsets.back() = 6; }, "offsets end at 6, but keys have 5 rows");
  broken(
      Score::dot,
      [](auto& p) {
        p.sentences = {0, 2};
      },
      "row 1 looks at sentence 2 of 2");
  broken(
      Score::dot, [](auto& p) { p.d_keys.rows = 4; }, "d_keys [4, 4], expected [5, 4]");
  broken(
      Score::dot, [](auto& p) { p.d_context.columns = 4; }, "d_context [2, 4], expected [2, 5]");
  broken(
      Score::general, [](auto& p) { p.W.rows = 3; }, "[general attention] W [3, 5], expected [4, 5]");
  broken(
      Score::general, [](auto& p) { p.query.columns = 4; }, "query [2, 4], expected [2, 5]");
  broken(
      Score::general, [](auto& p) { p.d_state.columns = 3; }, "d_state [2, 3], expected [2, 4]");
  broken(
      Score::concat, [](auto& p) { p.W.columns = 3; }, "[concat attention] W [6, 3], expected [6, 5]");
  broken(
      Score::concat, [](auto& p) { p.d_W.rows = 5; }, "d_W [5, 9], expected [6, 9]");
  broken(
      Score::location, [](auto& p) { p.W.columns = 3; }, "[location attention] W [7, 3], expected [7, 4]");
  broken(
      Score::location, [](auto& p) { p.d_scores.columns = 2; }, "d_scores [2, 2], expected [2, 3]");
}

}  // namespace
}  // namespace regard::attention
