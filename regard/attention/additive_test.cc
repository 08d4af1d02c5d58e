#include "regard/attention/additive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "regard/attention/additive_reference.h"
#include "regard/base/numeric_gradient.h"
#include "regard/gemm/gemm.h"
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
struct Problem {
  Problem(const std::vector<int64_t>& lengths, std::vector<int32_t> map, int64_t a, int64_t e)
      : sentences(std::move(map)), A(a), E(e) {
    for (const int64_t n : lengths) {
      offsets.push_back(offsets.back() + n);
      longest = std::max(longest, n);
    }
    R = static_cast<int64_t>(sentences.empty() ? lengths.size() : sentences.size());
    S = offsets.back();
    query = {R, A, uint64_t{1}};
    keys = {S, A, uint64_t{2}};
    values = {S, E, uint64_t{3}};
    v = normals<T>(A, 4);
    weights = {R, longest, T{77}};
    context = {R, E, T{77}};
    d_context = {R, E, uint64_t{5}};
    d_weights = {R, longest, uint64_t{6}};
    d_query = {R, A, T{5}};
    d_keys = {S, A, T{0}};
    d_values = {S, E, T{0}};
    d_v.assign(v.size(), T{0});
  }
  std::vector<int64_t> offsets{0};
  std::vector<int32_t> sentences;
  int64_t R = 0, A, E, S = 0, longest = 0;
  Padded<T> query, keys, values, weights, context;
  Padded<T> d_context, d_weights, d_query, d_keys, d_values;
  std::vector<T> v, d_v;

  AdditiveOperands<T> operands() {
    return {query.view(), keys.view(), values.view(), v.data(), offsets, sentences};
  }
  AdditiveGradients<T> gradients() {
    return {d_context.view(), d_weights.view(), d_query.view(), d_keys.view(), d_values.view(), d_v.data()};
  }
  void forward(ThreadPool* pool = nullptr) {
    additive_forward(operands(), weights.view(), context.view(), pool);
  }
  void backward(ThreadPool* pool = nullptr) { backward(gradients(), pool); }
  void backward(const AdditiveGradients<T>& g, ThreadPool* pool = nullptr) {
    additive_backward(operands(), weights.view(), g, pool);
  }
  int64_t begin(int64_t i) const {
    return offsets[sentences.empty() ? static_cast<size_t>(i)
                                     : static_cast<size_t>(sentences[static_cast<size_t>(i)])];
  }
  int64_t length(int64_t i) const {
    const auto b =
        sentences.empty() ? static_cast<size_t>(i) : static_cast<size_t>(sentences[static_cast<size_t>(i)]);
    return offsets[b + 1] - offsets[b];
  }
};

template <class T>
void expect_close(const std::vector<T>& y, const std::vector<double>& expected, double tolerance,
                  const char* name) {
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << name << " " << i << " of " << y.size();
}

TEST(Additive, ByHand) {
  // A = E = 1, q = 0, k = (atanh 0.5, -atanh 0.5), v = log 3: e = (log 3 / 2, -log 3 / 2), alpha = (3/4, 1/4)
  const double q = 0, v = std::log(3.0);
  const std::vector<double> k = {std::atanh(0.5), -std::atanh(0.5)}, h = {8, 4};
  const std::vector<int64_t> offsets = {0, 2};
  std::vector<double> alpha(2);
  double c = 0;
  additive_forward({matrix(&q, 1, 1), matrix(k.data(), 2, 1), matrix(h.data(), 2, 1), &v, offsets},
                   matrix(alpha.data(), 1, 2), matrix(&c, 1, 1));
  EXPECT_NEAR(alpha[0], 0.75, 1e-15);
  EXPECT_NEAR(alpha[1], 0.25, 1e-15);
  EXPECT_NEAR(c, 7, 1e-14);
}

/// Normal numbers as numpy's RandomState draws them: MT19937, 53 bits, Marsaglia's polar method, the second
/// first.
class NumpyNormals {
 public:
  explicit NumpyNormals(uint32_t seed) : random_(seed) {}
  std::vector<double> draw(int64_t n, double scale) {
    std::vector<double> x(static_cast<size_t>(n));
    for (double& y : x) y = normal() * scale;
    return x;
  }

 private:
  double uniform() {
    const auto a = static_cast<double>(random_() >> 5), b = static_cast<double>(random_() >> 6);
    return (a * 67108864 + b) / 9007199254740992;
  }
  double normal() {
    if (kept_) return std::exchange(kept_, std::nullopt).value();
    for (;;) {
      const double x = 2 * uniform() - 1, y = 2 * uniform() - 1, r = x * x + y * y;
      if (r >= 1 || r == 0) continue;
      const double factor = std::sqrt(-2 * std::log(r) / r);
      kept_ = factor * x;
      return factor * y;
    }
  }
  std::mt19937 random_;
  std::optional<double> kept_;
};

