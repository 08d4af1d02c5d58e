// The same bits whatever surrounds a row: threads, batch, padding, strides, chunks. And parts that merge.
// Cases are those of python/tests/test_cases.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "regard/attention/attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/every_target.h"

namespace regard::attention {
namespace {

using tests::attention_options;
using tests::AttentionCase;
using tests::AttentionNumbers;
using tests::on_every_target;

constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
void expect_same_for_threads(const AttentionCase& c) {
  SCOPED_TRACE(c.name);
  AttentionNumbers<T> expected(c);
  expected.forward(true);
  expected.backward();
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    AttentionNumbers<T> x(c);
    x.forward(true, &pool);
    x.backward(&pool);
    EXPECT_EQ(x.out, expected.out);
    EXPECT_EQ(x.lse, expected.lse);
    EXPECT_EQ(x.weights, expected.weights);
    EXPECT_EQ(x.column_sums, expected.column_sums);
    EXPECT_EQ(x.d_q, expected.d_q);
    EXPECT_EQ(x.d_k, expected.d_k);
    EXPECT_EQ(x.d_v, expected.d_v);
    if (c.sink) {
      EXPECT_EQ(x.d_sink, expected.d_sink);
    }
    if (c.bias != AttentionCase::Bias::none) {
      EXPECT_EQ(x.d_bias, expected.d_bias);
    }
    AttentionNumbers<T> without(c);  // the second pass over the tiles does not change the first
    without.forward(false, &pool);
    EXPECT_EQ(without.out, expected.out);
  }
}

TEST(AttentionThreads, AnyNumberGivesTheSameBits) {
  for (AttentionCase c : attention_options()) {
    c.B = 2, c.H = 4, c.Hkv = 2, c.T = 90, c.S = 100, c.D = 16, c.E = 20;
    expect_same_for_threads<float>(c);
    c.T = 10, c.S = 12;
    expect_same_for_threads<double>(c);
  }
}

/// Rows [first, first + count) of the queries alone, at the positions that they had.
template <class T>
AttentionNumbers<T> chunk(AttentionNumbers<T>& whole, int64_t first, int64_t count) {
  AttentionCase c = whole.shape;
  c.T = count;
  AttentionNumbers<T> x(c);
  x.k = whole.k, x.v = whole.v, x.sink = whole.sink;
  for (int64_t h = 0; h < c.B * c.H; ++h) {
    std::copy_n(whole.q.begin() + (h * whole.shape.T + first) * c.D, count * c.D,
                x.q.begin() + h * count * c.D);
  }
  auto o = x.options();
  o.alignment = Alignment::explicit_offsets;
  const int64_t offset = c.alignment == Alignment::top_left ? 0 : whole.shape.S - whole.shape.T;
  const std::vector<int64_t> offsets(static_cast<size_t>(c.B), offset + first);
  o.offsets = offsets;
  const auto part = [&](auto view) {
    if (view) {
      view.data += first * view.stride[2];
      view.shape[2] = count;
    }
    return view;
  };
  const auto all = whole.options();
  o.mask = part(all.mask), o.bias = part(all.bias);
  attention_forward(x.q_view(), x.k_view(), x.v_view(), x.outputs(true), o);
  return x;
}

// Case 19.
TEST(Attention, AChunkOfQueriesHasTheBitsOfTheWhole) {
  on_every_target([] {
    for (AttentionCase c : attention_options()) {
      if (c.query_block > 0 || c.dropout > 0) continue;  // those count queries from the chunk's begin
      c.B = 1, c.T = 131, c.S = 210, c.D = 8, c.E = 16;
      SCOPED_TRACE(c.name);
      AttentionNumbers<float> whole(c);
      whole.forward(true);
      for (const auto& [first, count] :
           std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {17, 1}, {30, 70}, {130, 1}}) {
        const AttentionNumbers<float> x = chunk(whole, first, count);
        for (int64_t h = 0; h < c.B * c.H; ++h) {
          for (int64_t i = 0; i < count; ++i) {
            const auto at = h * c.T + first + i, part = h * count + i;
            ASSERT_EQ(x.lse[static_cast<size_t>(part)], whole.lse[static_cast<size_t>(at)]);
            ASSERT_TRUE(std::equal(x.out.begin() + part * c.E, x.out.begin() + (part + 1) * c.E,
                                   whole.out.begin() + at * c.E));
            ASSERT_TRUE(std::equal(x.weights.begin() + part * c.S, x.weights.begin() + (part + 1) * c.S,
                                   whole.weights.begin() + at * c.S));
          }
        }
      }
    }
  });
}

