#include "regard/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "regard/base/error.h"
#include "tests/support/every_target.h"

namespace regard::gemm {
namespace {

using tests::on_every_target;

enum class Layout { plain, transposed, padded, padded_transposed, strided };

/// A matrix of random numbers in one of the layouts, NaN between its elements.
template <class T>
struct Matrix {
  std::vector<T> memory;
  MatrixView<T> view;

  Matrix(int64_t rows, int64_t columns, Layout layout, uint64_t seed) {
    const bool turned = layout == Layout::transposed || layout == Layout::padded_transposed;
    const int64_t padding = layout == Layout::padded || layout == Layout::padded_transposed ? 5 : 0;
    const int64_t step = layout == Layout::strided ? 3 : 1;
    const int64_t outer = turned ? columns : rows, inner = turned ? rows : columns;
    const int64_t stride = inner * step + padding;
    memory.assign(static_cast<size_t>(outer * stride), std::numeric_limits<T>::quiet_NaN());
    view = {memory.data(), outer, inner, stride, step};
    if (turned) view = view.transposed();
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<T> uniform(-1, 1);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) view(i, j) = uniform(random);
    }
  }
  MatrixView<const T> operator*() const { return view; }
};

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

template <class T>
struct Case {
  int64_t m, n, k;
  Layout a = Layout::plain, b = Layout::plain;
  bool accumulate = false, bias = false;
};

/// Every element against the sum in f64 (f64: long double),
/// within K roundings of the sum of absolute values; and nothing written beside C.
template <class T>
void check(const Case<T>& x) {
  SCOPED_TRACE("M " + std::to_string(x.m) + " N " + std::to_string(x.n) + " K " + std::to_string(x.k) +
               " layouts " + std::to_string(static_cast<int>(x.a)) + std::to_string(static_cast<int>(x.b)) +
               " accumulate " + std::to_string(x.accumulate) + " bias " + std::to_string(x.bias));
  const Matrix<T> a(x.m, x.k, x.a, 1), b(x.k, x.n, x.b, 2), bias(1, x.n, Layout::plain, 3);
  const Matrix<T> before(x.m, x.n, Layout::padded, 4);
  const Epilogue<T> epilogue{.accumulate = x.accumulate, .bias = x.bias ? bias.memory.data() : nullptr};
  Matrix<T> c = before, c_packed = before;
  c.view.data = c.memory.data();
  multiply(*a, *b, c.view, epilogue);
  c_packed.view.data = c_packed.memory.data();
  multiply(*a, Packed<T>(*b), c_packed.view, epilogue);
  ASSERT_TRUE(same_bits(c.memory, c_packed.memory)) << "packed differs";
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      const long double start = (x.accumulate ? (*before)(i, j) : T{0}) + (x.bias ? (*bias)(0, j) : T{0});
      long double sum = start, scale = std::abs(start) + 1;
      for (int64_t k = 0; k < x.k; ++k) {
        const long double product = static_cast<long double>((*a)(i, k)) * (*b)(k, j);
        sum += product;
        scale += std::abs(product);
      }
      const auto tolerance =
          scale * (std::min<int64_t>(x.k, 300) + 4) * std::numeric_limits<T>::epsilon() / 4;
      ASSERT_NEAR(static_cast<double>((*c)(i, j)), static_cast<double>(sum), static_cast<double>(tolerance))
          << "at " << i << ", " << j;
    }
    for (int64_t j = x.n; j < x.n + 5; ++j)
      ASSERT_TRUE(std::isnan(c.memory[i * (x.n + 5) + j])) << "row " << i;
  }
}

template <class T>
class Gemm : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Types);

TYPED_TEST(Gemm, ExactValues) {
  on_every_target([] {
    const std::vector<TypeParam> a{1, 2, 3, 4, 5, 6}, b{7, 8, 9, 10, 11, 12}, bias{100, 200};
    std::vector<TypeParam> c{-1, -2, -3, -4};
    const auto left = matrix(a.data(), 2, 3), right = matrix(b.data(), 3, 2);
    multiply(left, right, matrix(c.data(), 2, 2));
    EXPECT_EQ(c, (std::vector<TypeParam>{58, 64, 139, 154}));
    multiply(left, right, matrix(c.data(), 2, 2), {.accumulate = true, .bias = bias.data()});
    EXPECT_EQ(c, (std::vector<TypeParam>{216, 328, 378, 508}));
    multiply(left, right, matrix(c.data(), 2, 2), {.bias = bias.data()});
    EXPECT_EQ(c, (std::vector<TypeParam>{158, 264, 239, 354}));
  });
}

/// M = 6, K = 2, N = 1 among them (case 17 of python/tests/test_cases.py).
TYPED_TEST(Gemm, Shapes) {
  on_every_target([] {
    for (const int64_t m : {0, 1, 2, 5, 6, 7, 13, 25}) {
      for (const int64_t n : {0, 1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 129, 200}) {
        for (const int64_t k : {0, 1, 2, 7, 33}) check<TypeParam>({m, n, k});
      }
    }
  });
}

