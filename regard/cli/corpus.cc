// regard corpus: catalogues and files to clean, distinct, held-out line files.

#include "regard/text/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>

#include "regard/base/error.h"
#include "regard/cli/verb.h"
#include "regard/text/readers.h"
#include "regard/text/toy_grammar.h"

namespace regard::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string from, to, output;
  int64_t toy = 0;
  text::CorpusOptions corpus;
};

void append(std::vector<text::Pair>& all, std::vector<text::Pair> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

/// A folder stands for the catalogues and TSV files in it, in the order of their paths.
std::vector<std::filesystem::path> expanded(const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& name : names) {
    std::error_code error;
    if (!std::filesystem::is_directory(name, error)) {
      paths.emplace_back(name);
      continue;
    }
    std::vector<std::filesystem::path> inside;
    for (auto entry = std::filesystem::recursive_directory_iterator(name, error);
         !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
      if (text::format_of(entry->path()) != text::Format::automatic) inside.push_back(entry->path());
    }
    if (error) throw SystemError("cannot read " + name, error.value());
    std::sort(inside.begin(), inside.end());
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  return paths;
}

/// The language a plain file's name ends with: "fr" of news.fr and of news.fr.gz.
std::string language_of(std::filesystem::path path) {
  if (path.extension() == ".gz") path = path.stem();
  const std::string extension = path.extension().string();
  return extension.empty() ? "" : extension.substr(1);
}

std::vector<text::Pair> read_all(const Options& options) {
  std::vector<text::Pair> pairs;
  std::vector<std::filesystem::path> plain;
  for (const auto& path : expanded(options.files)) {
    if (text::format_of(path) == text::Format::automatic) {
      plain.push_back(path);
    } else {
      append(pairs, text::read_pairs(path));
    }
  }
  if (plain.size() % 2 != 0) {
    throw UsageError("line files come in pairs, source before target; " + plain.back().string() +
                     " is alone");
  }
  for (size_t i = 0; i < plain.size(); i += 2) {
    const bool reversed = language_of(plain[i]) == options.to && language_of(plain[i + 1]) == options.from;
    append(pairs, text::read_parallel(plain[reversed ? i + 1 : i], plain[reversed ? i : i + 1]));
  }
  if (options.toy > 0) append(pairs, text::toy_pairs(options.toy, options.corpus.seed));
  return pairs;
}

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
  fmt::print("{}\n", boost::json::serialize(result));
}

void run(const Options& options, const Common& common) {
  if (options.files.empty() && options.toy == 0)
    throw UsageError("no files given; name some, or use --toy N");
  const text::Corpus corpus = text::build_corpus(read_all(options), options.corpus);
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
  verb->add_option("--from", options->from, "Source language: the ending of the files written")->required();
  verb->add_option("--to", options->to, "Target language")->required();
  verb->add_option("--output", options->output, "Folder to write to")->required();
  verb->add_option("--dev", options->corpus.dev, "Lines to hold out for development")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--test", options->corpus.test, "Lines to hold out for testing")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--seed", options->corpus.seed, "Which lines are held out")->capture_default_str();
  verb->add_option("--longest", options->corpus.longest_words, "Drop pairs with more words on a side")
      ->capture_default_str();
  verb->add_flag("--drop-copies", options->corpus.drop_copies, "Drop pairs whose target is their source");
  verb->add_option("--toy", options->toy, "Add N pairs of a small English-French grammar")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}));
  verb->callback([options, &common] { run(*options, common); });
}

}  // namespace regard::cli
