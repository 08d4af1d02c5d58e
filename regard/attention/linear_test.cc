#include "regard/attention/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "regard/attention/linear_reference.h"
#include "regard/base/numeric_gradient.h"
#include "tests/support/every_target.h"
#include "tests/support/expect_error.h"
#include "tests/support/padded_matrix.h"

namespace regard::attention {
namespace {

using tests::expect_shape_error;
using tests::normals;
using tests::on_every_target;

constexpr LinearForm kForms[] = {LinearForm::chunked, LinearForm::recurrent, LinearForm::quadratic};
constexpr FeatureMap kMaps[] = {FeatureMap::elu_plus_one, FeatureMap::relu, FeatureMap::identity};

struct Shape {
  int64_t B, H, Hkv, T, S, D, E;
};

/// Operands with an initial state; queries stand as [B, T, H, D] in memory, values with a column stride of 2.
template <class T>
struct Problem {
  Shape s;
  LinearOptions options;
  std::vector<T> q, k, v, S0, z0, out, S1, z1, d_out, d_S1, d_z1, d_q, d_k, d_v, d_S0, d_z0;

  Problem(const Shape& shape, const LinearOptions& o) : s(shape), options(o) {
    q = normals<T>(s.B * s.H * s.T * s.D, 1);
    k = normals<T>(s.B * s.Hkv * s.S * s.D, 2);
    v = normals<T>(s.B * s.Hkv * s.S * s.E * 2, 3);
    S0 = normals<T>(s.B * s.Hkv * s.D * s.E, 4);
    z0 = normals<T>(s.B * s.Hkv * s.D, 5);
    for (T& z : z0) z = std::abs(z) + 1;  // denominators away from 0
    if (options.map == FeatureMap::identity)
      for (auto* x : {&q, &k})
        for (T& y : *x) y = std::abs(y);
    d_out = normals<T>(s.B * s.H * s.T * s.E, 6);
    d_S1 = normals<T>(s.B * s.Hkv * s.D * s.E, 7);
    d_z1 = normals<T>(s.B * s.Hkv * s.D, 8);
    out.assign(d_out.size(), 77), S1.assign(S0.size(), 77), z1.assign(z0.size(), 77);
    d_q.assign(q.size(), 77), d_k.assign(k.size(), 77), d_v.assign(v.size(), 0);
    d_S0.assign(S0.size(), 77), d_z0.assign(z0.size(), 77);
  }
  template <class U>
  View4<U> queries(U* x) const {
    return dense(x, std::array<int64_t, 4>{s.B, s.T, s.H, s.D}).exchanged(1, 2);
  }
  template <class U>
  View4<U> keys(U* x) const {
    return dense(x, std::array<int64_t, 4>{s.B, s.Hkv, s.S, s.D});
  }
  template <class U>
  View4<U> values(U* x) const {
    View4<U> view = dense(x, std::array<int64_t, 4>{s.B, s.Hkv, s.S, 2 * s.E});
    view.shape[3] = s.E;
    view.stride[3] = 2;
    return view;
  }
  template <class U>
  View4<U> outputs(U* x) const {
    return dense(x, std::array<int64_t, 4>{s.B, s.H, s.T, s.E});
  }
  template <class U>
  LinearState<U> state(U* S, U* z) const {
    return {dense(S, std::array<int64_t, 4>{s.B, s.Hkv, s.D, s.E}),
            dense(z, std::array<int64_t, 3>{s.B, s.Hkv, s.D})};
  }
  LinearState<const T> before() const { return state<const T>(S0.data(), z0.data()); }