TYPED_TEST(Gemm, BlocksOfK) {
  on_every_target([] {
    for (const int64_t k : {255, 256, 257, 512, 515}) {
      check<TypeParam>({3, 70, k});
      check<TypeParam>({14, 70, k, Layout::transposed, Layout::transposed, true, true});
    }
  });
}

TYPED_TEST(Gemm, ChunksOfRows) {
  on_every_target([] {
    for (const int64_t m : {47, 48, 49, 96, 101}) {
      check<TypeParam>({m, 67, 40, Layout::transposed, Layout::plain, true, false});
      check<TypeParam>({m, 67, 40, Layout::strided, Layout::strided, false, true});
      check<TypeParam>({m, 67, 40, Layout::padded, Layout::padded});
    }
  });
}

TYPED_TEST(Gemm, GroupsOfColumns) {
  on_every_target([] {
    check<TypeParam>({8, 1030, 260, Layout::plain, Layout::transposed, false, true});
    check<TypeParam>({2, 1030, 260, Layout::plain, Layout::plain, true, true});
  });
}

TYPED_TEST(Gemm, LayoutsAndEpilogues) {
  const auto layouts = {Layout::plain, Layout::transposed, Layout::padded, Layout::padded_transposed,
                        Layout::strided};
  on_every_target([&] {
    for (const Layout a : layouts) {
      for (const Layout b : layouts) {
        for (const int64_t m : {1, 4, 9}) {
          for (const int64_t n : {5, 67}) {
            for (const bool accumulate : {false, true}) {
              for (const bool bias : {false, true}) check<TypeParam>({m, n, 19, a, b, accumulate, bias});
            }
          }
        }
      }
    }
  });
}

/// A row's bits are the same alone and in any batch, whatever the layout of A and B.
TYPED_TEST(Gemm, RowsAloneEqualRowsInABatch) {
  using T = TypeParam;
  on_every_target([] {
    const int64_t m = 101, n = 131, k = 300;
    const Matrix<T> a(m, k, Layout::plain, 1), b(k, n, Layout::padded, 2), bias(1, n, Layout::plain, 3);
    const Matrix<T> a2(m, k, Layout::transposed, 1), b2(k, n, Layout::transposed, 2);
    const Packed<T> packed(*b2);
    std::vector<T> all(m * n);
    multiply(*a, *b, matrix(all.data(), m, n), {.bias = bias.memory.data()});
    for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 11, 13, 48, 49, 100}) {
      for (int64_t first = 0; first + rows <= m; first += rows) {
        const std::vector<T> expected(all.begin() + first * n, all.begin() + (first + rows) * n);
        std::vector<T> part(rows * n);
        multiply((*a2).row_range(first, first + rows), *b, matrix(part.data(), rows, n),
                 {.bias = bias.memory.data()});
        ASSERT_TRUE(same_bits(part, expected)) << rows << " rows from " << first;
        multiply((*a).row_range(first, first + rows), *b2, matrix(part.data(), rows, n),
                 {.bias = bias.memory.data()});
        ASSERT_TRUE(same_bits(part, expected)) << rows << " rows from " << first << ", B transposed";
        multiply((*a).row_range(first, first + rows), packed, matrix(part.data(), rows, n),
                 {.bias = bias.memory.data()});
        ASSERT_TRUE(same_bits(part, expected)) << rows << " rows from " << first << ", packed";
      }
    }
  });
}

TYPED_TEST(Gemm, PackedSideBySide) {
  using T = TypeParam;
  on_every_target([] {
    const int64_t m = 7, k = 41;
    Packed<T> packed;
    std::vector<MatrixView<const T>> parts;
    std::vector<Matrix<T>> matrices;
    matrices.reserve(4);
    const std::vector<int64_t> widths{37, 0, 64, 90};
    for (size_t i = 0; i < widths.size(); ++i) {
      matrices.emplace_back(k, widths[i], i % 2 == 0 ? Layout::transposed : Layout::plain, i);
      parts.push_back(*matrices.back());
    }
    packed.pack(*Matrix<T>(100, 300, Layout::plain, 9));  // an earlier, larger pack leaves nothing behind
    packed.pack(parts);
    ASSERT_EQ(packed.rows(), k);
    ASSERT_EQ(packed.columns(), 191);
    const Matrix<T> a(m, k, Layout::plain, 5);
    std::vector<T> c(m * 191);
    multiply(*a, packed, matrix(c.data(), m, 191));
    int64_t first = 0;
    for (const MatrixView<const T>& b : parts) {
      std::vector<T> expected(m * 191);
      multiply(*a, b, MatrixView<T>{expected.data() + first, m, b.columns, 191, 1});
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = first; j < first + b.columns; ++j) ASSERT_EQ(c[i * 191 + j], expected[i * 191 + j]);
      }
      first += b.columns;
    }
  });
}

