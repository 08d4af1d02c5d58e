// regard corpus: catalogues and files to clean, distinct, held-out line files.

#include "regard/text/corpus.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>
#include <memory>

#include "regard/base/error.h"
#include "regard/cli/results.h"
#include "regard/cli/verb.h"
#include "regard/text/gather.h"
#include "regard/text/toy_grammar.h"

namespace regard::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string from, to, output;
  int64_t toy = 0;
  text::CorpusOptions corpus;
};

void print(const text::Corpus& corpus, const Options& options) {
  fmt::print("{} distinct pairs: train {}, dev {}, test {} in {}\n", corpus.distinct(), corpus.train.size(),
             corpus.dev.size(), corpus.test.size(), options.output);
  const auto dropped = [](int64_t count, const std::string& why) {
    if (count > 0) fmt::print("dropped {}: {}\n", count, why);
  };
  dropped(corpus.empty, "an empty side");
  dropped(corpus.copies, "target is the source");
  dropped(corpus.overlong, fmt::format("over {} words", options.corpus.longest_words));
  dropped(corpus.duplicates, "the same pair again");
  dropped(corpus.held_out, "another translation of a source that is held out");
}

void print_json(const text::Corpus& corpus, const Options& options) {
  const boost::json::object result = {
      {"distinct", corpus.distinct()},
      {"read", corpus.read},
      {"train", corpus.train.size()},
      {"dev", corpus.dev.size()},
      {"test", corpus.test.size()},
      {"dropped_empty", corpus.empty},
      {"dropped_copies", corpus.copies},
      {"dropped_overlong", corpus.overlong},
      {"duplicates", corpus.duplicates},
      {"dropped_held_out", corpus.held_out},
      {"output", options.output},
      {"from", options.from},
      {"to", options.to},
  };
  fmt::print("{}", json_text(result));
}

void run(const Options& options, const Common& common) {
  if (options.files.empty() && options.toy == 0)
    throw UsageError("no files given; name some, or use --toy N");
  std::vector<text::Pair> pairs = text::gather_pairs(options.files, options.from, options.to);
  if (options.toy > 0)
    for (auto& pair : text::toy_pairs(options.toy, options.corpus.seed)) pairs.push_back(std::move(pair));
  const text::Corpus corpus = text::build_corpus(pairs, options.corpus);
  text::write_corpus(corpus, options.output, options.from, options.to);
  if (common.json) {
    print_json(corpus, options);
  } else {
    print(corpus, options);
  }
}

}  // namespace

void add_corpus(CLI::App& app, Common& common) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("corpus", "Catalogues and files to clean, distinct, held-out line files");
  verb->add_option(
      "FILES", options->files,
      "PO, MO and TSV files (also .gz), folders of them, and line files in pairs, source before target");
  verb->add_option("--from", options->from, "Source language: the ending of the files written")
      ->type_name("LANGUAGE")
      ->required();
  verb->add_option("--to", options->to, "Target language")->type_name("LANGUAGE")->required();
  verb->add_option("--output", options->output, "Folder to write to")->type_name("DIR")->required();
  verb->add_option("--dev", options->corpus.dev, "Lines to hold out for development")->check(not_negative());
  verb->add_option("--test", options->corpus.test, "Lines to hold out for testing")->check(not_negative());
  verb->add_option("--seed", options->corpus.seed, "Which lines are held out")->capture_default_str();
  verb->add_option("--longest", options->corpus.longest_words, "Drop pairs with more words on a side")
      ->capture_default_str();
  verb->add_flag("--drop-copies", options->corpus.drop_copies, "Drop pairs whose target is their source");
  verb->add_option("--toy", options->toy, "Add N pairs of a small English-French grammar")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}));
  verb->footer(
      "Example:\n"
      "  regard corpus po/fr.po more.tsv old.en old.fr --from en --to fr --output text --dev 1000 --test "
      "1000\n"
      "writes text/train.en, train.fr, dev.en, dev.fr, test.en and test.fr, line for line.\n"
      "TSV: source TAB target, with \\t \\n \\\\ as escapes. A newline inside a message is written \\n.");
  verb->callback([options, &common] { run(*options, common); });
}

}  // namespace regard::cli
