#include "regard/tensor/tensor.h"

#include <gtest/gtest.h>

#include "regard/tensor/pool.h"

namespace regard {
namespace {

TEST(Tensor, ShapesValuesAndViews) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(x.dim(-1), 3);
  EXPECT_EQ(x.as_matrix<float>()(1, 0), 4);
  const Tensor row = x.row_range(1, 2);
  row.data<float>()[0] = 7;
  EXPECT_EQ(x.values<float>()[3], 7);
  EXPECT_EQ(x.to(DType::f64).values<double>()[3], 7.0);
  EXPECT_EQ(x.reshaped({3, 2}).as_matrix<float>()(2, 1), 6);
}

TEST(Tensor, WrongUsesThrow) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_THROW(x.data<double>(), Error);
  EXPECT_THROW(x.reshaped({4}), ShapeError);
  EXPECT_THROW(x.row_range(1, 3), ShapeError);
  EXPECT_THROW(x.dim(2), ShapeError);
  EXPECT_THROW(Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  EXPECT_THROW(Tensor::from<float>({2}, {1.0f}), ShapeError);
}

TEST(Pool, BlocksAreUsedAgain) {
  { const Tensor warm = Tensor::empty({1000, 1000}); }
  const auto before = pool_statistics();
  for (int i = 0; i < 10; ++i) {
    const Tensor x = Tensor::empty({1000 - i, 1000});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(x.bytes()) % 64, 0u);
  }
  EXPECT_EQ(pool_statistics().blocks_from_system, before.blocks_from_system);
  EXPECT_EQ(pool_statistics().bytes_in_use, before.bytes_in_use);
}

}  // namespace
}  // namespace regard
