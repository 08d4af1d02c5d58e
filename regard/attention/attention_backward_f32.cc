// Exact attention backward for one head. Each tile of queries meets the keys block by block, as forward; the
// weights are recomputed from the log-sum-exp l:
//   P = exp(S - l)    dP = V dO'    dS = P (dP - delta), delta_i = sum_e dO_ie O_ie - dl_i
//   dQ += scale dS' K    dK += scale dS Q    dV += P dO
// all as tiles [keys, queries].

#include "regard/attention/attention_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/attention/attention_backward_f32.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/attention/score_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

/// One tile of queries: what the blocks of keys need.
template <class T>
struct BackwardTile {
  const BackwardHead<T>& call;
  Tile<T> tile;
  const float *q, *d_o;            ///< tiles [D, kTile] (scaled) and [E, kTile]
  Rows q_rows, d_o_rows;           ///< the same as rows, unscaled, padded to whole vectors
  bool finite;                     ///< those rows are
  alignas(64) float l[kTile];      ///< log-sum-exp; +infinity, which gives weights 0, for empty rows
  alignas(64) float delta[kTile];  ///< sum_e dO O - dl
};

template <class T>
HWY_INLINE float dot(const T* a, int64_t a_step, const T* b, int64_t b_step, int64_t n) {
  const DF d;
  VF sum = hn::Zero(d);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t some = std::min(kLanes, n - i);
    sum = hn::MulAdd(load_some(a + i * a_step, a_step, some), load_some(b + i * b_step, b_step, some), sum);
  }
  return sn::sum(d, sum);
}

/// l and delta of the tile's queries, and the sink's gradient, whose weight is exp(sink - l).
template <class T>
void set_statistics(BackwardTile<T>& t) {
  const BackwardHead<T>& call = t.call;
  std::fill_n(t.l, kTile, kInfinity);
  std::fill_n(t.delta, kTile, 0.f);
  for (int64_t n = 0; n < t.tile.count; ++n) {
    const int64_t i = t.tile.first + n;
    const float l = call.log_sum_exp(i, 0);
    if (l == -kInfinity) continue;
    t.l[n] = l;
    t.delta[n] = dot(call.out.row(i), call.out.column_stride, call.d_out.row(i), call.d_out.column_stride,
                     call.out.columns);
    if (call.d_log_sum_exp.data) t.delta[n] -= call.d_log_sum_exp(i, 0);
    if (call.d_sink && call.head.sink != -kInfinity) {
      *call.d_sink -= std::exp(static_cast<double>(call.head.sink) - static_cast<double>(l)) *
                      static_cast<double>(t.delta[n]);
    }
  }
}

/// S becomes P and dP becomes dS, for scores that nothing but scale and masks has touched.
template <class T>
HWY_NOINLINE void softmax_backward(const BackwardTile<T>& t, const KeyBlock& block, float factor,
                                   float* scores, float* d_scores) {
  const DF d;
  const VF times = hn::Set(d, factor);
  for (const Segment& s : block.segments) {
    for_vectors_of(s, [&](int64_t j, int64_t lane) REGARD_VECTOR_LAMBDA {
      float* const at = tile_row(scores, block, j) + lane;
      float* const d_at = tile_row(d_scores, block, j) + lane;
      const VF score = hn::Load(d, at);
      const VF p = exp_difference(score, hn::Load(d, t.l + lane));
      const VF ds = hn::Mul(p, hn::Mul(hn::Sub(hn::Load(d, d_at), hn::Load(d, t.delta + lane)), times));
      // By selection: where a key is disallowed, dP and l may be anything.
      const auto disallowed = hn::Eq(score, hn::Set(d, -kInfinity));
      hn::Store(hn::IfThenZeroElse(disallowed, p), d, at);
      hn::Store(hn::IfThenZeroElse(disallowed, ds), d, d_at);
    });
  }
}

/// d_bias += dS, by rows of queries; where one row of the bias is for all queries, their sum.
template <class T>
void add_bias_gradient(const BackwardTile<T>& t, const KeyBlock& block, const float* d_scores) {
  const MatrixView<float>& d_bias = t.call.d_bias;
  for (const Segment& s : block.segments) {
    const int64_t first = s.first * kLanes, last = std::min(t.tile.count, s.last * kLanes);
    for (int64_t j = s.begin; j < s.end; ++j) {
      const float* const row = d_scores + (j - block.begin) * kTile;
      if (d_bias.row_stride == 0) {
        float sum = 0;
        for (int64_t n = first; n < last; ++n) sum += row[n];
        d_bias(0, j) += sum;
      } else {
        for (int64_t n = first; n < last; ++n) d_bias(t.tile.first + n, j) += row[n];
      }
    }
  }
}

