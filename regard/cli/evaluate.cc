#include <fmt/format.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "regard/base/error.h"
#include "regard/cli/limits.h"
#include "regard/cli/results.h"
#include "regard/cli/verb.h"
#include "regard/decoding/perplexity.h"
#include "regard/evaluation/evaluate_files.h"
#include "regard/models/directory.h"
#include "regard/text/readers.h"

namespace regard::cli {
namespace {

struct Options {
  std::filesystem::path model, source, target;
  std::vector<std::filesystem::path> text;
  std::filesystem::path hypothesis;
  std::vector<std::filesystem::path> references;
  std::vector<std::string> metrics = {"bleu", "chrf"};
  std::string tokenization = "13a";
  std::filesystem::path lengths;
  std::vector<int64_t> band_ends = evaluation::EvaluateOptions{}.band_ends;
  std::filesystem::path alignment;
  std::filesystem::path gold;
};

/// How well a model predicts given translations.
std::string perplexity(const Options& options, const Common& common) {
  const models::TrainedModel model = models::load_model(options.model);
  const auto lines = text::read_parallel_lines(options.source, options.target);
  constexpr int64_t kWhole = int64_t{1} << 40;  // nothing is cut
  const auto source = text::encode_lines(*model.source, lines.source, kWhole);
  const auto target = text::encode_lines(*model.target, lines.target, kWhole);
  if (target.tokens() == 0) throw DataError(options.target.string(), 0, "empty; there is nothing to predict");
  for (int64_t i = 0; i < source.size(); ++i)
    require_workable(options.source, i + 1, source.length(i), target.length(i));
  ThreadPool pool(common.thread_count());
  const double nats = decoding::nats_per_token(*model.model, source, target, pool);
  if (common.json)
    return json_text(boost::json::object{
        {"perplexity", std::exp(nats)}, {"nats_per_token", nats}, {"tokens", target.tokens()}});
  return fmt::format("perplexity = {:.2f} ({:.4f} nats per token, {} tokens with end symbols)\n",
                     std::exp(nats), nats, target.tokens());
}

/// How well a language model predicts text: a stream in chunks of the length that it was trained on.
std::string text_perplexity(const Options& options, const Common& common) {
  const models::TrainedModel model = models::load_model(options.model, models::Task::language);
  std::vector<std::string> all;
  for (const auto& file : options.text) {
    const auto lines = text::read_lines(file);
    if (lines.empty()) throw DataError(file.string(), 0, "empty; there is nothing to predict");
    if (!model.is_stream)
      for (size_t i = 0; i < lines.size(); ++i) {
        const auto pieces = static_cast<int64_t>(model.target->encode(lines[i]).size()) + 1;
        require_workable(file, static_cast<int64_t>(i) + 1, pieces, pieces);
      }
    all.insert(all.end(), lines.begin(), lines.end());
  }
  ThreadPool pool(common.thread_count());
  const auto score = decoding::score_text(model, all, pool);
  const double nats = score.nats_per_piece();
  if (common.json)
    return json_text(boost::json::object{{"perplexity", std::exp(nats)},
                                         {"nats_per_token", nats},
                                         {"tokens", score.pieces},
                                         {"unknown", score.unknown},
                                         {"bits_per_character", score.bits_per_character()},
                                         {"characters", score.characters},
                                         {"bits_per_byte", score.bits_per_byte()},
                                         {"bytes", score.bytes}});
  return fmt::format(
      "perplexity = {:.2f} ({:.4f} nats per piece, {} pieces, {} of them unknown)\n"
      "{:.4f} bits per character ({} characters), {:.4f} per byte ({} bytes), newlines included\n",
      std::exp(nats), nats, score.pieces, score.unknown, score.bits_per_character(), score.characters,
      score.bits_per_byte(), score.bytes);
}

std::string evaluate(const Options& options, const Common& common) {
  if (!options.model.empty() && options.source.empty() && options.text.empty())
    throw UsageError("a model is evaluated on --source F and --target F, a language model on --text F");
  if (options.alignment.empty() && options.hypothesis.empty() && options.model.empty()) {
    throw UsageError(
        "nothing to evaluate; give --hypothesis and --reference, --alignment and --gold, or DIR, --source "
        "and "
        "--target");
  }
  std::string text;
  if (!options.model.empty())
    text += options.text.empty() ? perplexity(options, common) : text_perplexity(options, common);
  if (!options.hypothesis.empty()) {
    text += evaluation::evaluate_files(options.hypothesis, options.references,
                                       {.metrics = options.metrics,
                                        .tokenization = evaluation::tokenization_named(options.tokenization),
                                        .lengths = options.lengths,
                                        .band_ends = options.band_ends,
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
  CLI::App* verb = app.add_subcommand(
      "evaluate", "Scores of a text: BLEU, chrF, ROUGE, accuracy; of links: AER; of a model: perplexity");
  CLI::Option* model =
      verb->add_option("DIR", options->model, "A model directory: perplexity of --target or --text");
  CLI::Option* source =
      verb->add_option("--source", options->source, "Source lines for the model")->type_name("FILE");
  CLI::Option* target =
      verb->add_option("--target", options->target, "Target lines for the model, as many")->type_name("FILE");
  verb->add_option("--text", options->text, "Instead: text for a language model; one or more files")
      ->type_name("FILE")
      ->needs(model)
      ->excludes(source);
  source->needs(target)->needs(model);
  target->needs(source);
  CLI::Option* hypothesis =
      verb->add_option("--hypothesis", options->hypothesis, "The translation, a line each")
          ->type_name("FILE");
  CLI::Option* reference = verb->add_option("--reference", options->references,
                                            "What it should be; several files: several references")
                               ->type_name("FILE");
  CLI::Option* metric =
      verb->add_option("--metric", options->metrics, "What to print, with commas between")
          ->delimiter(',')
          ->check(CLI::IsMember({"bleu", "chrf", "chrf++", "rouge", "accuracy", "repetition"}))
          ->default_str("bleu,chrf");
  CLI::Option* tokenize =
      verb->add_option("--tokenize", options->tokenization, "How BLEU cuts lines into words")
          ->check(CLI::IsMember({"13a", "none", "intl", "char"}))
          ->capture_default_str();
  CLI::Option* lengths =
      verb->add_option("--by-length", options->lengths,
                       "Also the scores by the number of words in this file's lines: the source")
          ->type_name("FILE")
          ->needs(hypothesis);
  verb->add_option("--length-bands", options->band_ends, "Last length of each band, with commas between")
      ->delimiter(',')
      ->check(CLI::Range(0, 1'000'000'000))
      ->default_str("10,20,30,40,50")
      ->needs(lengths);
  CLI::Option* alignment =
      verb->add_option("--alignment", options->alignment, "Links in Pharaoh's form, 0-0 1-2, a line each")
          ->type_name("FILE");
  CLI::Option* gold =
      verb->add_option("--gold", options->gold, "The right links; 1?2 is one that is possible")
          ->type_name("FILE");
  metric->needs(hypothesis);
  tokenize->needs(hypothesis);
  hypothesis->needs(reference)->excludes(alignment)->excludes(model);
  reference->needs(hypothesis);
  alignment->needs(gold)->excludes(model);
  gold->needs(alignment);
  verb->footer(
      "Examples:\n"
      "  regard evaluate --hypothesis out.fr --reference test.fr\n"
      "  regard evaluate --hypothesis out.fr --reference test.fr other.fr --metric bleu,chrf++\n"
      "  regard evaluate --hypothesis out.fr --reference test.fr --by-length test.en\n"
      "  regard evaluate --hypothesis summaries --reference written --metric rouge,repetition\n"
      "  regard evaluate --alignment links --gold gold.links\n"
      "  regard evaluate model --source test.en --target test.fr\n"
      "  regard evaluate model --text test.txt");
  verb->callback([options, &common] {
    const std::string text = evaluate(*options, common);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
      throw SystemError("cannot write the scores to standard output", errno);
    }
  });
}

}  // namespace regard::cli
