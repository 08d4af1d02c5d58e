#pragma once
// The f32 kernel of decoding (Highway, dynamic dispatch): the queries of one head of keys over one part of
// its cache.

#include <algorithm>
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

  /// Writes the addresses of positions [begin, end).
  void addresses(int64_t begin, int64_t end, const T** to) const {
    if (!table) {
      for (int64_t j = begin; j < end; ++j) *to++ = data + j * position_stride;
      return;
    }
    for (int64_t j = begin; j < end;) {
      const int64_t page = j / page_size, page_begin = page * page_size;
      const T* first = data + table[page] * page_stride;
      for (const int64_t page_end = std::min(end, page_begin + page_size); j < page_end; ++j)
        *to++ = first + (j - page_begin) * position_stride;
    }
  }
};

/// `heads` x `queries` rows that share a head of keys; row r is query r % queries of head r / queries.
template <class T>
struct DecodePart {
  CacheRows<T> keys, values;
  int64_t D, Dv, heads, queries;
  const float* q;       ///< [heads, queries, q_stride], scaled, zero behind D up to a whole vector
  const float* slopes;  ///< [heads], ALiBi's, or null
  float softcap;        ///< 0: none
  Band band;            ///< which keys query t of the item may attend to
  int64_t begin, end;   ///< the part: positions
  /// [heads, queries, state_stride]. A row's state: the largest score m, l = sum_j exp(s_j - m) and, from
  /// kDecodeStateHeader on, o = sum_j exp(s_j - m) v_j. Nothing attended to: -infinity, 0, 0.
  float* states;
  int64_t q_stride, state_stride;
};

constexpr int64_t kDecodeStateHeader = 16;  ///< floats before o in a state

void decode_part(const DecodePart<float>& part);
void decode_part(const DecodePart<BFloat16>& part);

}  // namespace regard::attention
