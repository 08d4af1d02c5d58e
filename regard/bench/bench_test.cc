#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "regard/bench/additive_cases.h"
#include "regard/bench/attention_benchmark.h"
#include "regard/bench/decode_cases.h"
#include "regard/bench/exact_cases.h"
#include "regard/bench/timing.h"
#include "regard/bench/yardsticks.h"
#include "tests/support/every_target.h"

namespace regard::bench {
namespace {

TEST(Bench, OperationsCountThePairsThatAreKept) {
  const auto operations = [](Pass pass, ExactCase::Variant variant) {
    return ExactCase{pass, {2, 3, 10, 8}, variant}.operations();
  };
  constexpr double kOfAPair = 4. * 2 * 3 * 8;
  EXPECT_EQ(operations(Pass::forward, {}), kOfAPair * 100);
  EXPECT_EQ(operations(Pass::forward, {.causal = true}), kOfAPair * 55);
  EXPECT_EQ(operations(Pass::forward, {.causal = true, .window = 2}), kOfAPair * (1 + 2 + 8 * 3));
  EXPECT_EQ(operations(Pass::backward, {}), 2.5 * kOfAPair * 100);
}

TEST(Bench, NamesTellCasesApart) {
  std::set<std::string> names;
  size_t cases = 0;
  for (const auto& each : exact_cases()) names.insert(each.name()), ++cases;
  for (const auto& each : decode_cases()) names.insert(each.name()), ++cases;
  for (const auto& each : additive_cases()) names.insert(each.name()), ++cases;
  EXPECT_EQ(names.size(), cases);
  EXPECT_EQ((ExactCase{Pass::backward, {1, 8, 64, 32}, {true, 16, true, Extra::mask}}.name()),
            "backward 1,8,64,32 causal window 16 bf16 mask");
  EXPECT_EQ((DecodeCase{1, 32, 8, 4096, 128, 16, 4}.name()), "decode 1,32/8,4096,128 queries 4 pages 16");
}

TEST(Bench, APlainReadReadsEveryWord) {
  tests::on_every_target([] {
    for (const size_t n : {0, 1, 7, 8, 31, 32, 33, 100}) {
      std::vector<uint64_t> x(n);
      std::iota(x.begin(), x.end(), uint64_t{1} << 40);
      EXPECT_EQ(sum_of_words(x.data(), static_cast<int64_t>(n)),
                n * (uint64_t{1} << 40) + n * (n - (n > 0)) / 2);
    }
  });
}

TEST(Bench, TheFastestRunCounts) {
  int runs = 0;
  EXPECT_LT(best(0, [&] { ++runs; }), 1e9);
  EXPECT_EQ(runs, 5);
  int a = 0, b = 0;
  const BestOfTwo both = best_of(
      0, [&] { ++a; }, [&] { ++b; });
  EXPECT_EQ(a, 6);  // once before it counts
  EXPECT_EQ(b, 6);
  EXPECT_GE(both.a, 0.);
}

TEST(BenchThreads, EveryKindOfCaseIsMeasured) {
  ThreadPool pool(2);
  for (const Pass pass : {Pass::forward, Pass::backward})
    for (const Extra extra : {Extra::none, Extra::mask, Extra::bias, Extra::alibi, Extra::softcap,
                              Extra::dropout, Extra::weights}) {
      EXPECT_GT(measure(ExactCase{pass, {1, 2, 9, 8}, {.causal = true, .extra = extra}}, 0, pool), 0.);
    }
  EXPECT_GT(measure(ExactCase{Pass::backward, {1, 2, 9, 8}, {.bf16 = true}}, 0, pool), 0.);
  for (const int64_t page : {0, 4})
    for (const bool bf16 : {false, true}) {
      const DecodeTimes times = measure(DecodeCase{2, 4, 2, 16, 8, page}, bf16, 0, pool);
      EXPECT_GT(times.decode, 0.);
      EXPECT_EQ(times.bytes, (bf16 ? 2. : 4.) * 2 * 2 * 2 * 16 * 8);
    }
  for (const bool ragged : {false, true}) {
    const AdditiveTimes times = measure(AdditiveCase{3, 8, 16, 24, ragged}, 0, pool);
    EXPECT_GT(std::min(times.forward, times.with_backward), 0.);
    EXPECT_LE(times.operations, 2. * 3 * 8 * 40);
  }
}

}  // namespace
}  // namespace regard::bench
