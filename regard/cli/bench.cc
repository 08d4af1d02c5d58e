// regard bench: how fast this machine computes.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "regard/base/error.h"
#include "regard/bench/attention_benchmark.h"
#include "regard/cli/bench_models.h"
#include "regard/cli/results.h"
#include "regard/cli/verb.h"
#include "regard/simd/rows.h"

namespace regard::cli {
namespace {

struct BenchArguments {
  std::string name;
  std::optional<double> seconds;
  bool quick = false;
  ModelBench models;
};

std::string heading(int threads) {
  return fmt::format(
      "{} thread{}, {}. Exact and additive: share of the products' peak (512 cubed on one thread, times the\n"
      "threads); decode: of a plain read.\n\n{:<46} {:>10} {:>16} {:>7}\n",
      threads, threads == 1 ? "" : "s", simd::target_name(), "batch, heads, length, width", "ms", "a second",
      "share");
}

/// The lines of `regard bench attention`: printed as they come, or all in one object.
void attention(const BenchArguments& arguments, const Common& common) {
  if (has_model_options(arguments.models))
    throw UsageError("`bench attention` reads no data and trains no models; that is `bench models`");
  const bench::AttentionBenchmark benchmark{
      .threads = common.thread_count(),
      .seconds = arguments.seconds.value_or(arguments.quick ? 0.02 : 0.2),
      .quick = arguments.quick};
  boost::json::array lines;
  double peak = 0;
  const auto print = [&](const bench::Line& line) {
    const bool products = line.of == bench::Yardstick::products;
    if (products) peak = std::max(peak, line.yardstick);
    if (common.json) {
      lines.push_back({{"case", line.name},
                       {"ms", line.milliseconds},
                       {products ? "gflops" : "gb_per_s", line.rate},
                       {products ? "gemm_gflops" : "read_gb_per_s", line.yardstick},
                       {"share", line.share()}});
      return;
    }
    std::cout << fmt::format("{:<46} {:>10.3f} {:>8.1f} {} {:>7.3f} of {:.1f}\n", line.name,
                             line.milliseconds, line.rate, products ? "GFLOP/s" : "GB/s   ", line.share(),
                             line.yardstick);
    flush_results();
  };
  if (!common.json) std::cout << heading(benchmark.threads);
  bench::bench_attention(benchmark, print);
  if (common.json)
    std::cout << json_text(boost::json::object{{"benchmark", "attention"},
                                               {"threads", benchmark.threads},
                                               {"instructions", simd::target_name()},
                                               {"gemm_gflops", peak},
                                               {"lines", std::move(lines)}});
}

void models(const BenchArguments& arguments, const Common& common) {
  if (arguments.seconds) throw UsageError("--seconds is for `bench attention`; models have --minutes");
  ModelBench bench = arguments.models;
  bench.quick = arguments.quick;
  bench_models(bench, common);
}

/// The names that `regard bench` knows.
struct Benchmark {
  const char *name, *summary;
  void (*run)(const BenchArguments&, const Common&);
};
constexpr Benchmark kBenchmarks[] = {
    {"attention", "The attention kernels as shares of what this machine can do", attention},
    {"models", "Every model on the same data for the same time: speed, loss, quality, memory", models},
};

void list(const Common& common) {
  boost::json::array names;
  for (const Benchmark& each : kBenchmarks) {
    if (common.json)
      names.push_back({{"name", each.name}, {"summary", each.summary}});
    else
      std::cout << fmt::format("{:<12} {}\n", each.name, each.summary);
  }
  if (common.json) std::cout << json_text(boost::json::object{{"benchmarks", std::move(names)}});
}

void run(const BenchArguments& arguments, const Common& common) {
  if (arguments.name.empty()) return list(common);
  std::string names;
  for (const Benchmark& each : kBenchmarks) {
    if (arguments.name == each.name) return each.run(arguments, common);
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  throw UsageError("there is no benchmark '" + arguments.name + "'; there is " + names);
}

}  // namespace

void add_bench(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand("bench", "How fast this machine computes: attention, models");
  auto arguments = std::make_shared<BenchArguments>();
  verb->add_option("NAME", arguments->name, "What to measure; without it, the list of names");
  verb->add_option("--seconds", arguments->seconds, "For each case; default 0.2, with --quick 0.02")
      ->check(CLI::Range(0.0, 3600.0));
  verb->add_flag("--quick", arguments->quick, "Fewer cases, a few seconds in all");
  ModelBench& models = arguments->models;
  constexpr const char* kGroup = "Of models";
  verb->add_option("--models", models.models, "These, with commas between; default all that the data are for")
      ->delimiter(',')
      ->type_name("NAMES")
      ->group(kGroup);
  verb->add_option("--minutes", models.minutes, "Of training, for each model")
      ->capture_default_str()
      ->check(above_zero())
      ->group(kGroup);
  verb->add_option("--batch-tokens", models.batch_tokens, "Pieces of a batch, with padding")
      ->capture_default_str()
      ->check(above_zero())
      ->group(kGroup);
  verb->add_option("--test-source", models.test_source, "To measure BLEU on; default the development text")
      ->type_name("FILE")
      ->group(kGroup);
  verb->add_option("--test-target", models.test_target, "Its translation")->type_name("FILE")->group(kGroup);
  verb->add_option("--output", models.output, "Keep the models in this new folder")
      ->type_name("DIR")
      ->group(kGroup);
  add_data_options(verb, models.data);
  verb->footer(
      "A rate is the best of several runs; let nothing else run meanwhile.\n"
      "Examples:\n"
      "  regard bench attention --threads 1\n"
      "  regard bench attention --quick --json\n"
      "  regard bench models --source train.en --target train.de --dev-source dev.en --dev-target dev.de\n"
      "  regard bench models --text shakespeare.txt --dev-fraction 0.05 --vocabulary characters\n"
      "Without data `bench models` trains on sentences of a small grammar. A share counts the operations of\n"
      "the matrix products alone.");
  verb->callback([arguments, &common] { run(*arguments, common); });
}

}  // namespace regard::cli