/// A column may have any column stride: it has only one column.
TYPED_TEST(Gemm, ResultInOneColumn) {
  on_every_target([] {
    const std::vector<TypeParam> a{1, 2, 3, 4, 5, 6}, b{1, 10};
    std::vector<TypeParam> c{-1, -1, -1};
    multiply(matrix(a.data(), 3, 2), matrix(b.data(), 2, 1), matrix(c.data(), 1, 3).transposed());
    EXPECT_EQ(c, (std::vector<TypeParam>{21, 43, 65}));
  });
}

/// K = 0: the bias, or C unchanged when accumulating.
TYPED_TEST(Gemm, NothingToSum) {
  const std::vector<TypeParam> bias{5, 6};
  std::vector<TypeParam> c{1, -0.0, 3, 4};
  const MatrixView<const TypeParam> a{nullptr, 2, 0, 0, 1}, b{nullptr, 0, 2, 2, 1};
  multiply(a, b, matrix(c.data(), 2, 2), {.accumulate = true});
  EXPECT_EQ(c, (std::vector<TypeParam>{1, 0, 3, 4}));
  EXPECT_TRUE(std::signbit(c[1]));
  multiply(a, b, matrix(c.data(), 2, 2), {.accumulate = true, .bias = bias.data()});
  EXPECT_EQ(c, (std::vector<TypeParam>{6, 6, 8, 10}));
  multiply(a, Packed<TypeParam>(b), matrix(c.data(), 2, 2), {.bias = bias.data()});
  EXPECT_EQ(c, (std::vector<TypeParam>{5, 6, 5, 6}));
  multiply(a, b, matrix(c.data(), 2, 2));
  EXPECT_EQ(c, (std::vector<TypeParam>{0, 0, 0, 0}));
}

TYPED_TEST(Gemm, NotANumberStaysInItsRowAndColumn) {
  using T = TypeParam;
  on_every_target([] {
    Matrix<T> a(9, 10, Layout::plain, 1), b(10, 70, Layout::plain, 2);
    a.view(3, 4) = std::numeric_limits<T>::quiet_NaN();
    b.view(0, 69) = std::numeric_limits<T>::infinity();
    std::vector<T> c(9 * 70);
    multiply(*a, *b, matrix(c.data(), 9, 70));
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < 70; ++j) EXPECT_EQ(std::isfinite(c[i * 70 + j]), i != 3 && j != 69);
    }
  });
}

TYPED_TEST(Gemm, Threads) {
  using T = TypeParam;
  const int64_t m = 30, n = 100, k = 270;
  const Matrix<T> a(m, k, Layout::plain, 1), b(k, n, Layout::transposed, 2);
  std::vector<std::vector<T>> results(4, std::vector<T>(m * n));
  std::vector<std::thread> threads;
  for (std::vector<T>& c : results) {
    threads.emplace_back([&] { multiply(*a, *b, matrix(c.data(), m, n)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<T>& c : results) EXPECT_TRUE(same_bits(c, results[0]));
}

TYPED_TEST(Gemm, WrongShapes) {
  using T = TypeParam;
  std::vector<T> memory(100);
  const auto view = [&](int64_t rows, int64_t columns) { return matrix(memory.data(), rows, columns); };
  const Packed<T> packed(view(3, 4));
  EXPECT_THROW(multiply(view(2, 3), view(4, 5), view(2, 5)), ShapeError);
  EXPECT_THROW(multiply(view(2, 3), view(3, 5), view(2, 4)), ShapeError);
  EXPECT_THROW(multiply(view(2, 3), view(3, 5), view(3, 5)), ShapeError);
  EXPECT_THROW(multiply(view(2, 3), view(3, 5), view(5, 2).transposed()), ShapeError);
  EXPECT_THROW(multiply(view(2, 4), packed, view(2, 4)), ShapeError);
  EXPECT_THROW(multiply(view(2, 3), packed, view(2, 3)), ShapeError);
  const std::vector<MatrixView<const T>> different{view(2, 3), view(3, 3)};
  EXPECT_THROW(Packed<T>().pack(different), ShapeError);
  try {
    multiply(view(2, 3), view(4, 5), view(2, 5));
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[gemm] A [2, 3] and B [4, 5] differ in K");
  }
}

TYPED_TEST(Gemm, EmptyPack) {
  Packed<TypeParam> packed;
  EXPECT_EQ(packed.rows(), 0);
  EXPECT_EQ(packed.columns(), 0);
  packed.pack(std::span<const MatrixView<const TypeParam>>());
  multiply(MatrixView<const TypeParam>{}, packed, MatrixView<TypeParam>{});
  EXPECT_EQ(packed.columns(), 0);
}

}  // namespace
}  // namespace regard::gemm
