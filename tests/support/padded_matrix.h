#pragma once

#include <cstdint>
#include <vector>

#include "regard/base/random.h"
#include "regard/base/span.h"

namespace regard::tests {

/// Standard normal numbers, the same for float and double.
template <class T>
std::vector<T> normals(int64_t n, uint64_t seed) {
  RandomStream random(seed, 3);
  std::vector<T> x(static_cast<size_t>(n));
  for (T& v : x) v = static_cast<T>(static_cast<float>(random.normal()));
  return x;
}

/// A matrix that begins one behind its memory, with rows `kPad` longer than their columns: nothing is
/// aligned, and what a kernel writes outside can be seen.
template <class T>
struct Padded {
  static constexpr int64_t kPad = 3;
  int64_t rows = 0, columns = 0;
  std::vector<T> data;

  Padded() : Padded(0, 0, T{0}) {}
  Padded(int64_t r, int64_t c, uint64_t seed)
      : rows(r), columns(c), data(normals<T>(r * (c + kPad) + 1, seed)) {}
  Padded(int64_t r, int64_t c, T fill)
      : rows(r), columns(c), data(static_cast<size_t>(r * (c + kPad) + 1), fill) {}
  MatrixView<T> view() { return {data.data() + 1, rows, columns, columns + kPad, 1}; }
  T& operator()(int64_t i, int64_t j) { return view()(i, j); }
};

}  // namespace regard::tests
