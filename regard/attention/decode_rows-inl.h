// How decoding reads a cache and what it computes with N rows of it, compiled once for each instruction set;
// included by decode_f32.cc alone, after hwy/foreach_target.h.
//
// Packed: a vector that holds numbers of R rows of queries has K = N / R lanes for each of them, lane r K + i
// for key i.

#if defined(REGARD_ATTENTION_DECODE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_DECODE_ROWS_INL_H_
#undef REGARD_ATTENTION_DECODE_ROWS_INL_H_
#else
#define REGARD_ATTENTION_DECODE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "regard/base/bfloat16.h"
#include "regard/simd/math-inl.h"
#include "regard/simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> d;
using V = hn::Vec<decltype(d)>;
constexpr int64_t N = hn::MaxLanes(d);

/// Reads rows whose columns stand side by side: kColumns at a time, as kParts vectors. Part u of two holds
/// the columns of bfloat16 with c % 2 = u.
template <class T>
struct Dense {
  using Element = T;
  static constexpr bool kSideBySide = true;
  static constexpr int64_t kParts = sizeof(float) / sizeof(T), kColumns = kParts * N;
  explicit Dense(int64_t /*column_stride*/) {}

  HWY_INLINE void load(const T* row, int64_t column, V* to) const { widen(words(row + column), to); }
  /// The last `count` columns, zero behind them.
  HWY_INLINE void tail(const T* row, int64_t column, int64_t count, V* to) const {
#if HWY_TARGET <= HWY_AVX2  // there a masked load touches nothing else
    if (count % kParts == 0) {
      const auto* const from = reinterpret_cast<const uint32_t*>(row + column);
      return widen(hn::MaskedLoad(hn::FirstN(word, static_cast<size_t>(count / kParts)), word, from), to);
    }
#endif
    HWY_ALIGN T copy[kColumns] = {};
    for (int64_t i = 0; i < count; ++i) copy[i] = row[column + i];
    widen(words(copy), to);
  }

 private:
  static constexpr hn::RebindToUnsigned<hn::ScalableTag<float>> word{};
  using Words = hn::Vec<hn::RebindToUnsigned<hn::ScalableTag<float>>>;

  static HWY_INLINE Words words(const T* from) {
#if HWY_TARGET == HWY_SCALAR
    uint32_t one;
    std::memcpy(&one, from, sizeof one);
    return hn::Set(word, one);
#else
    return hn::LoadU(word, reinterpret_cast<const uint32_t*>(from));
#endif
  }
  static HWY_INLINE void widen(Words x, V* to) {
    if constexpr (kParts == 1) {
      to[0] = hn::BitCast(d, x);
    } else {
      to[0] = hn::BitCast(d, hn::ShiftLeft<16>(x));
      to[1] = hn::BitCast(d, hn::And(x, hn::Set(word, 0xFFFF0000u)));
    }
  }
};

/// Reads rows with any distance between columns.
template <class T>
struct Strided {
  using Element = T;
  static constexpr bool kSideBySide = false;
  static constexpr int64_t kParts = Dense<T>::kParts, kColumns = Dense<T>::kColumns;
  int64_t stride;
  explicit Strided(int64_t column_stride) : stride(column_stride) {}

  HWY_INLINE void load(const T* row, int64_t column, V* to) const { tail(row, column, kColumns, to); }
  HWY_INLINE void tail(const T* row, int64_t column, int64_t count, V* to) const {
    HWY_ALIGN T copy[kColumns] = {};
    for (int64_t i = 0; i < count; ++i) copy[i] = row[(column + i) * stride];
    Dense<T>(1).load(copy, 0, to);
  }
};

/// The same pointer, of which the compiler knows nothing. One that sees all addresses of an unrolled loop
/// keeps them, and what they point to, in more registers than there are.
template <class T>
HWY_INLINE T* opaque(T* pointer) {
  asm volatile("" : "+r"(pointer));
  return pointer;
}

/// A walk over rows at equal distances; what stands `ahead` behind a number that is read will be read soon.
template <class T>
struct Evenly {
  const T* row;
  int64_t stride, ahead;

