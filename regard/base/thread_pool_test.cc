#include "regard/base/thread_pool.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace regard {
namespace {

TEST(ThreadPool, EveryPartRunsOnce) {
  ThreadPool pool(4);
  for (int64_t parts : {0, 1, 2, 3, 100}) {
    std::vector<int> counts(static_cast<size_t>(parts));
    for (int round = 0; round < 50; ++round)
      pool.parallel_for(parts, [&](int64_t i) { ++counts[static_cast<size_t>(i)]; });
    for (int c : counts) EXPECT_EQ(c, 50);
  }
}

TEST(ThreadPool, LowestExceptionWins) {
  ThreadPool pool(3);
  try {
    pool.parallel_for(20, [](int64_t i) {
      if (i >= 5) throw std::runtime_error(std::to_string(i));
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "5");
  }
}

TEST(ThreadPool, NestedCallsAndSeveralCallers) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(8);
  std::vector<std::thread> callers;
  for (size_t c = 0; c < sums.size(); ++c)
    callers.emplace_back([&, c] {
      std::vector<int64_t> parts(10);
      pool.parallel_for(10, [&](int64_t i) {
        pool.parallel_for(3, [&](int64_t j) { parts[static_cast<size_t>(i)] += j + 1; });
      });
      for (int64_t x : parts) sums[c] += x;
    });
  for (auto& caller : callers) caller.join();
  for (int64_t x : sums) EXPECT_EQ(x, 60);
}

}  // namespace
}  // namespace regard
