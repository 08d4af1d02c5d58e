// Shapes that do not fit, more than 2^31 pairs, and what of the keys is never read.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "regard/attention/attention.h"
#include "regard/attention/key_blocks.h"
#include "tests/support/attention_case.h"
#include "tests/support/every_target.h"
#include "tests/support/expect_error.h"
#include "tests/support/sparse_memory.h"

namespace regard::attention {
namespace {

using tests::AttentionCase;
using tests::AttentionNumbers;
using tests::expect_shape_error;
using tests::on_every_target;
using tests::SparseMemory;

using Options = AttentionOptions<float>;
using Outputs = AttentionOutputs<float>;
using Gradients = AttentionGradients<float>;

const AttentionCase kCase{.B = 2, .H = 4, .Hkv = 2, .T = 5, .S = 7, .D = 8, .E = 6};

TEST(AttentionShapes, ErrorsNameOperandShapeAndExpectation) {
  AttentionNumbers<float> x(kCase);
  const auto operands = [&](const std::function<void(View4<float>&, View4<float>&, View4<float>&)>& change,
                            const std::string& part) {
    View4<float> q = x.q_view(), k = x.k_view(), v = x.v_view();
    change(q, k, v);
    expect_shape_error([&] { attention_forward(q, k, v, x.outputs(false)); }, part);
  };
  operands([](auto&, auto& k, auto&) { k.shape[3] = 7; },
           "[attention] k [2, 2, 7, 7], expected [2, 2, 7, 8] (B, Hkv, S, D)");
  operands([](auto&, auto& k, auto&) { k.shape[0] = 1; }, "k [1, 2, 7, 8], expected [2, 2, 7, 8]");
  operands([](auto&, auto&, auto& v) { v.shape[2] = 6; },
           "v [2, 2, 6, 6], expected [2, 2, 7, 6] (B, Hkv, S, E)");
  operands([](auto&, auto&, auto& v) { v.shape[1] = 4; }, "v [2, 4, 7, 6], expected [2, 2, 7, 6]");
  operands([](auto& q, auto&, auto&) { q.shape[1] = 3; },
           "q [2, 3, 5, 8] has 3 heads, expected a multiple of the 2");

  const auto outputs = [&](const std::function<void(Outputs&)>& change, const std::string& part) {
    Outputs o = x.outputs(true);
    change(o);
    expect_shape_error([&] { attention_forward(x.q_view(), x.k_view(), x.v_view(), o); }, part);
  };
  outputs([](auto& o) { o.out.shape[3] = 8; }, "out [2, 4, 5, 8], expected [2, 4, 5, 6] (B, H, T, E)");
  outputs([](auto& o) { o.log_sum_exp.shape[2] = 7; }, "log_sum_exp [2, 4, 7], expected [2, 4, 5]");
  outputs([](auto& o) { o.weights.shape[3] = 6; }, "weights [2, 4, 5, 6], expected [2, 4, 5, 7]");
  outputs([](auto& o) { o.scores.shape[1] = 2; }, "scores [2, 2, 5, 7]");
  outputs([](auto& o) { o.column_sums.shape[2] = 5; }, "column_sums [2, 4, 5], expected [2, 4, 7]");
}

TEST(AttentionShapes, ErrorsOfOptions) {
  AttentionNumbers<float> x(kCase);
  const auto options = [&](const std::function<void(Options&)>& change, const std::string& part) {
    Options o;
    change(o);
    expect_shape_error([&] { attention_forward(x.q_view(), x.k_view(), x.v_view(), x.outputs(false), o); },
                       part);
  };
  const std::vector<int64_t> one = {3}, long_ones = {5, 8}, falling = {0, 4, 3}, starts = {0, 3, 5},
                             two = {1, 2};
  const std::vector<float> slopes = {1, 2, 3};
  const std::vector<uint64_t> streams = {1};
  options([&](Options& o) { o.key_lengths = one; }, "key_lengths [1], expected [2] (B)");
  options([&](Options& o) { o.key_lengths = long_ones; }, "key_lengths[1] is 8, expected 0 to 7");
  options([&](Options& o) { o.alignment = Alignment::explicit_offsets, o.offsets = one; },
          "offsets [1], expected [2]");
  options([&](Options& o) { o.query_starts = falling; }, "query_starts must hold");
  options([&](Options& o) { o.query_starts = starts, o.key_starts = starts; }, "batch of 1");
  options([&](Options& o) { o.alibi_slopes = slopes; }, "alibi_slopes [3], expected [4] (H)");
  options([&](Options& o) { o.sink = slopes; }, "sink [3], expected [4] (H)");
  options([&](Options& o) { o.softcap = -1; }, "softcap");
  options([&](Options& o) { o.dropout.probability = 1.5; }, "probability");
  options([&](Options& o) { o.dropout = {.probability = 0.5, .streams = streams}; },
          "dropout.streams [1], expected [2]");
  options([&](Options& o) { o.blocks = {2, 2, two, {}}; }, "blocks.row_starts [2], expected [4]");
  options(
      [&](Options& o) {
        o.bias = dense(static_cast<const float*>(x.q.data()), std::array<int64_t, 4>{2, 4, 5, 6});
      },
      "bias [2, 4, 5, 6], expected [2, 4, 5, 7]");
  const bool mask[1] = {true};
  options(
      [&](Options& o) {
        o.mask = {mask, {1, 4, 5, 7}, {0, 0, 0, 0}};
      },
      "mask [1, 4, 5, 7], expected [2, 4, 5, 7]");
}

TEST(AttentionShapes, ErrorsOfGradients) {
  AttentionNumbers<float> x(kCase);
  x.forward();
  const auto gradients = [&](const std::function<void(Gradients&)>& change, const std::string& part) {
    Gradients g = x.gradients();
    change(g);
    expect_shape_error(
        [&] {
          attention_backward(x.q_view(), x.k_view(), x.v_view(), x.out_view(x.out), x.row_view(x.lse), g);
        },
        part);
  };
  gradients([](auto& g) { g.d_out.shape[2] = 4; }, "d_out [2, 4, 4, 6], expected [2, 4, 5, 6]");
  gradients([](auto& g) { g.d_q.shape[3] = 6; }, "d_q [2, 4, 5, 6], expected [2, 4, 5, 8]");
  gradients([](auto& g) { g.d_k.shape[1] = 4; }, "d_k [2, 4, 7, 8], expected [2, 2, 7, 8]");
  gradients([](auto& g) { g.d_v.shape[2] = 5; }, "d_v [2, 2, 5, 6], expected [2, 2, 7, 6]");
  gradients([](auto& g) { g.d_log_sum_exp.shape[0] = 1; }, "d_log_sum_exp [1, 4, 5]");
}

TEST(AttentionShapes, AMaskOfOneRowForMoreThan2To31Pairs) {
  // 50,000 x 50,000 pairs, of which a window of 2 keys is computed; mask and bias have stride 0 over the
  // queries.
  const int64_t n = 50000;
  AttentionNumbers<float> x({.H = 1, .T = n, .S = 1, .D = 1, .E = 1});
  std::vector<float> k(static_cast<size_t>(n), 1.f), v(static_cast<size_t>(n)),
      bias(static_cast<size_t>(n), 0.5f);
  for (size_t j = 0; j < v.size(); ++j) v[j] = static_cast<float>(j);
  const auto column = [&](std::vector<float>& from) {
    return dense(from.data(), std::array<int64_t, 4>{1, 1, n, 1});
  };
  Options o{.causal = true, .window = {1, 0}};
  o.bias = {bias.data(), {1, 1, n, n}, {0, 0, 0, 1}};
  attention_forward(x.q_view(), column(k), column(v), {.out = x.out_view(x.out)}, o);
  for (size_t i = 1; i < x.out.size(); ++i) ASSERT_NEAR(x.out[i], static_cast<float>(i) - 0.5f, 4e-3) << i;
}

TEST(AttentionShapes, KeysThatPositionsDisallowAreNeverRead) {
  // They lie on pages that may not be read.
  const size_t page = 4096, rows = page / sizeof(float) / 4;
  SparseMemory memory(3 * page / sizeof(float));
  ASSERT_NE(memory.data, nullptr);
  float* const keys = memory.data + page / sizeof(float);
  const auto numbers = tests::normals<float>(static_cast<int64_t>(page / sizeof(float)), 3);
  std::copy(numbers.begin(), numbers.end(), keys);
  ASSERT_EQ(::mprotect(memory.data, page, PROT_NONE), 0);
  ASSERT_EQ(::mprotect(memory.data + 2 * page / sizeof(float), page, PROT_NONE), 0);
  // Row 0 of the keys stands `rows` before the readable page, the last one behind it.
  const auto S = static_cast<int64_t>(3 * rows), T = static_cast<int64_t>(rows);
  const View4<float> k{memory.data, {1, 1, S, 4}, {0, 0, 4, 1}};
  AttentionNumbers<float> x({.H = 1, .T = T, .S = 1, .D = 4, .E = 4});
  const std::vector<int64_t> offsets = {T}, lengths = {2 * T};
  on_every_target([&] {
    // Window (0, 0) about T .. 2 T; a window to the left cut by blocks; the right side by the length.
    Options o{.causal = true, .window = {0, 0}, .alignment = Alignment::explicit_offsets, .offsets = offsets};
    attention_forward(x.q_view(), k, k, {.out = x.out_view(x.out)}, o);
    for (size_t n = 0; n < x.out.size(); ++n) ASSERT_EQ(x.out[n], numbers[n]);
    const std::vector<int64_t> starts = {0, 1, 2}, blocks = {1, 1};
    o = {.key_lengths = lengths, .blocks = {T / 2, T, starts, blocks}};
    attention_forward(x.q_view(), k, k, {.out = x.out_view(x.out)}, o);
    for (const float v : x.out) ASSERT_TRUE(std::isfinite(v));
  });
}

/// Segments hold every pair of the band, each once, in order, and no vector without one.
TEST(KeyBlocks, SegmentsCoverTheBand) {
  std::vector<Segment> segments;
  const int64_t open = Band::kOpen;
  for (const int64_t lanes : {1, 4, 8, 16}) {
    for (const Band& band :
         {Band{300, 0, open, open}, Band{300, 100, open, 0}, Band{300, -40, open, 0}, Band{300, 7, 20, 0},
          Band{300, 7, 5, 33}, Band{300, 250, 100, open}, Band{97, 3, 0, 0}}) {
      for (const int64_t first : {0, 64, 100}) {
        for (const int64_t count : {1, 15, 16, 17, 64}) {
          Head<float> head;
          head.band = band;
          std::vector<int> seen(static_cast<size_t>(count * band.keys));
          int64_t last = -1;
          KeyBlocks(head, first, count, lanes, segments).for_each([&](const KeyBlock& block) {
            EXPECT_EQ(block.begin % kKeyBlock, 0);
            for (const Segment& s : block.segments) {
              EXPECT_GT(s.begin, last);
              EXPECT_GE(s.begin, block.begin);
              EXPECT_LE(s.end, block.begin + kKeyBlock);
              last = s.end - 1;
              bool partial = false;
              for (int64_t j = s.begin; j < s.end; ++j) {
                for (int64_t n = s.first * lanes; n < std::min(count, s.last * lanes); ++n) {
                  const bool inside = band.begin(first + n) <= j && j < band.end(first + n);
                  ++seen[static_cast<size_t>(n * band.keys + j)];
                  partial = partial || !inside;
                }
                for (int v = s.first; v < s.last; ++v) {
                  const int64_t low = first + v * lanes, high = std::min(first + count, low + lanes) - 1;
                  EXPECT_TRUE(band.begin(low) <= j && j < band.end(high)) << "a vector without a pair";
                }
              }
              EXPECT_EQ(s.partial, partial);
            }
          });
          for (int64_t n = 0; n < count; ++n) {
            for (int64_t j = band.begin(first + n); j < band.end(first + n); ++j) {
              ASSERT_EQ(seen[static_cast<size_t>(n * band.keys + j)], 1);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace regard::attention
