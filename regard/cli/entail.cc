// regard entail: does a sentence follow from another?

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <iostream>

#include "regard/alignment/word_matrix.h"
#include "regard/cli/input.h"
#include "regard/cli/json.h"
#include "regard/cli/results.h"
#include "regard/cli/verb.h"
#include "regard/decoding/classify.h"
#include "regard/text/labelled.h"
#include "regard/text/utf8.h"

namespace regard::cli {
namespace {

constexpr size_t kLines = 2000;  // read, classified and written together: memory stays bounded

struct EntailArguments {
  std::string model, binary;
  std::vector<std::string> test;
};

struct EncodedPairs {
  text::Sentences premises, hypotheses;

  bool is_cut(int64_t i) const {
    const auto whole = [](std::span<const int32_t> ids) { return ids.back() == text::Vocabulary::kEnd; };
    return !whole(premises[i]) || !whole(hypotheses[i]);
  }
};

/// Pairs of which the model reads the beginning alone.
class Cuts {
 public:
  void add(const EncodedPairs& pairs, int64_t i, int64_t line) {
    if (pairs.is_cut(i) && count_++ == 0) first_ = line;
  }
  void warn(const std::string& file, int64_t longest) const {
    if (count_ == 0) return;
    std::cerr << fmt::format(
        "regard: warning: {}: {} a side of more than {} pieces, of which the model reads no more (the first "
        "is line {}); train with a larger --longest\n",
        file, count_ == 1 ? "1 pair has" : fmt::format("{} pairs have", count_), longest, first_);
  }

 private:
  int64_t count_ = 0, first_ = 0;
};

EncodedPairs encode(const models::TrainedClassifier& classifier, std::span<const text::LabelledPair> pairs) {
  std::vector<std::string> premises, hypotheses;
  for (const auto& pair : pairs) {
    premises.push_back(pair.premise);
    hypotheses.push_back(pair.hypothesis);
  }
  return {text::encode_lines(*classifier.vocabulary, premises, classifier.longest),
          text::encode_lines(*classifier.vocabulary, hypotheses, classifier.longest)};
}

boost::json::object pair_json(const models::TrainedClassifier& classifier, const EncodedPairs& pairs,
                              int64_t number, const decoding::Classification& found) {
  boost::json::object probabilities;
  for (size_t c = 0; c < classifier.labels.size(); ++c)
    probabilities[classifier.labels[c]] = found.probabilities[c];
  const auto matrix = alignment::word_matrix({*classifier.vocabulary, pairs.hypotheses[number]},
                                             {*classifier.vocabulary, pairs.premises[number]}, found.alpha);
  boost::json::object attention = matrix_json(matrix, "hypothesis", "premise");
  return {{"label", classifier.labels[static_cast<size_t>(found.best)]},
          {"probabilities", std::move(probabilities)},
          {"hypothesis", attention["hypothesis"]},
          {"premise", attention["premise"]},
          {"attention", attention["weights"]}};
}

/// Standard input, premise TAB hypothesis, to standard output, label TAB probability, line for line.
void classify_lines(const EntailArguments& a, const Common& common) {
  const auto classifier = models::load_classifier(a.model);
  ThreadPool pool(common.thread_count());
  std::vector<text::LabelledPair> pairs;
  Cuts cuts;
  int64_t number = 0;
  const auto write = [&] {
    const EncodedPairs encoded = encode(classifier, pairs);
    const auto found =
        decoding::classify(*classifier.model, encoded.premises, encoded.hypotheses, pool, common.json);
    for (size_t i = 0; i < found.size(); ++i) {
      cuts.add(encoded, static_cast<int64_t>(i), pairs[i].line);
      const auto best = static_cast<size_t>(found[i].best);
      if (common.json)
        std::cout << json_text(pair_json(classifier, encoded, static_cast<int64_t>(i), found[i]));
      else
        std::cout << fmt::format("{}\t{:.4f}\n", classifier.labels[best], found[i].probabilities[best]);
    }
    flush_results();
    pairs.clear();
  };
  for (std::string line; read_input_line(line, number == 0);) {
    ++number;
    if (text::is_blank(line)) {
      write();
      std::cout << (common.json ? "{}" : line) << "\n";
      continue;
    }
    try {
      pairs.push_back(text::labelled_pair(line, false, "standard input", number));
    } catch (const DataError&) {
      write();  // what stands before it
      throw;
    }
    if (pairs.size() == kLines) write();
  }
  write();
  if (!common.quiet) cuts.warn("standard input", classifier.longest);
}

/// How often each label was called each class.
struct Confusion {
  std::vector<std::string> labels;
  std::vector<std::vector<int64_t>> counts;  // [label][class]

