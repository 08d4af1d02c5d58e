// What one to four rows of decoding do with the keys and values that they share, compiled once for each
// instruction set; included by decode_f32.cc alone, after hwy/foreach_target.h.
//
// A row's bits are the same in every tile. A score is one chain of multiply-adds over the columns in each
// lane, then one tree of additions. Blocks and groups of N keys count from the cache's beginning: a block's
// maximum comes first, its sum of exponentials is one chain for each j % N, its sum of values one chain over
// the keys.

#if defined(REGARD_ATTENTION_DECODE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_DECODE_TILE_INL_H_
#undef REGARD_ATTENTION_DECODE_TILE_INL_H_
#else
#define REGARD_ATTENTION_DECODE_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "regard/attention/decode_f32.h"
#include "regard/attention/decode_rows-inl.h"
#include "regard/simd/math-inl.h"
#include "regard/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

namespace sn = regard::simd::HWY_NAMESPACE;

constexpr int64_t kBlock = 512;        // keys that share a maximum and are summed before they join the state
constexpr int64_t kAheadBytes = 4096;  // about that much from the rows that are read to those fetched
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A block of keys in a tile: scored, exponentiated, its values added.
template <int64_t R, class T>
struct Block {
  static constexpr int64_t kGroups = kBlock / N;
  HWY_ALIGN float p[R * kBlock];  // scores, then exp(s - m): packed, R vectors for each group of N keys
  HWY_ALIGN float largest[N];     // packed, not over keys yet
  HWY_ALIGN float shift[N];       // packed: m, or 0 for -infinity
  HWY_ALIGN float rescale[N];     // packed: of what the state held before
  HWY_ALIGN float sums[R * N];    // sum of p, packed, not over keys yet: vector v of every group
  const T *keys[2 * kGroups], *values[2 * kGroups];  // first rows of groups, of evenly spaced ones
  int64_t first = 0;                                 // position of the first key, a multiple of kBlock
  int64_t begin[R] = {}, end[R] = {};                // the keys that a row may attend to
  int64_t any_begin = 0, any_end = 0;                // for some row
  int64_t whole_begin = 0;  // the first group that all rows may attend to and that is evenly spaced
  uint64_t whole_keys = 0;  // of such groups

  bool empty() const { return any_begin >= any_end; }
  /// Of the group that begins at key j.
  bool has(int64_t j) const { return any_begin < j + N && j < any_end; }
  bool whole(int64_t j) const { return static_cast<uint64_t>(j - whole_begin) < whole_keys; }
  float* group(int64_t j) { return p + (j - first) * R; }
};

/// R consecutive rows of a part. All keys of a block are scored before its values are added: memory is read
/// as one stream at a time. A group's exponentials are computed while the values of the group before are
/// added, so that nothing is waited for.
template <int64_t R, class Reader>
class Tile {
  using T = typename Reader::Element;
  static constexpr int64_t K = N / R;

 public:
  Tile(const DecodePart<T>& part, int64_t row)
      : part_(part),
        q_(part.q + row * part.q_slots),
        states_(part.states + row * decode_state_size(part.o_slots)),
        ahead_(groups_ahead(part)),
        even_(Reader::kSideBySide && (!part.keys.table || part.keys.page_size % N == 0)) {
    for (int64_t r = 0; r < R; ++r) {
      query_[r] = (row + r) % part.queries;
      begin_[r] = part.band.begin(query_[r]);
      end_[r] = part.band.end(query_[r]);
      const float slope = part.slopes ? part.slopes[(row + r) / part.queries] : 0;
      std::fill_n(slopes_ + r * K, K, slope);
      std::fill_n(m_ + r * K, K, state(r)[0]);
      std::fill_n(l_ + r * K, K, state(r)[1]);
      biased_ = biased_ || slope != 0;
    }
  }

