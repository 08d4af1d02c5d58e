// regard score and align: given translations through a trained model.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <filesystem>
#include <iostream>

#include "regard/alignment/word_matrix.h"
#include "regard/cli/json.h"
#include "regard/cli/limits.h"
#include "regard/cli/progress.h"
#include "regard/cli/results.h"
#include "regard/cli/verb.h"
#include "regard/decoding/forced.h"
#include "regard/text/readers.h"

namespace regard::cli {
namespace {

constexpr size_t kPairs = 2000;  // that are worked on together, at most

struct PairArguments {
  std::string model;
  std::filesystem::path source, target;
};

/// Calls use(model, source ids with end symbol, hypothesis)
/// for each pair in order and prints what it returns.
template <class Use>
void for_each_pair(const PairArguments& a, const Common& common, Use use) {
  const models::TrainedModel model = models::load_model(a.model);
  const auto [source, target] = text::read_parallel_lines(a.source, a.target);
  ThreadPool pool(common.thread_count());
  Progress progress(common.quiet);
  for (size_t first = 0, count = 0; first < source.size(); first += count) {
    std::vector<std::vector<int32_t>> source_ids, target_ids;
    int64_t weights = 0;
    for (count = 0; count < kPairs && first + count < source.size() && weights < kAttentionWeights; ++count) {
      source_ids.push_back(model.source->encode(source[first + count]));
      source_ids.back().push_back(text::Vocabulary::kEnd);
      target_ids.push_back(model.target->encode(target[first + count]));
      const auto S = static_cast<int64_t>(source_ids.back().size());
      const auto T = static_cast<int64_t>(target_ids.back().size()) + 1;
      require_workable(a.source, static_cast<int64_t>(first + count) + 1, S, T);
      weights += S * T;
    }
    const std::vector<std::span<const int32_t>> sources(source_ids.begin(), source_ids.end()),
        targets(target_ids.begin(), target_ids.end());
    const auto forced = decoding::force(*model.model, sources, targets, pool, model.frozen.get());
    for (size_t i = 0; i < count; ++i) std::cout << use(model, source_ids[i], forced[i]) << "\n";
    flush_results();
    progress.show(fmt::format("{} of {} pairs", first + count, source.size()),
                  static_cast<double>(first + count) / static_cast<double>(source.size()));
  }
}

std::shared_ptr<PairArguments> add_pair_options(CLI::App* verb) {
  auto a = std::make_shared<PairArguments>();
  verb->add_option("DIR", a->model, "The model directory")->required();
  verb->add_option("--source", a->source, "Source lines")->type_name("FILE")->required();
  verb->add_option("--target", a->target, "Target lines, as many")->type_name("FILE")->required();
  return a;
}

}  // namespace

void add_score(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand("score", "Log-probability of each pair, in nats");
  const auto a = add_pair_options(verb);
  verb->footer(
      "Example:\n"
      "  regard score model --source test.en --target test.fr\n"
      "One number a line: the natural logarithm of the probability of the target and its end, given the\n"
      "source.");
  verb->callback([a, &common] {
    for_each_pair(
        *a, common,
        [&](const models::TrainedModel&, const std::vector<int32_t>&, const decoding::Hypothesis& h) {
          const std::string score = fmt::format("{:.9g}", h.score);
          return common.json ? "{\"score\":" + score + "}" : score;
        });
  });
}

void add_align(CLI::App& app, Common& common) {
  auto* verb =
      app.add_subcommand("align", "Pharaoh links i-j of each pair (words, from 0), read off the attention");
  const auto a = add_pair_options(verb);
  verb->footer(
      "Example:\n"
      "  regard align model --source test.en --target test.fr\n"
      "Each target word is linked to the source word with most attention: 0-0 1-2 (source word - target\n"
      "word).\n"
      "A newline inside a message, written \\n, is a word of its own.");
  verb->callback([a, &common] {
    for_each_pair(*a, common,
                  [&](const models::TrainedModel& model, const std::vector<int32_t>& ids,
                      const decoding::Hypothesis& h) {
                    const auto links = alignment::links(alignment::word_matrix(model, ids, h));
                    return common.json ? boost::json::serialize(links_json(links))
                                       : alignment::pharaoh(links);
                  });
  });
}

}  // namespace regard::cli
