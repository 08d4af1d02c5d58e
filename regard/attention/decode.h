#pragma once
// Decoding: attention of one or few new queries on a long cache of keys and values, contiguous or in pages.
//
//   s_ij = scale q_i . k_j,   softcap tanh(s_ij / softcap),   - slope_h |i + offset - j|
//   p_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(sink_h)) over the keys that i may attend to,   o_i = sum_j p_ij
//   v_j
//
// The semantics are those of exact attention. A head's keys are cut into parts of 1,024 positions, which are
// attended to apart and merged in order (Dao et al. 2023, "Flash-Decoding"; Milakov and Gimelshein 2018,
// arXiv:1805.02867).
//
// Letters: B items, H heads of queries, Hkv heads of keys, T queries, S positions, D width of keys, E of
// values.

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "regard/attention/attention.h"
#include "regard/base/bfloat16.h"
#include "regard/base/span.h"
#include "regard/base/thread_pool.h"
#include "regard/base/view.h"

namespace regard::attention {

/// Positions of a cache that are attended to apart.
constexpr int64_t kDecodeSplit = 1024;

/// Keys and values of all items. Contiguous, without a table: page b holds item b. In pages: position j of
/// item b stands in page block_table(b, j / page size), at j % page size; pages may be shared and stand in
/// any order.
template <class T>
struct DecodeCache {
  View4<const T> keys;                      ///< [pages, Hkv, page size, D]
  View4<const T> values;                    ///< [pages, Hkv, page size, E]
  MatrixView<const int32_t> block_table{};  ///< [B, pages of an item], column stride 1, or no data
};

/// R is float, double for operands in double.
template <class R = float>
struct DecodeOptions {
  std::optional<double> scale{};           ///< default 1 / sqrt(D); 0 is 0
  double softcap = 0;                      ///< 0: none
  bool causal = false;                     ///< j <= i + offset
  Window window{};                         ///< about i + offset
  std::span<const int64_t> key_lengths{};  ///< [B], valid positions; empty: all that the cache has room for
  std::span<const int64_t> offsets{};  ///< [B]; empty: valid keys - T, the last query stands at the last key
  std::span<const R> alibi_slopes{};   ///< [H] or empty
  std::span<const R> sink{};           ///< [H] or empty, a score that takes weight and has no value
};

/// How many floats of scratch `decode` needs for these operands, whatever the options.
int64_t decode_scratch_size(const View4<const float>& q, const DecodeCache<float>& cache);
int64_t decode_scratch_size(const View4<const float>& q, const DecodeCache<BFloat16>& cache);

/// q [B, H, T, D] -> out [B, H, T, E] and, unless it has no data, log_sum_exp [B, H, T] (natural, with the
/// sink). Head h attends with head h / (H / Hkv) of the cache, which is read once for all of them.
///
/// A row without allowed keys gives 0 and log-sum-exp -infinity. Positions and pages that no query may attend
/// to are never read. Bits: a row's result depends on its own operands alone: not on threads, on the batch,
/// on other queries (a prompt decoded query by query gives the same), or on how the cache is laid out in
/// memory. Cost: a read of the keys and values that are attended to; 2 T (D + E) operations for each of them
/// and a head. With a scratch of decode_scratch_size nothing is allocated (a pool allocates its jobs). Safe
/// from several threads that have a scratch each. Throws ShapeError.
void decode(const View4<const float>& q, const DecodeCache<float>& cache, const View4<float>& out,
            const View3<float>& log_sum_exp, std::span<float> scratch,
            const DecodeOptions<float>& options = {}, ThreadPool* pool = nullptr);
/// The cache is stored in bfloat16; everything is computed in f32.
void decode(const View4<const float>& q, const DecodeCache<BFloat16>& cache, const View4<float>& out,
            const View3<float>& log_sum_exp, std::span<float> scratch,
            const DecodeOptions<float>& options = {}, ThreadPool* pool = nullptr);
/// f64, from the definition: accurate and slow; needs no scratch and does allocate.
void decode(const View4<const double>& q, const DecodeCache<double>& cache, const View4<double>& out,
            const View3<double>& log_sum_exp, const DecodeOptions<double>& options = {});

}  // namespace regard::attention
