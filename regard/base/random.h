#pragma once
// Counter-based random numbers: a number is a function of (key, counter) alone,
// so it depends on no thread, tile or order.

#include <array>
#include <cstdint>
#include <utility>

namespace regard {

/// Philox4x32-10: four 32-bit words from a 128-bit counter and a 64-bit key.
/// Salmon, Moraes, Dror and Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// 64 well-mixed bits of a pair, to derive keys (SplitMix64's finaliser).
uint64_t mix(uint64_t a, uint64_t b);

/// A stream of numbers from (seed, stream); its whole state is the position, which may be read and set.
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint32_t next_u32();
  uint64_t next_u64();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Uniform in 0..n-1 without bias. REQUIRES n > 0.
  uint64_t below(uint64_t n);
  /// Standard normal (Box and Muller), two uniforms a number.
  double normal();

  uint64_t position() const { return position_; }
  void seek(uint64_t position) { position_ = position; }

 private:
  uint64_t seed_, stream_, position_ = 0;
};

/// Fisher and Yates' shuffle of [first, last).
template <class Iterator>
void shuffle(Iterator first, Iterator last, RandomStream& random) {
  for (auto n = static_cast<uint64_t>(last - first); n > 1; --n) {
    using std::swap;
    swap(first[static_cast<int64_t>(n - 1)], first[static_cast<int64_t>(random.below(n))]);
  }
}

}  // namespace regard
