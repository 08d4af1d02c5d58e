// Decoding in f32: the rows that share a head of keys, in tiles of up to four, over one part of the cache.

#include "regard/attention/decode_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "regard/attention/decode_f32.cc"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "regard/attention/decode_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::attention::HWY_NAMESPACE {

constexpr int64_t kMostRows = N >= 16 ? 4 : N >= 4 ? 2 : 1;  // of a tile
/// Keys that tiles attend to in turns: they stay in the second-level cache.
constexpr int64_t kShared = kBlock;

template <class T>
void clear_states(const DecodePart<T>& part) {
  for (int64_t r = 0; r < part.heads * part.queries; ++r) {
    float* state = part.states + r * decode_state_size(part.o_slots);
    std::fill_n(state, decode_state_size(part.o_slots), 0.f);
    state[0] = -kInfinity;
  }
}

template <int64_t R, class Reader, class T = typename Reader::Element>
HWY_NOINLINE void run_tile(const DecodePart<T>& part, int64_t row, int64_t begin, int64_t end) {
  Tile<R, Reader>(part, row).run(begin, end);
}

template <class Reader, class T = typename Reader::Element>
HWY_INLINE void run(const DecodePart<T>& part) {
  clear_states(part);
  const int64_t rows = part.heads * part.queries, span = rows > kMostRows ? kShared : part.end;
  for (int64_t begin = part.begin, end; begin < part.end; begin = end) {
    end = std::min((begin / span + 1) * span, part.end);
    for (int64_t row = 0; row < rows;) {
      if constexpr (kMostRows >= 4) {
        if (rows - row >= 4) {
          run_tile<4, Reader>(part, row, begin, end);
          row += 4;
          continue;
        }
      }
      if constexpr (kMostRows >= 2) {
        if (rows - row >= 2) {
          run_tile<2, Reader>(part, row, begin, end);
          row += 2;
          continue;
        }
      }
      run_tile<1, Reader>(part, row, begin, end);
      ++row;
    }
  }
}

template <class T>
HWY_INLINE void choose_reader(const DecodePart<T>& part) {
  const bool side_by_side =
      (part.D <= 1 || part.keys.column_stride == 1) && (part.Dv <= 1 || part.values.column_stride == 1);
  if (side_by_side)
    run<Dense<T>>(part);
  else
    run<Strided<T>>(part);
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