  /// Attends to the keys of positions [begin, end), `begin` a multiple of kBlock or the part's.
  void run(int64_t begin, int64_t end) {
    Block<R, T> b;
    for (int64_t first = begin / kBlock * kBlock; first < end; first += kBlock) {
      open(b, first, begin, end);
      for (int64_t j = first; j < first + kBlock && j < end; j += N) score(b, j);
      join_largest(b);
      if (b.empty()) continue;
      if (b.has(first)) exponentiate(b, first);
      for (int64_t j = first; j < first + kBlock && j < end; j += N) {
        if (b.has(j + N)) exponentiate(b, j + N);
        add_values(b, j);
      }
      join_values(b);
      join_sums(b);
    }
    for (int64_t r = 0; r < R; ++r) state(r)[0] = m_[r * K], state(r)[1] = l_[r * K];
  }

 private:
  /// Groups from the one that is read to the one that is fetched.
  static int64_t groups_ahead(const DecodePart<T>& part) {
    const auto bytes = static_cast<int64_t>(sizeof(T)) * std::max<int64_t>(1, std::max(part.D, part.Dv));
    return std::clamp((kAheadBytes / bytes + N - 1) / N, int64_t{1}, kBlock / N);
  }
  float* state(int64_t r) const { return states_ + r * decode_state_size(part_.o_slots); }

  void open(Block<R, T>& b, int64_t first, int64_t begin, int64_t end) const {
    b.first = first;
    int64_t all_begin = std::max(first, begin), all_end = std::min(first + kBlock, end);
    b.any_begin = first + kBlock;
    b.any_end = first;
    for (int64_t r = 0; r < R; ++r) {
      b.begin[r] = std::max({first, begin, begin_[r]});
      b.end[r] = std::min({first + kBlock, end, end_[r]});
      all_begin = std::max(all_begin, b.begin[r]);
      all_end = std::min(all_end, b.end[r]);
      if (b.begin[r] >= b.end[r]) continue;
      b.any_begin = std::min(b.any_begin, b.begin[r]);
      b.any_end = std::max(b.any_end, b.end[r]);
    }
    b.whole_begin = (all_begin + N - 1) / N * N;
    b.whole_keys = even_ ? static_cast<uint64_t>(std::max<int64_t>(0, all_end / N * N - b.whole_begin)) : 0;
    hn::Store(hn::Set(d, -kInfinity), d, b.largest);
    if (b.whole_keys == 0) return;
    list(part_.keys, first, b.keys);
    list(part_.values, first, b.values);
  }

  /// Writes where the groups of a block and `ahead_` more begin.
  void list(const CacheRows<T>& cache, int64_t first, const T** to) const {
    const int64_t groups = kBlock / N + ahead_;
    if (!cache.table) {  // what follows the part is fetched too: another part reads it
      const T* row = cache.row(first);
      for (int64_t i = 0; i < groups; ++i, row += N * cache.position_stride) to[i] = row;
      return;
    }
    const int64_t begin = part_.begin / N * N, last = (part_.end - 1) / N * N;
    for (int64_t i = 0; i < groups; ++i) to[i] = cache.row(std::clamp(first + i * N, begin, last));
  }
  /// The group of rows that begins at key j and is listed.
  Evenly<T> rows(const CacheRows<T>& cache, const T* const* listed, int64_t j) const {
    const T* const* const at = listed + j % kBlock / N;
    return {*at, cache.position_stride, at[ahead_] - *at};
  }