/// An item alone, without padding, has the bits that it has in a padded batch and in a ragged one.
TEST(Attention, AnItemAloneHasTheBitsOfTheBatch) {
  on_every_target([] {
    for (AttentionCase option : attention_options()) {
      if (option.mask || option.bias != AttentionCase::Bias::none || option.query_block > 0) continue;
      SCOPED_TRACE(option.name);
      const std::vector<int64_t> lengths = {70, 33, 0, 101};
      option.H = 2, option.Hkv = 1, option.D = 16, option.E = 24;
      AttentionCase padded = option, ragged = option;
      padded.B = 4, padded.T = padded.S = 110, padded.query_lengths = padded.key_lengths = lengths;
      ragged.T = ragged.S = 204, ragged.query_starts = ragged.key_starts = {0, 70, 103, 103, 204};
      AttentionNumbers<float> p(padded), r(ragged);
      // Padding is never read.
      const auto copy = [&](std::vector<float>& to, const std::vector<float>& from, int64_t heads,
                            int64_t width) {
        std::fill(to.begin(), to.end(), std::numeric_limits<float>::quiet_NaN());
        for (int64_t b = 0; b < 4; ++b) {
          for (int64_t h = 0; h < heads; ++h) {
            const auto at = static_cast<size_t>(b);
            std::copy_n(from.begin() + (h * 204 + ragged.key_starts[at]) * width, lengths[at] * width,
                        to.begin() + ((b * heads + h) * 110) * width);
          }
        }
      };
      copy(p.q, r.q, 2, 16), copy(p.k, r.k, 1, 16), copy(p.v, r.v, 1, 24), copy(p.d_out, r.d_out, 2, 24);
      copy(p.d_lse, r.d_lse, 2, 1);
      p.forward(), p.backward(), r.forward(), r.backward();
      const auto expect_equal = [&](const std::vector<float>& x, const std::vector<float>& y, int64_t heads,
                                    int64_t width) {
        for (int64_t b = 0; b < 4; ++b) {
          for (int64_t h = 0; h < heads; ++h) {
            const auto at = static_cast<size_t>(b);
            const auto begin = x.begin() + (b * heads + h) * 110 * width;
            EXPECT_TRUE(std::equal(begin, begin + lengths[at] * width,
                                   y.begin() + (h * 204 + ragged.key_starts[at]) * width));
            EXPECT_TRUE(std::all_of(begin + lengths[at] * width, begin + 110 * width,
                                    [](float v) { return v == 0 || v == -kInf; }));
          }
        }
      };
      expect_equal(p.out, r.out, 2, 24), expect_equal(p.lse, r.lse, 2, 1);
      expect_equal(p.d_q, r.d_q, 2, 16), expect_equal(p.d_k, r.d_k, 1, 16), expect_equal(p.d_v, r.d_v, 1, 24);
    }
  });
}

/// A copy of a [B, H, T, D] tensor in another order of memory, with gaps.
struct Scattered {
  Scattered(const View4<float>& from, const std::array<size_t, 4>& order, int64_t gap) {
    view.shape = from.shape;
    int64_t stride = gap;
    for (const size_t n : order) {
      view.stride[n] = stride;
      stride *= from.shape[n] + 1;
    }
    data.assign(static_cast<size_t>(stride), std::numeric_limits<float>::quiet_NaN());
    view.data = data.data();
    for_each([&](auto... at) { view(at...) = from(at...); });
  }
  template <class Body>
  void for_each(const Body& body) const {
    for (int64_t b = 0; b < view.shape[0]; ++b) {
      for (int64_t h = 0; h < view.shape[1]; ++h) {
        for (int64_t i = 0; i < view.shape[2]; ++i) {
          for (int64_t d = 0; d < view.shape[3]; ++d) body(b, h, i, d);
        }
      }
    }
  }
  void expect_equal(const View4<float>& other) const {
    for_each([&](auto... at) { ASSERT_EQ(view(at...), other(at...)); });
  }
  std::vector<float> data;
  View4<float> view;
};