  HWY_INLINE void next() { row = opaque(row + stride); }
  HWY_INLINE Evenly from(int64_t i) const { return {row + i * stride, stride, ahead}; }
  /// Asks for what will be read soon, once a cache line: the n-th vector of words behind `column`, where a
  /// cache line is taken to begin. Without a claim to stay (locality 0): a row is read once.
  HWY_INLINE void fetch(int64_t column, int64_t n) const {
    constexpr int64_t kBytes = N * static_cast<int64_t>(sizeof(float));
    if (n * kBytes % 64 == 0)
      __builtin_prefetch(row + (ahead + column) + n * kBytes / static_cast<int64_t>(sizeof(T)), 0, 0);
  }
};

/// A walk over rows anywhere.
template <class T>
struct Listed {
  const T* const* rows;
  const T* row = *rows;

  HWY_INLINE void next() { row = *++rows; }
  HWY_INLINE Listed from(int64_t i) const { return {rows + i}; }
  HWY_INLINE void fetch(int64_t, int64_t) const {}
};

/// Lane i of the result is the sum of x[i]'s lanes.
HWY_INLINE V sums_of_lanes(const V* x) {
#if HWY_TARGET == HWY_SCALAR
  return x[0];
#else
  const hn::Repartition<double, decltype(d)> pairs;
  const auto interleaved = [](V a, V b) REGARD_VECTOR_LAMBDA {
    return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  const auto four = [&](int64_t i) REGARD_VECTOR_LAMBDA {  // per block of 128 bits: the sums of four vectors
    const auto a = hn::BitCast(pairs, interleaved(x[i], x[i + 1]));
    const auto b = hn::BitCast(pairs, interleaved(x[i + 2], x[i + 3]));
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)),
                   hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)));
  };
#if HWY_TARGET <= HWY_AVX3
  const auto halves = [](V a, V b) REGARD_VECTOR_LAMBDA {
    return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
  };
  const V even = halves(four(0), four(8)), odd = halves(four(4), four(12));
  return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even),
                 hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even)));
#elif HWY_TARGET <= HWY_AVX2
  const V a = four(0), b = four(4);
  return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
#else
  return four(0);
#endif
#endif
}

/// Vectors of q that R rows hold beside N sums of products, and vectors of o for each of R rows.
constexpr int64_t most_q(int64_t R) { return N >= 16 ? (R == 4 ? 2 : 4) : 4 / R; }
constexpr int64_t most_sums(int64_t R) { return N >= 16 ? 4 : 4 / R; }

/// Reads the last columns of rows.
template <class Reader>
struct Last {
  using Element = typename Reader::Element;
  static constexpr int64_t kParts = Reader::kParts, kColumns = Reader::kColumns;
  const Reader& reader;
  int64_t count;

  HWY_INLINE void load(const Element* row, int64_t column, V* to) const {
    reader.tail(row, column, count, to);
  }
};

/// C loads of columns from c on: s_rj += q_r' k_j, one vector for each r and j.
template <int64_t R, int64_t C, class Reader, class Rows>
HWY_INLINE void add_products(const Reader& reader, const float* q, int64_t q_slots, Rows keys, int64_t c,
                             V* s) {
  constexpr int64_t K = N / R, P = Reader::kParts;
  V some_q[R][C * P];
  REGARD_UNROLL
  for (int64_t r = 0; r < R; ++r) {
    REGARD_UNROLL
    for (int64_t v = 0; v < C * P; ++v)
      some_q[r][v] = hn::LoadU(d, q + r * q_slots + c / P + v / P * N + v % P * (q_slots / P));
  }
  REGARD_UNROLL
  for (int64_t i = 0; i < K; ++i) {
    V key[C * P];
    REGARD_UNROLL
    for (int64_t n = 0; n < C; ++n) {
      keys.fetch(c, n);
      reader.load(keys.row, c + n * Reader::kColumns, key + n * P);
    }
    if (i + 1 < K) keys.next();
    REGARD_UNROLL
    for (int64_t v = 0; v < C * P; ++v) {
      REGARD_UNROLL
      for (int64_t r = 0; r < R; ++r) s[r * K + i] = hn::MulAdd(key[v], some_q[r][v], s[r * K + i]);
    }
  }
}

