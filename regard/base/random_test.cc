#include "regard/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace regard {
namespace {

// The known answers that the authors publish with Philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomStream, ContinuesAfterSeek) {
  RandomStream a(7, 3), b(7, 3);
  for (int i = 0; i < 13; ++i) a.next_u32();
  b.seek(a.position());
  EXPECT_EQ(a.next_u64(), b.next_u64());
}

TEST(RandomStream, MomentsOfNormal) {
  RandomStream random(1, 2);
  double sum = 0, squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0.0, 0.015);
  EXPECT_NEAR(squares / n, 1.0, 0.02);
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream random(1, 5);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  for (int c : counts) EXPECT_NEAR(c, 10000, 500);
}

TEST(RandomStream, ShuffleIsAPermutation) {
  RandomStream random(1, 5);
  std::vector<int> x(100);
  std::iota(x.begin(), x.end(), 0);
  shuffle(x.begin(), x.end(), random);
  EXPECT_FALSE(std::is_sorted(x.begin(), x.end()));
  std::sort(x.begin(), x.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(x[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace regard
