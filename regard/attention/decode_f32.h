#pragma once
// The f32 kernel of decoding (Highway, dynamic dispatch): the queries of one head of keys over one part of
// its cache.

#include <cstdint>

#include "regard/attention/problem.h"
#include "regard/base/bfloat16.h"

namespace regard::attention {

/// Rows of a cache, in pages: position j stands in page table[j / page_size] (table null: one page, the
/// first).
template <class T>
struct CacheRows {
  const T* data;
  const int32_t* table;
  int64_t page_size, page_stride, position_stride, column_stride;

  const T* row(int64_t j) const {
    if (!table) return data + j * position_stride;
    return data + table[j / page_size] * page_stride + j % page_size * position_stride;
  }
};

/// `heads` x `queries` rows that share a head of keys; row r is query r % queries of head r / queries.
template <class T>
struct DecodePart {
  CacheRows<T> keys, values;
  int64_t D, Dv, heads, queries;
  const float* q;       ///< [heads, queries, q_slots], scaled, zero where no column stands
  const float* slopes;  ///< [heads], ALiBi's, or null
  float softcap;        ///< 0: none
  Band band;            ///< which keys query t of the item may attend to
  int64_t begin, end;   ///< the part: positions
  /// [heads, queries, decode_state_size]. A row's state: the largest score m, l = sum_j exp(s_j - m), room
  /// for a number and, from kDecodeStateHeader on, o = sum_j exp(s_j - m) v_j in o_slots, then twice as many
  /// of scratch. Nothing attended to: -infinity, 0, 0.
  float* states;
  int64_t q_slots, o_slots;
};

constexpr int64_t kDecodeStateHeader = 16;  ///< floats before o in a state
constexpr int64_t decode_state_size(int64_t o_slots) { return kDecodeStateHeader + 2 * o_slots; }

/// Numbers of the cache in a word of 32 bits: two of bfloat16.
template <class T>
constexpr int64_t kDecodeParts = sizeof(float) / sizeof(T);

/// Rows of q and o are whole vectors of any instruction set. The cache is read in words: even columns of
/// bfloat16 come first, then, from the middle on, the odd ones.
template <class T>
constexpr int64_t decode_slots(int64_t columns) {
  constexpr int64_t kLanes = 16, kWhole = kDecodeParts<T> * kLanes;
  return (columns + kWhole - 1) / kWhole * kWhole;
}
/// Where a column stands.
template <class T>
constexpr int64_t decode_slot(int64_t column, int64_t slots) {
  return column / kDecodeParts<T> + column % kDecodeParts<T> * (slots / kDecodeParts<T>);
}

void decode_part(const DecodePart<float>& part);
void decode_part(const DecodePart<BFloat16>& part);

}  // namespace regard::attention