  void forward(ThreadPool* pool = nullptr) {
    linear_attention_forward(queries<const T>(q.data()), keys<const T>(k.data()), values<const T>(v.data()),
                             before(), outputs(out.data()), state(S1.data(), z1.data()), options, pool);
  }
  void backward(ThreadPool* pool = nullptr) {
    LinearGradients<T> g;
    g.d_out = outputs<const T>(d_out.data());
    g.d_after = state<const T>(d_S1.data(), d_z1.data());
    g.d_q = queries(d_q.data());
    g.d_k = keys(d_k.data());
    g.d_v = values(d_v.data());
    g.d_before = state(d_S0.data(), d_z0.data());
    linear_attention_backward(queries<const T>(q.data()), keys<const T>(k.data()), values<const T>(v.data()),
                              before(), g, options, pool);
  }
  double loss() {
    forward();
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * d_out[i];
    for (size_t i = 0; i < S1.size(); ++i) sum += S1[i] * d_S1[i];
    for (size_t i = 0; i < z1.size(); ++i) sum += z1[i] * d_z1[i];
    return sum;
  }
};

TEST(Linear, ByHand) {
  // phi = identity, D = E = 1: k = (1, 2), v = (3, 6): o_0 = 3, o_1 = (3 + 12) / 3 = 5, whatever q.
  const std::vector<double> q = {4, 7}, k = {1, 2}, v = {3, 6};
  std::vector<double> out(2);
  double S = 0, z = 0;
  const std::array<int64_t, 4> shape{1, 1, 2, 1}, one{1, 1, 1, 1};
  for (const LinearForm form : kForms) {
    linear_attention_forward(dense(q.data(), shape), dense(k.data(), shape), dense(v.data(), shape), {},
                             dense(out.data(), shape),
                             {dense(&S, one), dense(&z, std::array<int64_t, 3>{1, 1, 1})},
                             {.map = FeatureMap::identity, .form = form});
    EXPECT_EQ(out, (std::vector<double>{3, 5}));
    EXPECT_EQ(S, 15);
    EXPECT_EQ(z, 3);
  }
}

// Case 20.
TEST(Linear, EveryFormIsTheFormula) {
  for (const FeatureMap map : kMaps)
    for (const bool normalise : {true, false})
      for (const int64_t T : {1, 5, 63, 64, 65, 150}) {
        std::vector<LinearOptions> forms;
        for (const LinearForm form : kForms)
          forms.push_back({.map = map, .causal = true, .normalise = normalise, .scale = 0.5, .form = form});
        forms.push_back({.map = map, .causal = false, .normalise = normalise});
        for (const LinearOptions& options : forms) {
          Problem<double> p({2, 4, 2, T, options.causal ? T : T + 3, 5, 7}, options);
          p.forward();
          std::vector<double> o(static_cast<size_t>(T * 7));
          for (int64_t b = 0; b < 2; ++b)
            for (int64_t h = 0; h < 4; ++h) {
              reference::linear_attention(matrix_at(p.queries<const double>(p.q.data()), b, h),
                                          matrix_at(p.keys<const double>(p.k.data()), b, h / 2),
                                          matrix_at(p.values<const double>(p.v.data()), b, h / 2),
                                          matrix_at(p.before().S, b, h / 2), &p.before().z(b, h / 2, 0),
                                          options, matrix(o.data(), T, 7));
              for (int64_t i = 0; i < T; ++i)
                for (int64_t e = 0; e < 7; ++e) {
                  const double expected = o[static_cast<size_t>(i * 7 + e)];
                  ASSERT_NEAR(p.outputs(p.out.data())(b, h, i, e), expected,
                              1e-11 * (1 + std::abs(expected)));
                }
            }
        }
      }
}

// Case 20.
TEST(Linear, AStateContinuesWhereItEnded) {
  for (const LinearForm form : kForms) {
    const Shape s{1, 2, 2, 100, 100, 6, 5};
    Problem<double> whole(s, {.form = form}), parts(s, {.form = form});
    whole.forward();
    LinearState<double> state = parts.state(parts.S1.data(), parts.z1.data());
    std::copy(parts.S0.begin(), parts.S0.end(), parts.S1.begin());
    std::copy(parts.z0.begin(), parts.z0.end(), parts.z1.begin());
    int64_t begin = 0;
    for (const int64_t end : {1, 2, 40, 100}) {
      const auto range = [&](auto view) {
        view.data += begin * view.stride[2];
        view.shape[2] = end - begin;
        return view;
      };
      linear_attention_forward(range(parts.queries<const double>(parts.q.data())),
                               range(parts.keys<const double>(parts.k.data())),
                               range(parts.values<const double>(parts.v.data())), {state.S, state.z},
                               range(parts.outputs(parts.out.data())), state, parts.options);
      begin = end;
    }
    for (size_t i = 0; i < whole.out.size(); ++i) ASSERT_NEAR(parts.out[i], whole.out[i], 1e-11);
    for (size_t i = 0; i < whole.S1.size(); ++i) ASSERT_NEAR(parts.S1[i], whole.S1[i], 1e-11);
    for (size_t i = 0; i < whole.z1.size(); ++i) ASSERT_NEAR(parts.z1[i], whole.z1[i], 1e-11);
  }
}

// Case 20.
TEST(Linear, Gradients) {
  for (const FeatureMap map : kMaps)
    for (const bool causal : {true, false})
      for (const bool normalise : {true, false}) {
        Problem<double> p({1, 2, 1, causal ? 70 : 3, causal ? 70 : 5, 2, 3},
                          {.map = map, .causal = causal, .normalise = normalise, .scale = 0.7});
        for (auto* x : {&p.q, &p.k})
          for (double& y : *x)
            if (std::abs(y) < 0.3) y = y < 0 ? -0.3 : 0.3;  // away from kinks and denominators of 0
        p.forward();
        p.backward();
        const auto error = [&](const std::vector<double>& analytic, std::vector<double>& x) {
          return gradient_error(analytic, numeric_gradient([&] { return p.loss(); }, x));
        };
        EXPECT_LT(error(p.d_q, p.q), 1e-6);
        EXPECT_LT(error(p.d_k, p.k), 1e-6);
        EXPECT_LT(error(p.d_v, p.v), 1e-6);
        EXPECT_LT(error(p.d_S0, p.S0), 1e-6);
        EXPECT_LT(error(p.d_z0, p.z0), 1e-6);
      }
}

void expect_close(const std::vector<float>& y, const std::vector<double>& expected, double tolerance,
                  const char* name) {
  double largest = 1;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], tolerance * largest) << name << " " << i;
}

