#include "regard/bench/attention_benchmark.h"

#include <algorithm>

#include "regard/bench/additive_cases.h"
#include "regard/bench/decode_cases.h"
#include "regard/bench/exact_cases.h"
#include "regard/bench/yardsticks.h"

namespace regard::bench {
namespace {

using Report = std::function<void(const Line&)>;

/// `measure` between two measurements of the products' peak, in GFLOP/s of all threads: {its result, peak}.
template <class Measure>
auto beside_products(const AttentionBenchmark& benchmark, const Measure& measure) {
  const double before = product_peak(benchmark.seconds / 4);
  const auto result = measure();
  const double after = product_peak(benchmark.seconds / 4);
  return std::pair(result, benchmark.threads * std::max(before, after));
}

Line line_of(const std::string& name, double seconds, double operations, double peak) {
  return {name, seconds * 1e3, operations / seconds * 1e-9, peak, Yardstick::products};
}

void exact(const AttentionBenchmark& benchmark, ThreadPool& pool, const Report& report) {
  for (const ExactCase& each : exact_cases()) {
    if (benchmark.quick && (each.shape[2] > 1024 || each.variant.extra != Extra::none)) continue;
    const auto [seconds, peak] =
        beside_products(benchmark, [&] { return measure(each, benchmark.seconds, pool); });
    report(line_of(each.name(), seconds, each.operations(), peak));
  }
}

void decode(const AttentionBenchmark& benchmark, ThreadPool& pool, const Report& report) {
  for (const DecodeCase& each : decode_cases()) {
    if (benchmark.quick && (each.page_size != 0 || each.H != each.Hkv || each.T != 1)) continue;
    for (const bool bf16 : {false, true}) {
      const DecodeTimes times = measure(each, bf16, benchmark.seconds, pool);
      report({each.name() + (bf16 ? " bf16" : ""), times.decode * 1e3, times.bytes / times.decode * 1e-9,
              times.bytes / times.read * 1e-9, Yardstick::read});
    }
  }
}

void additive(const AttentionBenchmark& benchmark, ThreadPool& pool, const Report& report) {
  for (const AdditiveCase& each : additive_cases()) {
    const auto [times, peak] =
        beside_products(benchmark, [&] { return measure(each, benchmark.seconds, pool); });
    report(line_of("additive " + each.name(), times.forward, times.operations, peak));
    report(line_of("additive " + each.name() + " with backward", times.with_backward, 3 * times.operations,
                   peak));
  }
}

}  // namespace

void bench_attention(const AttentionBenchmark& benchmark, const Report& report) {
  ThreadPool pool(benchmark.threads);
  exact(benchmark, pool, report);
  decode(benchmark, pool, report);
  additive(benchmark, pool, report);
}

}  // namespace regard::bench