// Case 22.
TEST(Additive, AnEssaysExample) {
  // np.random.seed(42); ten states of 256 numbers, a decoder's state, W_s, W_h and v, drawn in this order.
  NumpyNormals numpy(42);
  const std::vector<double> h = numpy.draw(10 * 256, 0.1), s = numpy.draw(256, 0.1);
  const std::vector<double> Ws = numpy.draw(128 * 256, 0.05), Wh = numpy.draw(128 * 256, 0.05);
  const std::vector<double> v = numpy.draw(128, 0.05);
  std::vector<double> q(128), k(10 * 128), alpha(10), c(256);
  gemm::multiply(matrix<const double>(s.data(), 1, 256),
                 matrix<const double>(Ws.data(), 128, 256).transposed(), matrix(q.data(), 1, 128));
  gemm::multiply(matrix<const double>(h.data(), 10, 256),
                 matrix<const double>(Wh.data(), 128, 256).transposed(), matrix(k.data(), 10, 128));
  const std::vector<int64_t> offsets = {0, 10};
  additive_forward({matrix<const double>(q.data(), 1, 128), matrix<const double>(k.data(), 10, 128),
                    matrix<const double>(h.data(), 10, 256), v.data(), offsets},
                   matrix(alpha.data(), 1, 10), matrix(c.data(), 1, 256));
  EXPECT_EQ(std::max_element(alpha.begin(), alpha.end()) - alpha.begin(), 8);
  EXPECT_NEAR(std::accumulate(alpha.begin(), alpha.end(), 0.), 1, 1e-14);
  const double weights[] = {0.09403933, 0.10337516, 0.10163641},
               context[] = {0.04926574, 0.03790324, 0.02441743};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(alpha[i], weights[i], 5e-9);
    EXPECT_NEAR(c[i], context[i], 5e-9);
  }
}

void check_widths(int64_t A, int64_t E, const std::vector<int32_t>& map) {
  const std::vector<int64_t> lengths = {1, 0, 4, 5, 2, 37};
  Problem<float> f32(lengths, map, A, E);
  Problem<double> f64(lengths, map, A, E);
  f32.forward();
  f64.forward();
  const double tolerance = 2e-6 * std::sqrt(static_cast<double>(A));  // e_j sums A terms
  expect_close(f32.weights.data, f64.weights.data, tolerance, "weights");
  expect_close(f32.context.data, f64.context.data, tolerance, "context");
  f32.backward();
  f64.backward();
  expect_close(f32.d_query.data, f64.d_query.data, 4 * tolerance, "d_query");
  expect_close(f32.d_keys.data, f64.d_keys.data, 4 * tolerance, "d_keys");
  expect_close(f32.d_values.data, f64.d_values.data, 4 * tolerance, "d_values");
  expect_close(f32.d_v, f64.d_v, 4 * tolerance, "d_v");
}

TEST(Additive, F32EqualsF64) {
  std::vector<int64_t> widths;
  for (int64_t w = 1; w <= 35; ++w) widths.push_back(w);
  for (const int64_t w : {63, 64, 130, 256}) widths.push_back(w);
  on_every_target([&] {
    for (const int64_t A : widths) {
      check_widths(A, 1 + (A * 7) % 150, {});
      check_widths(A, 1 + (A * 11) % 150, {5, 5, 0, 2, 1, 5});
    }
  });
}

TEST(Additive, F64IsTheReferenceRowByRow) {
  Problem<double> p({3, 0, 5}, {2, 0, 1, 2}, 4, 6);
  p.forward();
  for (int64_t i = 0; i < p.R; ++i) {
    std::vector<double> alpha(5, 77), c(6, 77);
    const auto o = p.operands();
    reference::additive_forward<double>({o.query.row(i), o.keys.row(p.begin(i)), o.values.row(p.begin(i)),
                                         o.v, p.length(i), 4, 6, o.keys.row_stride, o.values.row_stride},
                                        alpha.data(), c.data());
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(p.weights(i, j), alpha[static_cast<size_t>(j)]);
    for (int64_t j = 0; j < 6; ++j) EXPECT_EQ(p.context(i, j), c[static_cast<size_t>(j)]);
  }
}