TEST(Linear, F32EqualsF64) {
  on_every_target([] {
    for (const FeatureMap map : kMaps)
      for (const int64_t D : {2, 3, 16, 33, 64}) {
        for (const LinearForm form : kForms) {
          const Shape s{1, 2, 1, 131, 131, D, 80 - D};
          Problem<float> f32(s, {.map = map, .form = form});
          Problem<double> f64(s, {.map = map, .form = form});
          f32.forward();
          f64.forward();
          expect_close(f32.out, f64.out, 2e-5, "out");
          expect_close(f32.S1, f64.S1, 1e-6, "S");
          if (form != LinearForm::chunked) continue;
          f32.backward();
          f64.backward();
          expect_close(f32.d_q, f64.d_q, 2e-5, "d_q");
          expect_close(f32.d_k, f64.d_k, 2e-5, "d_k");
          expect_close(f32.d_v, f64.d_v, 2e-5, "d_v");
          expect_close(f32.d_S0, f64.d_S0, 2e-5, "d_S0");
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
  });
}

TEST(Linear, ADenominatorOfZeroGivesZero) {
  for (const LinearForm form : kForms)
    for (const bool causal : {true, false}) {
      Problem<double> p({1, 1, 1, 3, 3, 4, 5}, {.map = FeatureMap::relu, .causal = causal, .form = form});
      for (double& x : p.q) x = -std::abs(x);
      p.forward();
      p.backward();
      EXPECT_EQ(p.out, std::vector<double>(p.out.size()));
      EXPECT_EQ(p.d_q, std::vector<double>(p.d_q.size()));
    }
}

TEST(Linear, BitsDependOnEarlierRowsAlone) {
  on_every_target([] {
    const Shape s{2, 2, 2, 130, 130, 20, 33};
    Problem<float> whole(s, {});
    whole.forward();
    Shape first = s;
    first.T = first.S = 90;
    Problem<float> part(first, {});
    part.S0 = whole.S0, part.z0 = whole.z0;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t i = 0; i < 90; ++i) {
          for (int64_t c = 0; c < 20; ++c) {
            part.queries(part.q.data())(b, h, i, c) = whole.queries(whole.q.data())(b, h, i, c);
            part.keys(part.k.data())(b, h, i, c) = whole.keys(whole.k.data())(b, h, i, c);
          }
          for (int64_t e = 0; e < 33; ++e)
            part.values(part.v.data())(b, h, i, e) = whole.values(whole.v.data())(b, h, i, e);
        }
    part.forward();
    Problem<float> wild = whole;  // NaN and infinity from row 70 on, within the second chunk
    wild.keys(wild.k.data())(0, 1, 70, 3) = std::numeric_limits<float>::quiet_NaN();
    wild.values(wild.v.data())(0, 1, 75, 3) = std::numeric_limits<float>::infinity();
    wild.forward();
    for (int64_t i = 0; i < 90; ++i)
      for (int64_t e = 0; e < 33; ++e) {
        ASSERT_EQ(part.outputs(part.out.data())(0, 1, i, e), whole.outputs(whole.out.data())(0, 1, i, e));
        if (i < 70)
          ASSERT_EQ(wild.outputs(wild.out.data())(0, 1, i, e), whole.outputs(whole.out.data())(0, 1, i, e));
        else
          ASSERT_TRUE(std::isnan(wild.outputs(wild.out.data())(0, 1, i, e)));
      }
  });
}

TEST(LinearThreads, AnyNumberGivesTheSameBits) {
  const Shape s{3, 4, 2, 100, 100, 16, 24};
  Problem<float> expected(s, {});
  expected.forward();
  expected.backward();
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    Problem<float> p(s, {});
    p.forward(&pool);
    p.backward(&pool);
    EXPECT_EQ(p.out, expected.out);
    EXPECT_EQ(p.S1, expected.S1);
    EXPECT_EQ(p.d_q, expected.d_q);
    EXPECT_EQ(p.d_k, expected.d_k);
    EXPECT_EQ(p.d_v, expected.d_v);
    EXPECT_EQ(p.d_S0, expected.d_S0);
  }
}