/// The rest of the element-wise way back where there is more than scale and masks. On entry d_scores is dS.
template <class T>
void options_backward(const BackwardTile<T>& t, const KeyBlock& block, const float* cap_slope,
                      float* d_scores) {
  const DF d;
  const Head<T>& head = t.call.head;
  if (t.call.d_bias.data) add_bias_gradient(t, block, d_scores);
  const VF scale = hn::Set(d, head.scale);
  for (const Segment& s : block.segments) {
    for_vectors_of(s, [&](int64_t j, int64_t lane) REGARD_VECTOR_LAMBDA {
      float* const at = d_scores + (j - block.begin) * kTile + lane;
      VF ds = hn::Load(d, at);
      if (head.softcap > 0) {
        const VF masked =
            hn::IfThenZeroElse(hn::Eq(ds, hn::Zero(d)), hn::Load(d, cap_slope + (at - d_scores)));
        ds = hn::Mul(ds, masked);
      }
      hn::Store(hn::Mul(ds, scale), d, at);
    });
  }
}

/// C [keys, width] += P x for a tile p [keys, kTile] and rows x [queries, width].
template <class T>
void add_to_keys(const BackwardTile<T>& t, const KeyBlock& block, const float* p, Rows x, int64_t width,
                 const MatrixView<float>& c) {
  const auto vectors = static_cast<int>((width + kLanes - 1) / kLanes);
  for (const Segment& s : block.segments) {
    const int64_t first = s.first * kLanes, last = std::min(t.tile.count, s.last * kLanes);
    multiply({.a = p + (s.begin - block.begin) * kTile + first,
              .a_row = kTile,
              .a_step = 1,
              .b = x.data + first * x.stride,
              .b_step = x.stride,
              .n = last - first,
              .c = c.row(s.begin),
              .c_row = c.row_stride,
              .finish = Finish::add},
             s.end - s.begin, vectors);
  }
}

/// The same for the numbers of x that are not finite, only for keys that the query may attend to.
template <class T>
void add_infinite_to_keys(const BackwardTile<T>& t, const KeyBlock& block, const float* p,
                          const float* scores, Rows x, int64_t width, const MatrixView<float>& c) {
  for (const Segment& s : block.segments) {
    for (int64_t n = s.first * kLanes; n < std::min(t.tile.count, s.last * kLanes); ++n) {
      for (int64_t column = 0; column < width; ++column) {
        const float value = x.data[n * x.stride + column];
        if (std::isfinite(value)) continue;
        for (int64_t j = s.begin; j < s.end; ++j) {
          const int64_t at = (j - block.begin) * kTile + n;
          if (scores[at] != -kInfinity) c(j, column) += p[at] * value;
        }
      }
    }
  }
}

/// dQ, dK and dV of one block from P and dS. `saved` are its scores where masks and numbers that are not
/// finite meet.
template <class T>
void multiply_gradients(const BackwardTile<T>& t, const KeyBlock& block, Rows k, const float* p,
                        const float* ds, const float* saved, bool first, Workspace& w) {
  const int64_t D = t.call.head.q.columns, E = t.call.head.v.columns;
  const int64_t keys = block.end_key() - block.first_key(), queries = t.tile.count;
  if (!saved) {
    weighted_rows(t.tile, block, k, D, ds, nullptr, first, w.d_q.data());
    add_to_keys(t, block, p, t.d_o_rows, E, t.call.d_v);
    add_to_keys(t, block, ds, t.q_rows, D, t.call.d_k);
    return;
  }
  const Rows finite_k = finite_copy(k, keys, D, w.finite_rows);
  weighted_rows(t.tile, block, finite_k, D, ds, nullptr, first, w.d_q.data());
  add_infinite(block, k, D, ds, saved, w.d_q.data());
  const Rows finite_d_o = finite_copy(t.d_o_rows, queries, E, w.finite_rows);
  add_to_keys(t, block, p, finite_d_o, E, t.call.d_v);
  add_infinite_to_keys(t, block, p, saved, t.d_o_rows, E, t.call.d_v);
  const Rows finite_q = finite_copy(t.q_rows, queries, D, w.finite_rows);
  add_to_keys(t, block, ds, finite_q, D, t.call.d_k);
  add_infinite_to_keys(t, block, ds, saved, t.q_rows, D, t.call.d_k);
}

