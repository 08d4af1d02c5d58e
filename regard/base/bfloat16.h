#pragma once
// bfloat16, a format of storage: the upper half of an f32.

#include <bit>
#include <cstdint>

namespace regard {

/// A number in bfloat16. Kernels read it, compute in f32 and round once at the end.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  explicit BFloat16(float x) {
    const auto word = std::bit_cast<uint32_t>(x);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits =
        static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40u : (word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace regard
