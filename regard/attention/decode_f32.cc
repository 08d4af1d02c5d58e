// Decoding in f32. Keys are read once for all rows that share them, in blocks that fit the first-level cache.
// Scores are computed for as many keys at a time as a vector has lanes: one accumulator a key, then a tree of
// additions that transposes them into one vector. Values are summed in four sets of accumulators.

#include "regard/attention/decode_f32.h"

#include <cmath>
#include <limits>

#include "regard/simd/unroll.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/attention/decode_f32.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/attention/decode_rows-inl.h"
#include "regard/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

namespace sn = regard::simd::HWY_NAMESPACE;

constexpr int64_t kBlock = 128;  // keys that share a maximum and are summed before they join the state
constexpr int64_t kSumVectors = N >= 16 ? 4 : 2;  // vectors of columns times four sets of accumulators
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// q' k_i for the first N keys of `keys`, one a lane. Key after key, so that memory is read in order.
/// Decoding waits for memory, and the processor's own prefetching leaves a part of its bandwidth unused:
/// `kFetch` asks for the rows that come soon.
template <bool kFetch, class Reader, class Rows>
HWY_INLINE V products(const Reader& reader, const float* q, const Rows& keys, int64_t D) {
  constexpr int64_t kChunk = 4;
  V s[N];
  REGARD_UNROLL
  for (int64_t i = 0; i < N; ++i) s[i] = hn::Zero(d);
  int64_t c = 0;
  for (; c + kChunk * N <= D; c += kChunk * N) {
    V some_q[kChunk];
    REGARD_UNROLL
    for (int64_t v = 0; v < kChunk; ++v) some_q[v] = hn::LoadU(d, q + c + v * N);
    REGARD_UNROLL
    for (int64_t i = 0; i < N; ++i) {
      const auto* const key = keys[i];
      REGARD_UNROLL
      for (int64_t v = 0; v < kChunk; ++v) {
        if (kFetch) reader.fetch(keys.soon(i), c, v);
        s[i] = hn::MulAdd(reader.load(key, c + v * N), some_q[v], s[i]);
      }
    }
  }
  for (; c + N <= D; c += N) {
    const V one_q = hn::LoadU(d, q + c);
    REGARD_UNROLL
    for (int64_t i = 0; i < N; ++i) s[i] = hn::MulAdd(reader.load(keys[i], c), one_q, s[i]);
  }
  if (c < D) {
    const V one_q = hn::LoadU(d, q + c);
    for (int64_t i = 0; i < N; ++i) s[i] = hn::MulAdd(reader.tail(keys[i], c, D - c), one_q, s[i]);
  }
  return sums_of_lanes(s);
}

/// What turns products into scores.
struct ScoreTerms {
  float softcap;     // 0: none
  float slope;       // 0: none
  int64_t distance;  // of the first key from the query's position

  HWY_INLINE V operator()(V x, int64_t j) const {
    if (softcap > 0) {
      const V cap = hn::Set(d, softcap);
      x = hn::Mul(cap, sn::Tanh(d, hn::Div(x, cap)));
    }
    if (slope != 0) {
      const V away = hn::Add(hn::Set(d, static_cast<float>(distance + j)), hn::Iota(d, 0.f));
      x = hn::NegMulAdd(hn::Set(d, slope), hn::Abs(away), x);
    }
    return x;
  }
};