template <class T>
void check_empty_and_untouched() {
  Problem<T> p({2, 0, 5}, {}, 9, 11);
  p.forward();
  for (int64_t i = 0; i < 3; ++i) {
    T sum = 0;
    for (int64_t j = 0; j < p.length(i); ++j) sum += p.weights(i, j);
    EXPECT_NEAR(sum, i == 1 ? 0 : 1, 1e-6);
    for (int64_t j = p.length(i); j < p.longest + Padded<T>::kPad; ++j) EXPECT_EQ(p.weights(i, j), 77);
  }
  for (int64_t j = 0; j < p.E; ++j) EXPECT_EQ(p.context(1, j), 0);
  p.backward();
  for (int64_t a = 0; a < p.A; ++a) EXPECT_EQ(p.d_query(1, a), 0);
  EXPECT_EQ(p.d_query(1, p.A), 5);
  EXPECT_EQ(p.d_query.data.front(), 5);
}
TEST(Additive, EmptySentencesAndPaddingUntouched) {
  on_every_target([] { check_empty_and_untouched<float>(); });
  check_empty_and_untouched<double>();
}

TEST(Additive, NoRows) {
  Problem<float> p({}, {}, 4, 4);
  p.forward();
  p.backward();
  EXPECT_EQ(p.d_v, std::vector<float>(4));
}

TEST(Additive, Gradients) {
  Problem<double> p({3, 0, 1, 4}, {3, 0, 1, 3, 2}, 5, 3);
  p.d_query.data.assign(p.d_query.data.size(), 0);
  p.forward();
  p.backward();
  const auto loss = [&] {
    p.forward();
    double sum = 0;
    for (int64_t i = 0; i < p.R; ++i) {
      for (int64_t j = 0; j < p.length(i); ++j) sum += p.weights(i, j) * p.d_weights(i, j);
      for (int64_t j = 0; j < p.E; ++j) sum += p.context(i, j) * p.d_context(i, j);
    }
    return sum;
  };
  EXPECT_LT(gradient_error(p.d_query.data, numeric_gradient(loss, p.query.data)), 1e-6);
  EXPECT_LT(gradient_error(p.d_keys.data, numeric_gradient(loss, p.keys.data)), 1e-6);
  EXPECT_LT(gradient_error(p.d_values.data, numeric_gradient(loss, p.values.data)), 1e-6);
  EXPECT_LT(gradient_error(p.d_v, numeric_gradient(loss, p.v)), 1e-6);
}

TEST(Additive, GradientsAreAddedAndMayBeLeftOut) {
  on_every_target([] {
    Problem<float> once({3, 6}, {}, 20, 40);
    once.forward();
    Problem<float> twice = once, without = once, zero = once, null = once;
    once.backward();
    twice.backward();
    twice.backward();
    EXPECT_EQ(once.d_query.data, twice.d_query.data);
    for (size_t i = 0; i < once.d_keys.data.size(); ++i)
      EXPECT_EQ(twice.d_keys.data[i], 2 * once.d_keys.data[i]);
    for (size_t i = 0; i < once.d_values.data.size(); ++i)
      EXPECT_NEAR(twice.d_values.data[i], 2 * once.d_values.data[i], 1e-6);
    for (size_t i = 0; i < once.d_v.size(); ++i) EXPECT_EQ(twice.d_v[i], 2 * once.d_v[i]);

    auto g = without.gradients();
    g.d_values.data = nullptr;
    without.backward(g);
    EXPECT_EQ(without.d_keys.data, once.d_keys.data);
    EXPECT_EQ(without.d_values.data, std::vector<float>(once.d_values.data.size()));
    zero.d_weights.data.assign(zero.d_weights.data.size(), 0);
    zero.backward();
    g = null.gradients();
    g.d_weights.data = nullptr;
    null.backward(g);
    EXPECT_EQ(zero.d_query.data, null.d_query.data);
  });
}

TEST(Additive, ARowAloneEqualsTheRowInABatch) {
  on_every_target([] {
    const std::vector<int64_t> lengths = {7, 1, 33, 4, 18};
    Problem<float> all(lengths, {}, 43, 150);
    all.forward();
    all.backward();
    for (int32_t b = 0; b < 5; ++b) {
      Problem<float> alone(lengths, {b}, all.A, all.E);
      std::copy_n(all.query.view().row(b), all.A, alone.query.view().row(0));
      std::copy_n(all.d_context.view().row(b), all.E, alone.d_context.view().row(0));
      std::copy_n(all.d_weights.view().row(b), all.longest, alone.d_weights.view().row(0));
      alone.forward();
      alone.backward();
      for (int64_t j = 0; j < all.length(b); ++j) EXPECT_EQ(alone.weights(0, j), all.weights(b, j));
      for (int64_t j = 0; j < all.E; ++j) EXPECT_EQ(alone.context(0, j), all.context(b, j));
      for (int64_t a = 0; a < all.A; ++a) EXPECT_EQ(alone.d_query(0, a), all.d_query(b, a));
      for (int64_t j = all.begin(b); j < all.begin(b) + all.length(b); ++j) {
        for (int64_t a = 0; a < all.A; ++a) EXPECT_EQ(alone.d_keys(j, a), all.d_keys(j, a));
        for (int64_t e = 0; e < all.E; ++e) EXPECT_EQ(alone.d_values(j, e), all.d_values(j, e));
      }
    }
  });
}

