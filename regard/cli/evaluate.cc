#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "regard/base/error.h"
#include "regard/cli/verb.h"
#include "regard/evaluation/evaluate_files.h"

namespace regard::cli {
namespace {

struct Options {
  std::filesystem::path hypothesis;
  std::vector<std::filesystem::path> references;
  std::vector<std::string> metrics = {"bleu", "chrf"};
  std::string tokenization = "13a";
  std::filesystem::path alignment;
  std::filesystem::path gold;
};

std::string evaluate(const Options& options, const Common& common) {
  if (options.alignment.empty() && options.hypothesis.empty()) {
    throw UsageError("nothing to evaluate; give --hypothesis and --reference, or --alignment and --gold");
  }
  std::string text;
  if (!options.hypothesis.empty()) {
    text += evaluation::evaluate_files(options.hypothesis, options.references,
                                       {.metrics = options.metrics,
                                        .tokenization = evaluation::tokenization_named(options.tokenization),
                                        .json = common.json});
  }
  if (!options.alignment.empty()) {
    text += evaluation::evaluate_alignment_files(options.alignment, options.gold, common.json);
  }
  return text;
}

}  // namespace

void add_evaluate(CLI::App& app, Common& common) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("evaluate", "Scores of a translation: BLEU, chrF, accuracy; of links: AER");
  CLI::Option* hypothesis =
      verb->add_option("--hypothesis", options->hypothesis, "The translation, a line each");
  CLI::Option* reference = verb->add_option("--reference", options->references,
                                            "What it should be; several files: several references");
  verb->add_option("--metric", options->metrics, "What to print, with commas between")
      ->delimiter(',')
      ->check(CLI::IsMember({"bleu", "chrf", "chrf++", "accuracy"}))
      ->default_str("bleu,chrf");
  verb->add_option("--tokenize", options->tokenization, "How BLEU cuts lines into words")
      ->check(CLI::IsMember({"13a", "none", "intl", "char"}))
      ->capture_default_str();
  CLI::Option* alignment =
      verb->add_option("--alignment", options->alignment, "Links in Pharaoh's form, 0-0 1-2, a line each");
  CLI::Option* gold =
      verb->add_option("--gold", options->gold, "The right links; 1?2 is one that is possible");
  hypothesis->needs(reference)->excludes(alignment);
  reference->needs(hypothesis);
  alignment->needs(gold);
  gold->needs(alignment);
  verb->callback([options, &common] {
    const std::string text = evaluate(*options, common);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
      throw SystemError("cannot write the scores to standard output", errno);
    }
  });
}

}  // namespace regard::cli
