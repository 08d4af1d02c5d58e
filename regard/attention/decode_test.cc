#include "regard/attention/decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "regard/attention/decode_reference.h"
#include "tests/support/every_target.h"
#include "tests/support/expect_error.h"
#include "tests/support/padded_matrix.h"

namespace regard::attention {
namespace {

using tests::expect_shape_error;
using tests::normals;
using tests::on_every_target;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Shape {
  int64_t B, H, Hkv, T, S, D, E;
  int64_t page_size = 0;      // 0: contiguous
  int64_t column_stride = 1;  // of the cache
};

/// Queries, a cache and results. In pages, the pages stand in reverse order, one that nobody owns before
/// them.
template <class T>
struct Problem {
  Shape shape;
  std::vector<float> q, out, lse;
  std::vector<T> keys, values;
  std::vector<int32_t> table;
  std::vector<int64_t> lengths, offsets;
  std::vector<float> slopes, sink;
  DecodeOptions<float> options;

  explicit Problem(const Shape& s) : shape(s) {
    q = normals<float>(s.B * s.H * s.T * s.D, 1);
    out.assign(static_cast<size_t>(s.B * s.H * s.T * s.E), 77);
    lse.assign(static_cast<size_t>(s.B * s.H * s.T), 77);
    if (s.page_size > 0)
      for (int64_t n = 0; n < s.B * pages_of_item(); ++n)
        table.push_back(static_cast<int32_t>(s.B * pages_of_item() - n));
    keys.assign(static_cast<size_t>(pages() * s.Hkv * page_size() * s.D * s.column_stride), T(kNan));
    values.assign(static_cast<size_t>(pages() * s.Hkv * page_size() * s.E * s.column_stride), T(kNan));
    lengths.assign(static_cast<size_t>(s.B), s.S);
    fill(keys, s.D, 2);
    fill(values, s.E, 3);
  }
  int64_t pages_of_item() const { return (shape.S + shape.page_size - 1) / shape.page_size; }
  int64_t pages() const { return shape.page_size > 0 ? shape.B * pages_of_item() + 1 : shape.B; }
  int64_t page_size() const { return shape.page_size > 0 ? shape.page_size : shape.S; }
  View4<T> view(std::vector<T>& x, int64_t width) {
    View4<T> v =
        dense(x.data(), std::array<int64_t, 4>{pages(), shape.Hkv, page_size(), width * shape.column_stride});
    v.shape[3] = width;
    v.stride[3] = shape.column_stride;
    return v;
  }
  T& at(std::vector<T>& x, int64_t width, int64_t b, int64_t h, int64_t j, int64_t c) {
    const int64_t page =
        table.empty() ? b : table[static_cast<size_t>(b * pages_of_item() + j / page_size())];
    return view(x, width)(page, h, j % page_size(), c);
  }
  /// The same numbers at the same positions, whatever the layout.
  void fill(std::vector<T>& x, int64_t width, uint64_t seed) {
    const std::vector<float> numbers = normals<float>(shape.B * shape.Hkv * shape.S * width, seed);
    size_t n = 0;
    for (int64_t b = 0; b < shape.B; ++b)
      for (int64_t h = 0; h < shape.Hkv; ++h)
        for (int64_t j = 0; j < shape.S; ++j)
          for (int64_t c = 0; c < width; ++c) at(x, width, b, h, j, c) = T(numbers[n++]);
  }
  View4<const float> queries() {
    return dense<const float>(q.data(), std::array<int64_t, 4>{shape.B, shape.H, shape.T, shape.D});
  }
  View4<float> result() {
    return dense(out.data(), std::array<int64_t, 4>{shape.B, shape.H, shape.T, shape.E});
  }
  View3<float> log_sum_exp() { return dense(lse.data(), std::array<int64_t, 3>{shape.B, shape.H, shape.T}); }
  DecodeCache<T> cache() {
    DecodeCache<T> c{view(keys, shape.D), view(values, shape.E), {}};
    if (!table.empty()) c.block_table = matrix<const int32_t>(table.data(), shape.B, pages_of_item());
    return c;
  }
  DecodeOptions<float> all_options() {
    DecodeOptions<float> o = options;
    o.key_lengths = lengths;
    o.offsets = offsets;
    o.alibi_slopes = slopes;
    o.sink = sink;
    return o;
  }
  void decode(ThreadPool* pool = nullptr) {
    std::vector<float> scratch(static_cast<size_t>(decode_scratch_size(queries(), cache())), kNan);
    attention::decode(queries(), cache(), result(), log_sum_exp(), scratch, all_options(), pool);
  }
  /// The largest error of out and log-sum-exp against the definition in f64.
  void expect_close(double tolerance) {
    std::vector<double> o(out.size()), l(lse.size());
    reference::decode(queries(), cache(), all_options(),
                      dense(o.data(), std::array<int64_t, 4>{shape.B, shape.H, shape.T, shape.E}),
                      dense(l.data(), std::array<int64_t, 3>{shape.B, shape.H, shape.T}));
    for (size_t i = 0; i < o.size(); ++i)  // scores are about as large as their log-sum-exp
      ASSERT_NEAR(out[i], o[i], tolerance * std::max(1., std::abs(l[i / static_cast<size_t>(shape.E)])))
          << "out " << i;
    for (size_t i = 0; i < l.size(); ++i) {
      if (l[i] == -kInf)
        ASSERT_EQ(static_cast<double>(lse[i]), l[i]);
      else
        ASSERT_NEAR(lse[i], l[i], tolerance * std::max(1., std::abs(l[i]))) << "log-sum-exp " << i;
    }
  }
};

TEST(Decode, ByHand) {
  // Scores 0 and log 3: weights 1/4 and 3/4.
  const float q = 1, k[2] = {0, std::log(3.f)}, v[2] = {8, 4};
  float out = 0, lse = 0;
  std::vector<float> scratch(1000);
  const std::array<int64_t, 4> one{1, 1, 1, 1}, two{1, 1, 2, 1};
  const std::array<int64_t, 3> row{1, 1, 1};
  decode(dense(&q, one), DecodeCache<float>{dense(k, two), dense(v, two), {}}, dense(&out, one),
         dense(&lse, row), scratch);
  EXPECT_NEAR(out, 5, 1e-6);
  EXPECT_NEAR(lse, std::log(4.), 1e-6);
}

template <class T>
void check_widths() {
  for (const int64_t D :
       {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40, 63, 64, 65, 72, 80, 96, 112, 129, 160, 257})
    for (const int64_t stride : {1, 2}) {
      Problem<T> p({1, 2, 1, 1, 70 + D, D, 1 + (D * 5) % 90, 0, stride});
      p.decode();
      p.expect_close(5e-6);
    }
}
TEST(Decode, EveryWidth) {
  on_every_target([] {
    check_widths<float>();
    check_widths<BFloat16>();
  });
}

TEST(Decode, EveryLength) {
  on_every_target([] {
    for (int64_t S = 0; S <= 35; ++S) {
      Problem<float> p({1, 1, 1, 1, S, 20, 36});
      p.decode();
      p.expect_close(3e-6);
    }
    for (const int64_t S : {63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2500}) {
      Problem<float> p({1, 2, 2, 1, S, 16, 16});
      p.decode();
      p.expect_close(3e-6);
    }
  });
}

/// Every option, alone and with others; items of different lengths, one of them empty.
template <class T>
void check_options(const Shape& shape, int step) {
  for (int choice = 0; choice < 64; choice += step) {
    Problem<T> p(shape);
    if (choice & 1) p.lengths = {shape.S, 0, 5, shape.S / 2}, p.lengths.resize(static_cast<size_t>(shape.B));
    if (choice & 2) p.options.causal = true;
    if (choice & 4) p.options.window = {40, choice & 2 ? -1 : 7};
    if (choice & 8) p.options.softcap = 1.5;
    if (choice & 16) p.slopes = normals<float>(shape.H, 9);
    if (choice & 32) {
      p.sink = normals<float>(shape.H, 10);
      p.options.scale = choice & 1 ? 0 : 0.7;
      p.offsets = {3, -2, 1000, 4};
      p.offsets.resize(static_cast<size_t>(shape.B));
    }
    p.decode();
    SCOPED_TRACE("choice " + std::to_string(choice));
    p.expect_close(6e-6);
    if (::testing::Test::HasFatalFailure()) return;
  }
}
TEST(Decode, EveryOption) {
  on_every_target([] {
    check_options<float>({4, 4, 2, 3, 90, 20, 17}, 1);
    check_options<BFloat16>({3, 2, 2, 2, 150, 16, 35, 16}, 3);
    check_options<float>({2, 2, 1, 1, 1100, 8, 8, 7}, 5);
  });
}

TEST(Decode, F64IsTheDefinition) {
  const Shape s{2, 4, 2, 2, 30, 5, 6};
  Problem<float> p(s);
  p.options.causal = true;
  p.options.softcap = 2;
  const std::vector<double> q(p.q.begin(), p.q.end()), k(p.keys.begin(), p.keys.end()),
      v(p.values.begin(), p.values.end());
  std::vector<double> out(p.out.size()), lse(p.lse.size());
  DecodeOptions<double> options;
  options.causal = true;
  options.softcap = 2;
  decode(
      dense(q.data(), p.queries().shape),
      DecodeCache<double>{dense(k.data(), p.cache().keys.shape), dense(v.data(), p.cache().values.shape), {}},
      dense(out.data(), p.result().shape), dense(lse.data(), p.log_sum_exp().shape), options);
  p.decode();
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(p.out[i], out[i], 2e-6);
  for (size_t i = 0; i < lse.size(); ++i) EXPECT_NEAR(p.lse[i], lse[i], 2e-6);
}

TEST(Decode, NearlyEqualLargeScores) {
  // Scores -60000 and -60001: the weights of 0 and -1, to f32's digits.
  const float q = 1, k[2] = {-60000, -60001}, v[2] = {1, 3};
  float out = 0;
  std::vector<float> scratch(1000);
  const std::array<int64_t, 4> one{1, 1, 1, 1}, two{1, 1, 2, 1};
  on_every_target([&] {
    decode(dense(&q, one), DecodeCache<float>{dense(k, two), dense(v, two), {}}, dense(&out, one), {},
           scratch, {.scale = 1});
    EXPECT_NEAR(out, 1.5378828, 1e-6);
  });
}

/// Prefill of a causal prompt, alone and query by query, on a grown cache and in any layout.
TEST(Decode, BitsDependOnTheRowAlone) {
  on_every_target([] {
    const Shape whole{3, 4, 2, 5, 1300, 9, 20};
    Problem<float> expected(whole);
    expected.options.causal = true;
    expected.options.window = {1200, -1};
    expected.slopes = {0.5f, 0.25f, 0.125f, 0.f};
    expected.lengths = {1300, 700, 129};
    expected.decode();
    for (const int64_t page : {0, 1, 16, 100})
      for (const int64_t stride : {1, 3}) {
        Shape shape = whole;
        shape.page_size = page;
        shape.column_stride = stride;
        Problem<float> other(shape);
        other.options = expected.options;
        other.slopes = expected.slopes;
        other.lengths = expected.lengths;
        other.decode();
        EXPECT_EQ(other.out, expected.out) << "pages of " << page << ", stride " << stride;
        EXPECT_EQ(other.lse, expected.lse);
      }
    Problem<float> p(whole);
    p.slopes = expected.slopes;
    p.options = expected.options;
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t t = 0; t < 5; ++t) {  // one item, one query, a cache that ends with it
        p.lengths = {expected.lengths[static_cast<size_t>(b)] - 4 + t};
        View4<const float> q = p.queries();
        q.data += q.offset({b, 0, t, 0});
        q.shape[0] = q.shape[2] = 1;
        DecodeCache<float> cache = p.cache();
        cache.keys.data += cache.keys.offset({b, 0, 0, 0});
        cache.values.data += cache.values.offset({b, 0, 0, 0});
        cache.keys.shape[0] = cache.values.shape[0] = 1;
        std::vector<float> out(static_cast<size_t>(4 * 20)), scratch(100000);
        decode(q, cache, dense(out.data(), std::array<int64_t, 4>{1, 4, 1, 20}), {}, scratch,
               p.all_options());
        for (int64_t h = 0; h < 4; ++h)
          for (int64_t c = 0; c < 20; ++c)
            ASSERT_EQ(out[static_cast<size_t>(h * 20 + c)], expected.result()(b, h, t, c));
      }
  });
}

/// Rows share keys in tiles; each of them alone gives the same.
template <class T>
void check_tiles(const Shape& shape) {
  Problem<T> expected(shape);
  expected.options.causal = true;
  expected.options.window = {200, -1};  // rows of a tile begin and end at different keys
  expected.decode();
  expected.expect_close(5e-6);
  const int64_t group = shape.H / shape.Hkv;
  for (int64_t h = 0; h < shape.H; ++h)
    for (int64_t t = 0; t < shape.T; ++t) {
      View4<const float> q = expected.queries();
      q.data += q.offset({0, h, t, 0});
      q.shape = {1, 1, 1, shape.D};
      DecodeCache<T> cache = expected.cache();
      for (View4<const T>* x : {&cache.keys, &cache.values}) {
        x->data += x->offset({0, h / group, 0, 0});
        x->shape[1] = 1;
      }
      std::vector<float> out(static_cast<size_t>(shape.E)),
          scratch(static_cast<size_t>(decode_scratch_size(q, cache)));
      DecodeOptions<float> options = expected.options;
      const std::vector<int64_t> offsets = {shape.S - shape.T + t};
      options.offsets = offsets;
      decode(q, cache, dense(out.data(), std::array<int64_t, 4>{1, 1, 1, shape.E}), {}, scratch, options);
      for (int64_t c = 0; c < shape.E; ++c)
        ASSERT_EQ(out[static_cast<size_t>(c)], expected.result()(0, h, t, c))
            << "head " << h << " query " << t;
    }
}
TEST(Decode, BitsAreTheSameInTilesOfAnySize) {
  on_every_target([] {
    for (const int64_t width : {64, 100, 128}) {
      check_tiles<float>({1, 14, 2, 1, 300, width, 192 - width});
      check_tiles<BFloat16>({1, 14, 2, 1, 300, width, 192 - width});
    }
    check_tiles<float>({1, 2, 1, 5, 400, 64, 64});
    check_tiles<BFloat16>({1, 2, 1, 5, 400, 64, 64, 16});
  });
}

TEST(DecodeThreads, AnyNumberGivesTheSameBits) {
  const Shape shape{5, 4, 2, 2, 2100, 24, 24, 32};
  Problem<float> expected(shape);
  expected.lengths = {2100, 1, 0, 1500, 1024};
  expected.sink = {0.f, 1.f, -1.f, 2.f};
  expected.decode();
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    Problem<float> p(shape);
    p.lengths = expected.lengths;
    p.sink = expected.sink;
    p.decode(&pool);
    EXPECT_EQ(p.out, expected.out);
    EXPECT_EQ(p.lse, expected.lse);
  }
}