template <class T>
void backward_block(const BackwardTile<T>& t, const KeyBlock& block, bool first, Workspace& w) {
  const Head<T>& head = t.call.head;
  const int64_t begin = block.first_key(), keys = block.end_key() - begin, E = head.v.columns;
  float* const scores = w.scores.grow(kKeyBlock * kTile);
  float* const d_scores = w.d_scores.grow(kKeyBlock * kTile);
  float* const cap_slope = head.softcap > 0 ? w.cap_slope.grow(kKeyBlock * kTile) : nullptr;
  const Rows k = float_rows(head.k.row_range(begin, begin + keys), 1, w.k_rows);
  const Rows v = float_rows(head.v.row_range(begin, begin + keys), 1, w.v_rows);
  score_block(t.tile, block, t.q, k, w, scores, cap_slope);
  for (const Segment& s : block.segments) {
    const int64_t lane = s.first * kLanes;
    multiply({.a = v.data + (s.begin - begin) * v.stride,
              .a_row = v.stride,
              .a_step = 1,
              .b = t.d_o + lane,
              .b_step = kTile,
              .n = E,
              .c = tile_row(d_scores, block, s.begin) + lane,
              .c_row = kTile},
             s.end - s.begin, s.last - s.first);
  }
  const bool guarded =
      (!t.finite && t.tile.masked_keys(block).end > 0) || needs_guard(t.tile, block, k, head.k.columns);
  if (guarded) std::copy_n(scores, kKeyBlock * kTile, w.saved.grow(kKeyBlock * kTile));
  if (head.dropout.active()) apply_dropout(head.dropout, t.tile.first, block, d_scores);
  const bool plain = head.softcap == 0 && !t.call.d_bias.data;
  softmax_backward(t, block, plain ? head.scale : 1.f, scores, d_scores);
  if (!plain) options_backward(t, block, cap_slope, d_scores);
  if (head.dropout.active()) apply_dropout(head.dropout, t.tile.first, block, scores);
  clear_gaps(t.tile, block, d_scores);
  multiply_gradients(t, block, k, scores, d_scores, guarded ? w.saved.data() : nullptr, first, w);
}

template <class T>
void backward_tile(const BackwardHead<T>& call, int64_t first, int64_t count) {
  const Head<T>& head = call.head;
  const int64_t D = head.q.columns, E = head.v.columns;
  Workspace& w = workspace();
  float* const q = w.q.grow(std::max<int64_t>(1, D * kTile));
  float* const d_o = w.d_o.grow(std::max<int64_t>(1, E * kTile));
  float* const d_q = w.d_q.grow(std::max<int64_t>(1, D * kTile));
  const auto q_part = head.q.row_range(first, first + count),
             d_o_part = call.d_out.row_range(first, first + count);
  to_tile(q_part, head.scale, q);
  to_tile(d_o_part, 1.f, d_o);
  BackwardTile<T> t{.call = call,
                    .tile = {head, first, count},
                    .q = q,
                    .d_o = d_o,
                    .q_rows = float_rows(q_part, kLanes, w.q_rows),
                    .d_o_rows = float_rows(d_o_part, kLanes, w.d_o_rows),
                    .finite = true,
                    .l = {},
                    .delta = {}};
  t.finite = all_finite(t.q_rows, count, D) && all_finite(t.d_o_rows, count, E);
  set_statistics(t);
  bool first_block = true;
  KeyBlocks(head, first, count, kLanes, w.segments).for_each([&](const KeyBlock& block) {
    backward_block(t, block, first_block, w);
    first_block = false;
  });
  if (first_block) std::fill_n(d_q, D * kTile, 0.f);
  alignas(64) float ones[kTile];
  std::fill_n(ones, kTile, 1.f);
  from_tile(d_q, ones, call.d_q.row_range(first, first + count));
}

template <class T>
void backward_on_target(const BackwardHead<T>& call) {
  const Tiles tiles(call.head.q.rows, call.head.blocks ? *call.head.blocks : BlockSparse{});
  for (int64_t n = 0; n < tiles.count(); ++n) {
    const auto [first, last] = tiles.queries(n);
    if (first < last) backward_tile(call, first, last - first);
  }
}

void backward_f32(const BackwardHead<float>& call) { backward_on_target(call); }
void backward_bf16(const BackwardHead<BFloat16>& call) { backward_on_target(call); }

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::attention {

HWY_EXPORT(backward_f32);
HWY_EXPORT(backward_bf16);

void backward_head(const BackwardHead<float>& call) { HWY_DYNAMIC_DISPATCH(backward_f32)(call); }
void backward_head(const BackwardHead<BFloat16>& call) { HWY_DYNAMIC_DISPATCH(backward_bf16)(call); }

}  // namespace regard::attention
#endif  // HWY_ONCE