TEST(Linear, ZeroSizes) {
  for (const Shape& s : {Shape{0, 2, 1, 5, 5, 3, 4}, Shape{2, 2, 1, 0, 0, 3, 4}, Shape{2, 2, 1, 5, 5, 0, 4},
                         Shape{2, 2, 1, 5, 5, 3, 0}, Shape{2, 0, 0, 5, 5, 3, 4}})
    for (const bool causal : {true, false}) {
      Problem<float> p(s, {.causal = causal});
      p.forward();
      p.backward();
      for (const float x : p.out) EXPECT_TRUE(std::isfinite(x) && x != 77);
    }
  Problem<float> p({1, 1, 1, 3, 0, 2, 2}, {.causal = false});
  std::fill(p.S0.begin(), p.S0.end(), 0.f), std::fill(p.z0.begin(), p.z0.end(), 0.f);
  p.forward();
  EXPECT_EQ(p.out, std::vector<float>(6));
}

TEST(Linear, ShapeErrors) {
  const auto broken = [](const Shape& change, const std::string& part) {
    Problem<float> p({2, 4, 2, 5, 5, 3, 4}, {});
    const Shape& c = change;
    expect_shape_error(
        [&] {
          std::vector<float> x(10000);
          const auto view = [&](int64_t b, int64_t h, int64_t t, int64_t d) {
            return dense(x.data(), std::array<int64_t, 4>{b, h, t, d});
          };
          linear_attention_forward(view(2, c.H, 5, 3), view(c.B, 2, c.T, c.D), view(2, 2, c.S, 4), {},
                                   view(2, c.H, 5, c.E), p.state(p.S1.data(), p.z1.data()));
        },
        part);
  };
  broken({3, 4, 2, 5, 5, 3, 4}, "k [3, 2, 5, 3], expected [2, 2, 5, 3] (B, Hkv, T, D)");
  broken({2, 4, 2, 6, 6, 3, 4}, "k [2, 2, 6, 3], expected [2, 2, 5, 3]");
  broken({2, 4, 2, 5, 6, 3, 4}, "v [2, 2, 6, 4], expected [2, 2, 5, 4]");
  broken({2, 3, 2, 5, 5, 3, 4}, "q [2, 3, 5, 3] has 3 heads (H), expected a multiple of the keys' 2");
  broken({2, 4, 2, 5, 5, 3, 5}, "out [2, 4, 5, 5], expected [2, 4, 5, 4]");
  Problem<float> p({2, 4, 2, 5, 5, 3, 4}, {});
  p.S0.resize(2 * 2 * 3 * 4);
  LinearState<const float> wrong = p.before();
  wrong.S.shape[2] = 2;
  expect_shape_error(
      [&] {
        linear_attention_forward(p.queries<const float>(p.q.data()), p.keys<const float>(p.k.data()),
                                 p.values<const float>(p.v.data()), wrong, p.outputs(p.out.data()), {});
      },
      "before.S [2, 2, 2, 4], expected [2, 2, 3, 4]");
}

}  // namespace
}  // namespace regard::attention