TEST(Decode, WhatStructureDisallowsIsNotRead) {
  on_every_target([] {
    Problem<float> p({1, 2, 1, 2, 300, 20, 20, 8});
    p.lengths = {290};
    p.options.window = {100, 0};
    for (int64_t j = 0; j < 300; ++j) {
      if (j >= 188 && j < 290) continue;  // query 0 stands at 288
      for (int64_t c = 0; c < 20; ++c) p.at(p.keys, 20, 0, 0, j, c) = p.at(p.values, 20, 0, 0, j, c) = kNan;
    }
    for (int64_t c = 0; c < 20; ++c) p.at(p.values, 20, 0, 0, 188, c) = kNan;  // seen by query 0 alone
    for (size_t page = 0; page < 23; ++page) p.table[page] = -1;               // never looked up
    p.table[37] = 1 << 30;
    p.decode();
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t c = 0; c < 20; ++c) {
        EXPECT_TRUE(std::isnan(p.result()(0, h, 0, c)));
        EXPECT_TRUE(std::isfinite(p.result()(0, h, 1, c)));
      }
  });
}

TEST(Decode, NanAndInfinity) {
  on_every_target([] {
    for (const float bad : {kNan, static_cast<float>(kInf)}) {
      Problem<float> p({1, 1, 1, 1, 1500, 20, 20});
      p.q.assign(20, 1);
      p.at(p.keys, 20, 0, 0, 1100, 3) = bad;  // a score of NaN or +infinity
      p.decode();
      for (const float o : p.out) EXPECT_TRUE(std::isnan(o));
    }
    Problem<float> p({1, 1, 1, 1, 1500, 20, 20});
    p.q.assign(20, 1);
    for (int64_t j = 0; j < 1490; ++j) p.at(p.keys, 20, 0, 0, j, 7) = static_cast<float>(-kInf);
    p.decode();
    p.expect_close(2e-6);
    for (int64_t j = 0; j < 1500; ++j) p.at(p.keys, 20, 0, 0, j, 7) = static_cast<float>(-kInf);
    p.decode();
    for (const float o : p.out) EXPECT_EQ(o, 0);
    EXPECT_EQ(p.lse[0], static_cast<float>(-kInf));
    p.sink = {1.5f};
    p.decode();
    for (const float o : p.out) EXPECT_EQ(o, 0);
    EXPECT_EQ(p.lse[0], 1.5f);
  });
}