/// Columns that `products` of R rows reads at a time.
template <int64_t R, class Reader>
constexpr int64_t kStep = std::max<int64_t>(1, most_q(R) / Reader::kParts) * Reader::kColumns;

/// q_r' k_j of R rows and the first K of `keys`, packed. kSteps: D is a multiple of kStep, and the sums stay
/// in registers for want of other code.
template <int64_t R, bool kSteps, class Reader, class Rows>
HWY_INLINE V products(const Reader& reader, const float* q, int64_t q_slots, const Rows& keys, int64_t D) {
  constexpr int64_t kColumns = Reader::kColumns, kMost = kStep<R, Reader>;
  V s[N];
  REGARD_UNROLL
  for (int64_t i = 0; i < N; ++i) s[i] = hn::Zero(d);
  int64_t c = 0;
  for (; c + kMost <= D; c += kMost) add_products<R, kMost / kColumns>(reader, q, q_slots, keys, c, s);
  if constexpr (!kSteps) {
    for (; c + kColumns <= D; c += kColumns) add_products<R, 1>(reader, q, q_slots, keys, c, s);
    if (c < D) add_products<R, 1>(Last<Reader>{reader, D - c}, q, q_slots, keys, c, s);
  }
  return sums_of_lanes(s);
}

/// C loads of columns from c on: sum_r += sum_j p_rj v_j over the first N of `values`.
template <int64_t R, int64_t C, class Reader, class Rows>
HWY_INLINE void add_columns(const Reader& reader, const float* p, Rows values, int64_t c, float* sums,
                            int64_t slots, int64_t row_stride) {
  constexpr int64_t K = N / R, P = Reader::kParts;
  const auto at = [&](int64_t r, int64_t v) REGARD_VECTOR_LAMBDA {
    return sums + r * row_stride + c / P + v / P * N + v % P * (slots / P);
  };
  V sum[R][C * P];
  REGARD_UNROLL
  for (int64_t r = 0; r < R; ++r) {
    REGARD_UNROLL
    for (int64_t v = 0; v < C * P; ++v) sum[r][v] = hn::LoadU(d, at(r, v));
  }
  for (int64_t j = 0; j < N; j += K, p = opaque(p + N)) {
    REGARD_UNROLL
    for (int64_t i = 0; i < K; ++i) {
      V value[C * P];
      REGARD_UNROLL
      for (int64_t n = 0; n < C; ++n) {
        values.fetch(c, n);
        reader.load(values.row, c + n * Reader::kColumns, value + n * P);
      }
      values.next();
      REGARD_UNROLL
      for (int64_t r = 0; r < R; ++r) {
        const V weight = hn::Set(d, p[r * K + i]);
        REGARD_UNROLL
        for (int64_t v = 0; v < C * P; ++v) sum[r][v] = hn::MulAdd(weight, value[v], sum[r][v]);
      }
    }
  }
  REGARD_UNROLL
  for (int64_t r = 0; r < R; ++r) {
    REGARD_UNROLL
    for (int64_t v = 0; v < C * P; ++v) hn::StoreU(sum[r][v], d, at(r, v));
  }
}

/// In each lane, the result of `op` over the K lanes of its row; lanes far apart first.
template <int64_t K, class Op>
HWY_INLINE V over_keys(V x, [[maybe_unused]] const Op& op) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (K >= 16) x = op(x, hn::ConcatLowerUpper(d, x, x));
  if constexpr (K >= 8) x = op(x, hn::SwapAdjacentBlocks(x));
#endif
#if HWY_TARGET != HWY_SCALAR
  if constexpr (K >= 4) x = op(x, hn::Shuffle1032(x));
  if constexpr (K >= 2) x = op(x, hn::Shuffle2301(x));
#endif
  return x;
}

}  // namespace regard::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