TEST(AdditiveThreads, AnyNumberGivesTheSameBits) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 23; ++i) lengths.push_back((i * 5) % 12);
  Problem<float> expected(lengths, {}, 50, 70);
  const Problem<float> fresh = expected;
  expected.forward();
  expected.backward();
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    Problem<float> p = fresh;
    p.forward(&pool);
    p.backward(&pool);
    EXPECT_EQ(p.weights.data, expected.weights.data);
    EXPECT_EQ(p.context.data, expected.context.data);
    EXPECT_EQ(p.d_query.data, expected.d_query.data);
    EXPECT_EQ(p.d_keys.data, expected.d_keys.data);
    EXPECT_EQ(p.d_values.data, expected.d_values.data);
    EXPECT_EQ(p.d_v, expected.d_v);
  }
}

TEST(AdditiveThreads, RowsThatShareASentenceAreSafe) {
  std::vector<int32_t> map;
  for (int32_t i = 0; i < 40; ++i) map.push_back(i % 3);
  Problem<float> expected({9, 0, 14}, map, 33, 21);
  expected.forward();
  Problem<float> p = expected;
  expected.backward();
  ThreadPool pool(2);
  p.backward(&pool);
  EXPECT_EQ(p.d_query.data, expected.d_query.data);
  EXPECT_EQ(p.d_keys.data, expected.d_keys.data);
  EXPECT_EQ(p.d_values.data, expected.d_values.data);
  EXPECT_EQ(p.d_v, expected.d_v);
}

TEST(Additive, NanReachesTheContext) {
  on_every_target([] {
    Problem<float> p({9}, {}, 21, 30);
    p.keys(2, 4) = std::numeric_limits<float>::quiet_NaN();
    p.forward();
    for (int64_t j = 0; j < p.E; ++j) EXPECT_TRUE(std::isnan(p.context(0, j)));
  });
}

TEST(Additive, ShapeErrors) {
  Problem<float> p({2, 3}, {}, 4, 5);
  const auto broken = [&](const std::function<void(AdditiveOperands<float>&)>& change,
                          const std::string& part) {
    auto o = p.operands();
    change(o);
    expect_shape_error([&] { additive_forward(o, p.weights.view(), p.context.view()); }, part);
  };
  broken([](auto& o) { o.keys.columns = 3; }, "keys [5, 3], expected [5, 4]");
  broken([](auto& o) { o.values.rows = 4; }, "values [4, 5], expected [5, 5]");
  broken([](auto& o) { o.keys.column_stride = 2; }, "column stride 2");
  broken([](auto& o) { o.query.rows = 3; }, "row 2 looks at sentence 2 of 2");
  const std::vector<int64_t> falling = {0, 3, 2}, beyond = {0, 3, 6};
  broken([&](auto& o) { o.offsets = falling; }, "never fall");
  broken([&](auto& o) { o.offsets = beyond; }, "offsets end at 6");
  broken([](auto& o) { o.offsets = {}; }, "offsets");
  const std::vector<int32_t> three = {0, 1, 1}, wrong = {0, -1};
  broken([&](auto& o) { o.sentences = three; }, "sentences [3], expected [2]");
  broken([&](auto& o) { o.sentences = wrong; }, "sentence -1 of 2");
  auto narrow = p.weights.view();
  narrow.columns = 2;
  expect_shape_error([&] { additive_forward(p.operands(), narrow, p.context.view()); }, "weights [2, 2]");
  auto context = p.context.view();
  context.columns = 4;
  expect_shape_error([&] { additive_forward(p.operands(), p.weights.view(), context); }, "context [2, 4]");
  auto g = p.gradients();
  g.d_keys.rows = 4;
  expect_shape_error([&] { p.backward(g); }, "d_keys [4, 4], expected [5, 4]");
}

}  // namespace
}  // namespace regard::attention