/// Writes the scores of `count` <= kBlock keys, -infinity behind them up to a whole vector; returns the
/// largest.
template <bool kFetch, class Reader, class Rows>
HWY_INLINE float scores(const Reader& reader, const float* q, const Rows& keys, int64_t count, int64_t D,
                        const ScoreTerms& terms, float* s) {
  const V lowest = hn::Set(d, -kInfinity);
  V largest = lowest;
  int64_t j = 0;
  for (; j + N <= count; j += N) {
    const V x = terms(products<kFetch>(reader, q, keys.from(j), D), j);
    largest = hn::Max(largest, x);
    hn::StoreU(x, d, s + j);
  }
  if (j < count) {
    const typename Reader::Element* last[N];  // the last one repeated
    for (int64_t i = 0; i < N; ++i) last[i] = keys[std::min(j + i, count - 1)];
    V x = terms(products<false>(reader, q, Listed<typename Reader::Element>{last}, D), j);
    x = hn::IfThenElse(hn::Lt(hn::Iota(d, 0.f), hn::Set(d, static_cast<float>(count - j))), x, lowest);
    largest = hn::Max(largest, x);
    hn::StoreU(x, d, s + j);
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

/// s = exp(s - m) for `count` scores; returns their sum.
HWY_INLINE float exponentials(float* s, int64_t count, float m) {
  const V shift = hn::Set(d, m == -kInfinity ? 0.f : m);
  V sum = hn::Zero(d);
  for (int64_t j = 0; j < count; j += N) {
    const V e = sn::Exp(d, hn::Sub(hn::LoadU(d, s + j), shift));
    sum = hn::Add(sum, e);
    hn::StoreU(e, d, s + j);
  }
  return sn::sum(d, sum);
}

/// A block of keys that a row has scored; their values are still to be added to its state.
template <class Rows>
struct Scored {
  HWY_ALIGN float p[kBlock];
  Rows values{};
  int64_t count = 0;
  bool fetch = false;
  float largest = 0, rescale = 1;
  float* state = nullptr;

  /// Turns scores into exp(s - m) and moves the state's maximum.
  HWY_INLINE void join_state() {
    const float m = state[0] > largest ? state[0] : largest;
    rescale = m == state[0] ? 1.f : std::exp(state[0] - m);
    state[1] = rescale * state[1] + exponentials(p, count, m);
    state[0] = m;
  }
};

/// o = rescale o + sum_j p_j v_j over kVectors vectors of columns, which `load(j, v)` reads.
template <int64_t kVectors, class Rows, class Load>
HWY_INLINE void add_columns(const Scored<Rows>& scored, float* o, const Load& load) {
  V a[4][kVectors];
  REGARD_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) a[0][v] = a[1][v] = a[2][v] = a[3][v] = hn::Zero(d);
  const auto add = [&](V(&set)[kVectors], int64_t j) REGARD_VECTOR_LAMBDA {
    const V weight = hn::Set(d, scored.p[j]);
    REGARD_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) set[v] = hn::MulAdd(weight, load(j, v), set[v]);
  };
  int64_t j = 0;
  for (; j + 4 <= scored.count; j += 4) {
    add(a[0], j);
    add(a[1], j + 1);
    add(a[2], j + 2);
    add(a[3], j + 3);
  }
  if (j < scored.count) add(a[0], j);
  if (j + 1 < scored.count) add(a[1], j + 1);
  if (j + 2 < scored.count) add(a[2], j + 2);
  const V keep = hn::Set(d, scored.rescale);
  REGARD_UNROLL
  for (int64_t v = 0; v < kVectors; ++v) {
    const V sum = hn::Add(hn::Add(a[0][v], a[1][v]), hn::Add(a[2][v], a[3][v]));
    hn::StoreU(hn::MulAdd(keep, hn::LoadU(d, o + v * N), sum), d, o + v * N);
  }
}

/// The same over all columns; o has room for whole vectors.
template <bool kFetch, class Reader, class Rows>
HWY_INLINE void add_values(const Reader& reader, const Scored<Rows>& scored, int64_t Dv) {
  const Rows& values = scored.values;
  float* o = scored.state + kDecodeStateHeader;
  int64_t c = 0;
  for (; c + kSumVectors * N <= Dv; c += kSumVectors * N)
    add_columns<kSumVectors>(scored, o + c, [&](int64_t j, int64_t v) REGARD_VECTOR_LAMBDA {
      if (kFetch) reader.fetch(values.soon(j), c, v);
      return reader.load(values[j], c + v * N);
    });
  for (; c + N <= Dv; c += N)
    add_columns<1>(scored, o + c,
                   [&](int64_t j, int64_t) REGARD_VECTOR_LAMBDA { return reader.load(values[j], c); });
  if (c < Dv)
    add_columns<1>(scored, o + c, [&](int64_t j, int64_t) REGARD_VECTOR_LAMBDA {
      return reader.tail(values[j], c, Dv - c);
    });
}

template <class T>
void clear_states(const DecodePart<T>& part) {
  for (int64_t r = 0; r < part.heads * part.queries; ++r) {
    float* state = part.states + r * part.state_stride;
    std::fill(state, state + part.state_stride, 0.f);
    state[0] = -kInfinity;
  }
}

/// A cache in one page.
template <class T>
struct OnePage {
  using Rows = Evenly<T>;
  const DecodePart<T>& part;

  void move(int64_t, int64_t) {}
  HWY_INLINE Rows keys(int64_t j) const {
    return {part.keys.data + j * part.keys.position_stride, part.keys.position_stride,
            std::max<int64_t>(1, part.D)};
  }
  HWY_INLINE Rows values(int64_t j) const {
    return {part.values.data + j * part.values.position_stride, part.values.position_stride,
            std::max<int64_t>(1, part.Dv)};
  }
};