TEST(Decode, ZeroSizes) {
  for (const Shape& shape :
       {Shape{0, 2, 1, 1, 9, 4, 4}, Shape{2, 0, 0, 1, 9, 4, 4}, Shape{2, 2, 1, 0, 9, 4, 4},
        Shape{2, 2, 1, 1, 0, 4, 4}, Shape{2, 2, 1, 1, 9, 4, 0}, Shape{2, 2, 1, 1, 9, 0, 4}}) {
    Problem<float> p(shape);
    if (shape.D == 0) p.options.scale = 1;
    p.decode();
    p.expect_close(1e-6);
  }
}

TEST(Decode, ShapeErrors) {
  Problem<float> p({2, 4, 2, 1, 9, 4, 5, 4});
  std::vector<float> scratch(10000);
  struct Operands {
    View4<const float> q;
    DecodeCache<float> cache;
    View4<float> out;
    View3<float> lse;
    DecodeOptions<float> options;
  };
  const auto broken = [&](const std::function<void(Operands&)>& change, const std::string& part) {
    Operands o{p.queries(), p.cache(), p.result(), p.log_sum_exp(), p.all_options()};
    change(o);
    expect_shape_error([&] { decode(o.q, o.cache, o.out, o.lse, scratch, o.options); }, part);
  };
  const std::vector<int64_t> three = {1, 2, 3}, long_ones = {13, 1};
  const std::vector<float> one = {1};
  broken([](auto& o) { o.q.shape[3] = 3; }, "keys [7, 2, 4, 4], expected [7, 2, 4, 3]");
  broken([](auto& o) { o.cache.values.shape[2] = 3; }, "values [7, 2, 3, 5], expected [7, 2, 4, 5]");
  broken([](auto& o) { o.q.shape[1] = 3; },
         "q [2, 3, 1, 4] has 3 heads (H), expected a multiple of the keys' 2");
  broken([](auto& o) { o.out.shape[3] = 4; }, "out [2, 4, 1, 4], expected [2, 4, 1, 5]");
  broken([](auto& o) { o.lse.shape[2] = 2; }, "log_sum_exp [2, 4, 2], expected [2, 4, 1]");
  broken([](auto& o) { o.cache.block_table.rows = 3; }, "block_table [3, 3], expected [2, 3]");
  broken([](auto& o) { o.cache.block_table.column_stride = 2; }, "block_table has column stride 2");
  broken([](auto& o) { o.cache.block_table = {}; }, "keys [7, 2, 4, 4], expected [2, 2, 4, 4]");
  broken([&](auto& o) { o.options.key_lengths = three; }, "key_lengths [3], expected [2]");
  broken([&](auto& o) { o.options.key_lengths = long_ones; },
         "key_lengths of item 0 is 13, expected 0 to 12");
  broken([&](auto& o) { o.options.offsets = three; }, "offsets [3], expected [2]");
  broken([&](auto& o) { o.options.alibi_slopes = one; }, "alibi_slopes [1], expected [4]");
  broken([&](auto& o) { o.options.sink = one; }, "sink [1], expected [4]");
  p.table[4] = 7;
  broken([](auto&) {}, "block_table of item 1 names page 7 of 7");
  p.table[4] = 1;
  scratch.resize(10);
  broken([](auto&) {}, "scratch [10], expected at least [");
}

}  // namespace
}  // namespace regard::attention