  HWY_INLINE void score(Block<R, T>& b, int64_t j) const {
    if constexpr (Reader::kSideBySide) {
      if (b.whole(j)) {
        if (part_.D % kStep<R, Reader> == 0)
          return score_group<true, true>(b, j, rows(part_.keys, b.keys, j));
        return score_whole(b, j);
      }
    }
    if (b.has(j)) score_edge(b, j);
  }
  HWY_NOINLINE void score_whole(Block<R, T>& b, int64_t j) const {
    score_group<true, false>(b, j, rows(part_.keys, b.keys, j));
  }
  HWY_NOINLINE void score_edge(Block<R, T>& b, int64_t j) const {
    const T* keys[N];
    for (int64_t i = 0; i < N; ++i) keys[i] = part_.keys.row(std::clamp(j + i, b.any_begin, b.any_end - 1));
    score_group<false, false>(b, j, Listed<T>{keys});
  }
  template <bool kWhole, bool kSteps, class Rows>
  HWY_INLINE void score_group(Block<R, T>& b, int64_t j, const Rows& keys) const {
    const Reader reader(part_.keys.column_stride);
    V largest = hn::Load(d, b.largest);
    float* const s = b.group(j);
    for (int64_t v = 0; v < R; ++v) {
      V x = products<R, kSteps>(reader, q_, part_.q_slots, keys.from(v * K), part_.D);
      if (part_.softcap > 0) {
        const V cap = hn::Set(d, part_.softcap);
        x = hn::Mul(cap, sn::Tanh(d, hn::Div(x, cap)));
      }
      if (biased_) x = biased(x, j + v * K);
      hn::Store(x, d, s + v * N);
      if (!kWhole) x = hide(b, j + v * K, s + v * N);
      largest = hn::Max(largest, x);
    }
    hn::Store(largest, d, b.largest);
  }
  /// ALiBi's bias on scores of K keys from position j on.
  HWY_INLINE V biased(V x, int64_t j) const {
    HWY_ALIGN float away[N];
    for (int64_t r = 0; r < R; ++r)
      for (int64_t i = 0; i < K; ++i)
        away[r * K + i] = static_cast<float>(std::abs(query_[r] + part_.band.offset - j - i));
    return hn::NegMulAdd(hn::Load(d, slopes_), hn::Load(d, away), x);
  }
  /// Makes scores of keys that a row may not attend to -infinity.
  HWY_INLINE V hide(const Block<R, T>& b, int64_t j, float* s) const {
    for (int64_t r = 0; r < R; ++r)
      for (int64_t i = 0; i < K; ++i)
        if (j + i < b.begin[r] || j + i >= b.end[r]) s[r * K + i] = -kInfinity;
    return hn::Load(d, s);
  }

  /// The block's largest scores join m, which its exponentials are taken from.
  HWY_INLINE void join_largest(Block<R, T>& b) {
    const auto larger = [](V x, V y) REGARD_VECTOR_LAMBDA { return hn::Max(x, y); };
    const V before = hn::Load(d, m_), m = hn::Max(before, over_keys<K>(hn::Load(d, b.largest), larger));
    hn::Store(m, d, m_);
    hn::Store(hn::IfThenElse(hn::Eq(m, hn::Set(d, -kInfinity)), hn::Zero(d), m), d, b.shift);
    const V rescale = sn::Exp(d, hn::Sub(before, m));
    hn::Store(hn::IfThenElse(hn::Eq(m, before), hn::Set(d, 1.f), rescale), d, b.rescale);
    for (int64_t v = 0; v < R; ++v) hn::Store(hn::Zero(d), d, b.sums + v * N);
  }

  HWY_INLINE void exponentiate(Block<R, T>& b, int64_t j) const {
    const V shift = hn::Load(d, b.shift);
    float* const p = b.group(j);
    REGARD_UNROLL
    for (int64_t v = 0; v < R; ++v) {
      const V e = sn::Exp(d, hn::Sub(hn::Load(d, p + v * N), shift));
      hn::Store(e, d, p + v * N);
      hn::Store(hn::Add(hn::Load(d, b.sums + v * N), e), d, b.sums + v * N);
    }
  }
  HWY_INLINE void join_sums(const Block<R, T>& b) {
    V sum[R];
    for (int64_t v = 0; v < R; ++v) sum[v] = hn::Load(d, b.sums + v * N);
    for (int64_t half = R / 2; half > 0; half /= 2)
      for (int64_t v = 0; v < half; ++v) sum[v] = hn::Add(sum[v], sum[v + half]);
    const auto add = [](V x, V y) REGARD_VECTOR_LAMBDA { return hn::Add(x, y); };
    hn::Store(hn::MulAdd(hn::Load(d, b.rescale), hn::Load(d, l_), over_keys<K>(sum[0], add)), d, l_);
  }