  int64_t total() const {
    int64_t sum = 0;
    for (const auto& row : counts)
      for (const int64_t n : row) sum += n;
    return sum;
  }
  int64_t right() const {
    int64_t sum = 0;
    for (size_t c = 0; c < counts.size(); ++c) sum += counts[c][c];
    return sum;
  }
};

/// With `binary`, all other labels are one: "not NAME".
size_t class_of(const std::string& label, const std::vector<std::string>& classes, const std::string& binary,
                const text::LabelledPair& pair, const std::string& file) {
  if (!binary.empty()) return label == binary ? 0 : 1;
  const auto found = std::find(classes.begin(), classes.end(), label);
  if (found == classes.end())
    throw DataError(
        file, pair.line,
        "the label \"" + label + "\" is none of the model's; --binary LABEL tells one from all others");
  return static_cast<size_t>(found - classes.begin());
}

Confusion confusion_of(const models::TrainedClassifier& classifier, const EntailArguments& a, bool quiet,
                       ThreadPool& pool) {
  Confusion confusion;
  confusion.labels = a.binary.empty() ? classifier.labels : std::vector{a.binary, "not " + a.binary};
  const size_t classes = confusion.labels.size();
  confusion.counts.assign(classes, std::vector<int64_t>(classes));
  for (const std::string& file : a.test) {
    const auto pairs = text::read_labelled(file);
    const EncodedPairs encoded = encode(classifier, pairs);
    const auto found = decoding::classify(*classifier.model, encoded.premises, encoded.hypotheses, pool);
    Cuts cuts;
    for (size_t i = 0; i < pairs.size(); ++i) {
      cuts.add(encoded, static_cast<int64_t>(i), pairs[i].line);
      const auto at = [&](const std::string& label) {
        return class_of(label, classifier.labels, a.binary, pairs[i], file);
      };
      ++confusion.counts[at(pairs[i].label)][at(classifier.labels[static_cast<size_t>(found[i].best)])];
    }
    if (!quiet) cuts.warn(file, classifier.longest);
  }
  if (confusion.total() == 0) throw DataError(a.test[0], 0, "has no pairs; there is nothing to test");
  return confusion;
}

/// Wilson's 95 % interval of a share.
std::pair<double, double> interval(double share, double n) {
  constexpr double z = 1.959964;
  const double middle = (share + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return {middle - half, middle + half};
}

void test(const EntailArguments& a, const Common& common) {
  const auto classifier = models::load_classifier(a.model);
  if (!a.binary.empty() &&
      std::find(classifier.labels.begin(), classifier.labels.end(), a.binary) == classifier.labels.end())
    throw UsageError(
        fmt::format("--binary {}: the model's labels are {}", a.binary, fmt::join(classifier.labels, ", ")));
  ThreadPool pool(common.thread_count());
  const Confusion confusion = confusion_of(classifier, a, common.quiet, pool);
  const auto n = static_cast<double>(confusion.total());
  const double share = static_cast<double>(confusion.right()) / n;
  const auto [low, high] = interval(share, n);
  if (common.json) {
    boost::json::object rows;
    for (size_t label = 0; label < confusion.labels.size(); ++label) {
      boost::json::object row;
      for (size_t c = 0; c < confusion.labels.size(); ++c)
        row[confusion.labels[c]] = confusion.counts[label][c];
      rows[confusion.labels[label]] = std::move(row);
    }
    std::cout << json_text(boost::json::object{
        {"accuracy", share}, {"interval", {low, high}}, {"pairs", confusion.total()}, {"confusion", rows}});
    return;
  }
  std::cout << fmt::format("accuracy = {:.2f} % of {} pairs (95 %: {:.2f} to {:.2f})\n", 100 * share,
                           confusion.total(), 100 * low, 100 * high);
  size_t width = 5;
  for (const auto& label : confusion.labels) width = std::max(width, label.size());
  std::cout << fmt::format("{:{}}", "label", width);
  for (const auto& label : confusion.labels) std::cout << fmt::format("  {:>{}}", label, width);
  std::cout << "   called\n";
  for (size_t label = 0; label < confusion.labels.size(); ++label) {
    std::cout << fmt::format("{:{}}", confusion.labels[label], width);
    for (const int64_t count : confusion.counts[label]) std::cout << fmt::format("  {:>{}}", count, width);
    std::cout << "\n";
  }
}

}  // namespace

void add_entail(CLI::App& app, Common& common) {
  auto* verb =
      app.add_subcommand("entail", "Does a sentence follow from another? Label and probability a line");
  auto a = std::make_shared<EntailArguments>();
  verb->add_option("DIR", a->model, "The directory of a classifier (train --model decomposable)")->required();
  verb->add_option(
          "--test", a->test,
          "Instead of reading lines: accuracy on pairs with labels, TSV of premise, hypothesis, label")
      ->type_name("FILE");
  verb->add_option("--binary", a->binary, "Of --test: this label against all others as one")
      ->type_name("LABEL");
  verb->footer(
      "Examples:\n"
      "  regard train --model decomposable --vocabulary words --data pairs.tsv --output model\n"
      "  printf 'A man sleeps\\tA man is awake\\n' | regard entail model\n"
      "  regard entail model --test test.tsv\n"
      "A line holds premise TAB hypothesis; further columns are ignored, and a blank line comes back. With\n"
      "--json a line also tells all probabilities and what each word of the premise attends to.");
  verb->callback([a, &common] {
    if (a->test.empty() && !a->binary.empty()) throw UsageError("--binary goes with --test F.tsv");
    a->test.empty() ? classify_lines(*a, common) : test(*a, common);
  });
}

}  // namespace regard::cli
