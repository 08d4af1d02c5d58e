#include "regard/cli/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "regard/base/random.h"
#include "regard/text/corpus.h"
#include "regard/text/gather.h"
#include "regard/text/labelled.h"

namespace regard::cli {
namespace {

/// Held out of --data if nothing else is said.
constexpr double kDevFraction = 0.05;
constexpr int64_t kDevLines = 1000;

void take(const std::vector<text::Pair>& pairs, std::vector<std::string>& source,
          std::vector<std::string>& target) {
  for (const auto& pair : pairs) {
    source.push_back(pair.source);
    target.push_back(pair.target);
  }
}

/// Pairs without duplicates, some held out by distinct source.
training::Lines held_out(const std::vector<text::Pair>& pairs, const text::CorpusOptions& options) {
  const text::Corpus corpus = text::build_corpus(pairs, options);
  training::Lines lines;
  take(corpus.train, lines.source, lines.target);
  take(corpus.dev, lines.dev_source, lines.dev_target);
  return lines;
}

std::vector<text::LabelledPair> read_some(const std::string& file) {
  auto pairs = text::read_labelled(file);
  if (pairs.empty())
    throw DataError(file, 0, "has no pairs; expected lines of premise TAB hypothesis TAB label");
  return pairs;
}

/// Pairs with labels. Without --dev-data a share of them is held out, by lot.
training::Lines read_labelled_data(const TrainingData& a, uint64_t seed) {
  training::Lines lines;
  std::vector<text::LabelledPair> pairs, dev;
  const auto read = [](const std::vector<std::string>& files, std::vector<text::LabelledPair>& into) {
    for (const std::string& file : files)
      for (auto& pair : read_some(file)) into.push_back(std::move(pair));
  };
  read(a.data, pairs);
  read(a.dev_data, dev);
  if (a.dev_data.empty()) {
    RandomStream random(seed, 0x646576);
    shuffle(pairs.begin(), pairs.end(), random);
    const double share = a.dev_fraction > 0 ? a.dev_fraction : kDevFraction;
    const auto held = static_cast<std::ptrdiff_t>(share * static_cast<double>(pairs.size()));
    dev.assign(pairs.end() - held, pairs.end());
    pairs.resize(pairs.size() - dev.size());
  }
  for (auto& pair : pairs) {
    lines.source.push_back(std::move(pair.premise));
    lines.target.push_back(std::move(pair.hypothesis));
    lines.labels.push_back(std::move(pair.label));
  }
  for (auto& pair : dev) {
    lines.dev_source.push_back(std::move(pair.premise));
    lines.dev_target.push_back(std::move(pair.hypothesis));
    lines.dev_labels.push_back(std::move(pair.label));
  }
  return lines;
}

std::vector<std::string> read_text_files(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> lines;
  for (const auto& file : files) {
    auto more = text::read_lines(file);
    if (more.empty()) throw DataError(file.string(), 0, "has no lines; there is no text in it");
    std::move(more.begin(), more.end(), std::back_inserter(lines));
  }
  return lines;
}

/// Moves the last lines, of about this share of the bytes, to `held_out`; both sides keep one at least.
void hold_out_end(std::vector<std::string>& lines, double fraction, std::vector<std::string>& held_out) {
  if (lines.size() < 2)
    throw UsageError(
        "--dev-fraction holds out the last lines of a text, and there is one line; give --dev-text F");
  double bytes = 0, behind = 0;
  for (const std::string& line : lines) bytes += static_cast<double>(line.size() + 1);
  size_t first = lines.size();
  while (first > 1 && behind < fraction * bytes) behind += static_cast<double>(lines[--first].size() + 1);
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(first);
  held_out.assign(std::move_iterator(at), std::move_iterator(lines.end()));
  lines.erase(at, lines.end());
}

/// A language model's text: all of it is target.
training::Lines read_language_data(const TrainingData& a, uint64_t seed) {
  training::Lines lines;
  lines.target = read_text_files(a.text);
  if (!a.dev_text.empty()) {
    lines.dev_target = read_text_files(a.dev_text);
  } else if (a.dev_fraction > 0 && !a.text_lines) {
    hold_out_end(lines.target, a.dev_fraction, lines.dev_target);
  } else if (a.dev_fraction > 0) {
    std::vector<text::Pair> pairs;
    for (std::string& line : lines.target) pairs.push_back({line, std::move(line), "", 0});
    lines = held_out(pairs, {.dev_fraction = a.dev_fraction, .seed = seed});
    lines.source.clear();
    lines.dev_source.clear();
  }
  return lines;
}

training::Lines read_pairs_data(const TrainingData& a, uint64_t seed) {
  const bool has_dev = !a.dev_source.empty();
  training::Lines lines;
  if (!a.data.empty()) {
    const auto pairs = text::gather_pairs(a.data, a.from, a.to);
    text::CorpusOptions options{.seed = seed};
    options.dev_fraction = has_dev ? 0 : a.dev_fraction;
    if (!has_dev && a.dev_fraction == 0)
      options.dev =
          std::min(kDevLines, static_cast<int64_t>(kDevFraction * static_cast<double>(pairs.size())));
    lines = held_out(pairs, options);
  } else {
    auto parallel = text::read_parallel_lines(a.source, a.target);
    if (parallel.source.empty())
      throw DataError(a.source[0].string(), 0, "has no lines; there is nothing to train on");
    if (a.dev_fraction > 0 && !has_dev) {
      std::vector<text::Pair> pairs;
      for (size_t i = 0; i < parallel.source.size(); ++i)
        pairs.push_back({std::move(parallel.source[i]), std::move(parallel.target[i]), "", 0});
      lines = held_out(pairs, {.dev_fraction = a.dev_fraction, .seed = seed});
    } else {
      lines.source = std::move(parallel.source);
      lines.target = std::move(parallel.target);
      if (!a.guided_alignment.empty())
        lines.links = training::read_word_links(a.guided_alignment, lines.source, lines.target);
    }
  }
  if (has_dev) {
    auto dev = text::read_parallel_lines(a.dev_source, a.dev_target);
    lines.dev_source = std::move(dev.source);
    lines.dev_target = std::move(dev.target);
  }
  return lines;
}

void check_labelled(const TrainingData& a, const std::string& model) {
  const std::string reads =
      model + " reads --data F.tsv, lines of premise TAB hypothesis TAB label (and --dev-data F.tsv)";
  for (const auto& [option, given] :
       {std::pair("--source", !a.source.empty()), std::pair("--target", !a.target.empty()),
        std::pair("--from", !a.from.empty()), std::pair("--to", !a.to.empty()),
        std::pair("--dev-source", !a.dev_source.empty()), std::pair("--dev-target", !a.dev_target.empty()),
        std::pair("--text", !a.text.empty()), std::pair("--dev-text", !a.dev_text.empty()),
        std::pair("--text-lines", a.text_lines),
        std::pair("--guided-alignment", !a.guided_alignment.empty())})
    if (given) throw UsageError(fmt::format("{} says nothing here: {}", option, reads));
  if (a.data.empty()) throw UsageError(reads);
  if (!a.dev_data.empty() && a.dev_fraction > 0)
    throw UsageError("--dev-data and --dev-fraction both say what is held out; give one of them");
}

/// A language model reads text; others do not.
void check_language_data(const TrainingData& a, const std::string& model) {
  for (const auto& [option, given] :
       {std::pair("--source", !a.source.empty()), std::pair("--target", !a.target.empty()),
        std::pair("--data", !a.data.empty()), std::pair("--dev-data", !a.dev_data.empty()),
        std::pair("--from", !a.from.empty()), std::pair("--to", !a.to.empty()),
        std::pair("--dev-source", !a.dev_source.empty()), std::pair("--dev-target", !a.dev_target.empty()),
        std::pair("--guided-alignment", !a.guided_alignment.empty())})
    if (given)
      throw UsageError(
          fmt::format("{} is for models of pairs; {} is a language model and reads --text F", option, model));
  if (a.text.empty()) throw UsageError(model + " is a language model: give --text F");
  if (!a.dev_text.empty() && a.dev_fraction > 0)
    throw UsageError("--dev-text and --dev-fraction both say what is held out; give one of them");
}

void refuse_language_data(const TrainingData& a, const std::string& model) {
  for (const auto& [option, given] :
       {std::pair("--text", !a.text.empty()), std::pair("--dev-text", !a.dev_text.empty()),
        std::pair("--text-lines", a.text_lines)})
    if (given)
      throw UsageError(
          fmt::format("{} is for language models; {} reads pairs: --source F and --target F", option, model));
}

}  // namespace

void check(const TrainingData& a, const models::ModelKind& kind) {
  const std::string model = std::string("--model ") + kind.name;
  if (kind.task == models::Task::language) return check_language_data(a, model);
  if (kind.task == models::Task::classification) return check_labelled(a, model);
  refuse_language_data(a, model);
  if (!a.dev_data.empty())
    throw UsageError("--dev-data holds pairs with labels; " + model +
                     " has --dev-source and --dev-target, or --dev-fraction");
  if (a.dev_source.empty() != a.dev_target.empty())
    throw UsageError("--dev-source and --dev-target go together");
  if (a.source.empty() != a.target.empty()) throw UsageError("--source and --target go together");
  if (a.source.empty() == a.data.empty())
    throw UsageError("give either --source F and --target F, or --data F --from LANGUAGE --to LANGUAGE");
  if (a.data.empty() && !(a.from.empty() && a.to.empty()))
    throw UsageError(
        "--from and --to say what to take from --data; --source and --target are read as they are");
  if (!a.dev_source.empty() && a.dev_fraction > 0)
    throw UsageError("--dev-source and --dev-fraction both say what is held out; give one of them");
  if (!a.data.empty() && (a.from.empty() || a.to.empty()))
    throw UsageError("--data needs --from and --to, the languages of source and target");
  if (!a.guided_alignment.empty() && (a.source.empty() || (a.dev_fraction > 0 && a.dev_source.empty())))
    throw UsageError(
        "--guided-alignment goes with --source and --target line by line; --data and --dev-fraction choose "
        "among the pairs");
}

training::Lines read_data(const TrainingData& data, models::Task task, uint64_t seed) {
  if (task == models::Task::classification) return read_labelled_data(data, seed);
  if (task == models::Task::language) return read_language_data(data, seed);
  return read_pairs_data(data, seed);
}

void apply(const TrainingData& data, training::SessionOptions& session) {
  if (data.vocabulary == "characters") session.vocabulary.kind = text::VocabularyKind::characters;
  if (data.vocabulary == "words") session.vocabulary.kind = text::VocabularyKind::words;
  session.vocabulary.size = data.vocabulary_size;
  session.longest = data.longest;
  session.text_lines = data.text_lines;
}

void add_data_options(CLI::App* verb, TrainingData& a) {
  verb->add_option("--source", a.source, "Text to translate from, a sentence a line; one or more files")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--target", a.target, "Its translation, line for line; as many files")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--data", a.data,
                   "Instead: PO, MO and TSV files (also .gz), folders of them, line files in pairs; for a "
                   "classifier TSV of premise, hypothesis, label")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--dev-data", a.dev_data, "Of a classifier: pairs with labels to evaluate on, TSV")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--from", a.from, "Source language of --data")->type_name("LANGUAGE")->group("Data");
  verb->add_option("--to", a.to, "Target language of --data")->type_name("LANGUAGE")->group("Data");
  verb->add_option("--dev-source", a.dev_source,
                   "Development text: never trained on, it tells which weights are best")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--dev-target", a.dev_target, "Its translation, line for line")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option(
          "--dev-fraction", a.dev_fraction,
          "Hold out this share of the distinct sources (of --data by default 0.05, at most 1,000), of "
          "--text the end")
      ->check(CLI::Range(0.0, 0.9))
      ->group("Data");
  verb->add_option("--guided-alignment", a.guided_alignment,
                   "Word links of the pairs of --source and --target, 0-0 1-2, a line a pair")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--text", a.text,
                   "Instead of all these: text to learn, for a language model; one or more files")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--dev-text", a.dev_text, "Development text, for a language model")
      ->type_name("FILE")
      ->group("Data");
  verb->add_flag("--text-lines", a.text_lines,
                 "Every line of --text is a text of its own, with an end; else all is one stream")
      ->group("Data");
  verb->add_option("--longest", a.longest,
                   "Pieces of a sentence, the rest is cut; a stream of text is cut into chunks of so many")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 20))
      ->group("Data");
  verb->add_option("--vocabulary-size", a.vocabulary_size,
                   "Pieces of the vocabulary, which both sides share, at most")
      ->capture_default_str()
      ->check(CLI::Range(10, 1000000))
      ->group("Data");
  verb->add_option("--vocabulary", a.vocabulary,
                   "What a piece is: a part of a word, learned from the text, or a whole word or a character")
      ->check(CLI::IsMember({"sentencepiece", "words", "characters"}))
      ->default_str("sentencepiece")
      ->group("Data");
}

}  // namespace regard::cli