// Case 13.
TEST(Attention, AnyStridesGiveTheSameBits) {
  on_every_target([] {
    const AttentionCase c{.B = 2, .H = 4, .Hkv = 2, .T = 49, .S = 52, .D = 32, .E = 16, .causal = true};
    AttentionNumbers<float> x(c);
    x.forward();
    x.backward();
    for (const auto& order : std::vector<std::array<size_t, 4>>{{3, 1, 2, 0}, {2, 3, 1, 0}, {0, 1, 2, 3}}) {
      for (const int64_t gap : {1, 3}) {
        Scattered q(x.q_view(), order, gap), k(x.k_view(), order, gap), v(x.v_view(), order, gap);
        Scattered out(x.out_view(x.out), order, gap), d_out(x.out_view(x.d_out), order, gap);
        Scattered d_q(q), d_k(k), d_v(v);
        d_q.view.data = d_q.data.data(), d_k.view.data = d_k.data.data(), d_v.view.data = d_v.data.data();
        attention_forward(q.view, k.view, v.view, {.out = out.view}, x.options());
        attention_backward(q.view, k.view, v.view, out.view, x.row_view(x.lse),
                           {.d_out = d_out.view,
                            .d_log_sum_exp = x.row_view(x.d_lse),
                            .d_q = d_q.view,
                            .d_k = d_k.view,
                            .d_v = d_v.view},
                           x.options());
        out.expect_equal(x.out_view(x.out));
        d_q.expect_equal(x.gradients().d_q);
        d_k.expect_equal(x.gradients().d_k);
        d_v.expect_equal(x.gradients().d_v);
      }
    }
  });
}

/// The keys in parts, merged, are the whole; a sink is added by the merge.
TEST(Attention, PartsMergeToTheWhole) {
  on_every_target([] {
    for (const bool sink : {false, true}) {
      const AttentionCase c{.B = 2, .H = 2, .T = 20, .S = 200, .D = 8, .E = 12, .causal = true, .sink = sink};
      AttentionNumbers<float> whole(c);
      whole.forward();
      std::vector<AttentionNumbers<float>> parts;
      std::vector<PartialState<float>> states;
      parts.reserve(4);
      for (const auto& [begin, end] :
           std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 97}, {97, 97}, {97, 200}}) {
        AttentionCase part = c;
        part.sink = false;
        AttentionNumbers<float>& x = parts.emplace_back(part);
        auto k = x.k_view(), v = x.v_view();
        k.data += begin * k.stride[2], v.data += begin * v.stride[2];
        k.shape[2] = v.shape[2] = end - begin;
        auto o = x.options();
        const std::vector<int64_t> offsets(2, 200 - 20 - begin);
        o.alignment = Alignment::explicit_offsets, o.offsets = offsets;
        attention_forward(x.q_view(), k, v, x.outputs(false), o);
        states.push_back({x.out_view(x.out), x.row_view(x.lse)});
      }
      AttentionNumbers<float> merged(c);
      merge(states, whole.options().sink, merged.out_view(merged.out), merged.row_view(merged.lse));
      for (size_t n = 0; n < merged.out.size(); ++n) EXPECT_NEAR(merged.out[n], whole.out[n], 1e-6);
      for (size_t n = 0; n < merged.lse.size(); ++n) EXPECT_NEAR(merged.lse[n], whole.lse[n], 1e-6);
    }
  });
}

// Case 21.
TEST(Attention, EmptyStatesMergeToAnEmptyOne) {
  const AttentionCase c{.H = 1, .T = 1, .S = 1, .D = 1, .E = 2};
  AttentionNumbers<float> a(c), b(c), merged(c);
  a.out = {std::nanf(""), 0}, b.out = {0, 0}, a.lse = b.lse = {-kInf};
  const std::vector<PartialState<float>> states = {{a.out_view(a.out), a.row_view(a.lse)},
                                                   {b.out_view(b.out), b.row_view(b.lse)}};
  merge(states, {}, merged.out_view(merged.out), merged.row_view(merged.lse));
  EXPECT_EQ(merged.out, (std::vector<float>{0, 0}));
  EXPECT_EQ(merged.lse[0], -kInf);
  const std::vector<float> sink = {2};
  merge(states, sink, merged.out_view(merged.out), merged.row_view(merged.lse));
  EXPECT_EQ(merged.lse[0], 2);
  merge(std::span<const PartialState<float>>{}, {}, merged.out_view(merged.out), merged.row_view(merged.lse));
  EXPECT_EQ(merged.lse[0], -kInf);
}

}  // namespace
}  // namespace regard::attention