  HWY_INLINE void add_values(Block<R, T>& b, int64_t j) const {
    if constexpr (Reader::kSideBySide) {
      if (b.whole(j)) return add_group(b, j, rows(part_.values, b.values, j));
    }
    if (b.has(j)) add_edge(b, j);
  }
  HWY_INLINE void add_group(Block<R, T>& b, int64_t j, const Evenly<T>& values) const {
    constexpr int64_t kMost = std::max<int64_t>(1, most_sums(R) / Reader::kParts),
                      kColumns = Reader::kColumns;
    const Reader reader(part_.values.column_stride);
    const int64_t slots = part_.o_slots, stride = decode_state_size(slots), Dv = part_.Dv;
    float* const o = states_ + kDecodeStateHeader + slots;
    const float* const p = b.group(j);
    int64_t c = 0;
    for (; c + kMost * kColumns <= Dv; c += kMost * kColumns)
      add_columns<R, kMost>(reader, p, values, c, o, slots, stride);
    for (; c + kColumns <= Dv; c += kColumns) add_columns<R, 1>(reader, p, values, c, o, slots, stride);
    if (c < Dv) add_columns<R, 1>(Last<Reader>{reader, Dv - c}, p, values, c, o, slots, stride);
  }
  /// Row by row: the keys that it may attend to, alone.
  HWY_NOINLINE void add_edge(Block<R, T>& b, int64_t j) const {
    constexpr int64_t P = Reader::kParts;
    const Reader reader(part_.values.column_stride);
    const float* const p = b.group(j);
    for (int64_t r = 0; r < R; ++r) {
      float* const sums = state(r) + kDecodeStateHeader + part_.o_slots;
      for (int64_t i = std::max(b.begin[r], j) - j; i < std::min(b.end[r], j + N) - j; ++i) {
        const V weight = hn::Set(d, p[i / K * N + r * K + i % K]);
        const T* const row = part_.values.row(j + i);
        for (int64_t c = 0; c < part_.Dv; c += Reader::kColumns) {
          V value[P];
          if (c + Reader::kColumns <= part_.Dv)
            reader.load(row, c, value);
          else
            reader.tail(row, c, part_.Dv - c, value);
          REGARD_UNROLL
          for (int64_t u = 0; u < P; ++u) {
            float* const to = sums + c / P + u * (part_.o_slots / P);
            hn::StoreU(hn::MulAdd(weight, value[u], hn::LoadU(d, to)), d, to);
          }
        }
      }
    }
  }
  /// o = rescale o + the block's sum, which begins anew.
  void join_values(const Block<R, T>& b) const {
    for (int64_t r = 0; r < R; ++r) {
      if (b.begin[r] >= b.end[r]) continue;
      const V rescale = hn::Set(d, b.rescale[r * K]);
      float* const o = state(r) + kDecodeStateHeader;
      float* const sums = o + part_.o_slots;
      for (int64_t c = 0; c < part_.o_slots; c += N) {
        hn::StoreU(hn::MulAdd(rescale, hn::LoadU(d, o + c), hn::LoadU(d, sums + c)), d, o + c);
        hn::StoreU(hn::Zero(d), d, sums + c);
      }
    }
  }

  const DecodePart<T>& part_;
  const float* q_;
  float* states_;
  int64_t ahead_;  // groups from the one that is read to the one that is fetched
  bool even_, biased_ = false;
  int64_t query_[R], begin_[R], end_[R];     // the keys that a row may attend to
  HWY_ALIGN float slopes_[N], m_[N], l_[N];  // packed
};

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