/// A cache in many pages: the addresses of a block's rows and of those that are fetched behind it.
template <class T>
struct ManyPages {
  using Rows = Listed<T>;
  const DecodePart<T>& part;
  int64_t first = 0;
  int turn = 0;
  const T *key_rows[kBlock + kAhead] = {}, *value_rows[2][kBlock + kAhead] = {};

  void move(int64_t to, int64_t end) {
    first = to;
    turn = 1 - turn;  // the values of the block before are still in use
    list(part.keys, to, end, key_rows);
    list(part.values, to, end, value_rows[turn]);
  }
  HWY_INLINE Rows keys(int64_t j) const { return {key_rows + (j - first)}; }
  HWY_INLINE Rows values(int64_t j) const { return {value_rows[turn] + (j - first)}; }

  void list(const CacheRows<T>& cache, int64_t to, int64_t end, const T** rows) const {
    const int64_t known = std::min(end + kAhead, part.end);
    cache.addresses(to, known, rows);
    std::fill(rows + (known - to), rows + (end - to) + kAhead, rows[known - to - 1]);
  }
};

template <class Reader, class Rows>
HWY_INLINE void add_values(const Reader& reader, const Scored<Rows>& scored, int64_t Dv) {
  if (scored.fetch)
    add_values<true>(reader, scored, Dv);
  else
    add_values<false>(reader, scored, Dv);
}

/// Block after block of the part, and row after row. A block's values are added after the next block's scores
/// have been computed, so that no exponential is waited for. The first row of a block also fetches what comes
/// next.
template <class Reader, class Pages, class T = typename Reader::Element>
HWY_INLINE void run(const DecodePart<T>& part, Pages& pages) {
  const Reader key_reader(part.keys.column_stride), value_reader(part.values.column_stride);
  clear_states(part);
  Scored<typename Pages::Rows> scored[2];
  int64_t turn = 0;
  for (int64_t first = part.begin, last; first < part.end; first = last) {
    last = std::min((first / kBlock + 1) * kBlock, part.end);  // blocks count from the cache's beginning
    pages.move(first, last);
    bool fetch = true;
    for (int64_t r = 0; r < part.heads * part.queries; ++r) {
      const int64_t h = r / part.queries, t = r % part.queries;
      const int64_t begin = std::max(first, part.band.begin(t)), end = std::min(last, part.band.end(t));
      if (begin >= end) continue;
      auto &now = scored[turn % 2], &before = scored[(turn + 1) % 2];
      now.values = pages.values(begin);
      now.count = end - begin;
      now.fetch = fetch;
      now.state = part.states + r * part.state_stride;
      const ScoreTerms terms{part.softcap, part.slopes ? part.slopes[h] : 0.f, begin - t - part.band.offset};
      const float* q = part.q + r * part.q_stride;
      now.largest = fetch ? scores<true>(key_reader, q, pages.keys(begin), now.count, part.D, terms, now.p)
                          : scores<false>(key_reader, q, pages.keys(begin), now.count, part.D, terms, now.p);
      if (turn > 0) add_values(value_reader, before, part.Dv);
      now.join_state();
      fetch = false;
      ++turn;
    }
  }
  if (turn > 0) add_values(value_reader, scored[(turn + 1) % 2], part.Dv);
}

template <class T>
HWY_INLINE void choose_reader(const DecodePart<T>& part) {
  const bool side_by_side =
      (part.D <= 1 || part.keys.column_stride == 1) && (part.Dv <= 1 || part.values.column_stride == 1);
  OnePage<T> one_page{part};
  ManyPages<T> many_pages{part};
  if (side_by_side && !part.keys.table)
    run<Dense<T>>(part, one_page);
  else if (side_by_side)
    run<Dense<T>>(part, many_pages);
  else
    run<Strided<T>>(part, many_pages);
}

void part_f32(const DecodePart<float>& part) { choose_reader(part); }
void part_bf16(const DecodePart<BFloat16>& part) { choose_reader(part); }

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard::attention {

HWY_EXPORT(part_f32);
HWY_EXPORT(part_bf16);

void decode_part(const DecodePart<float>& part) { HWY_DYNAMIC_DISPATCH(part_f32)(part); }
void decode_part(const DecodePart<BFloat16>& part) { HWY_DYNAMIC_DISPATCH(part_bf16)(part); }

}  // namespace regard::attention
#endif  // HWY_ONCE
