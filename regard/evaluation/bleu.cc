#include "regard/evaluation/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "regard/base/error.h"
#include "regard/evaluation/ngrams.h"
#include "regard/evaluation/references.h"
#include "regard/evaluation/version.h"

namespace regard::evaluation {
namespace {

enum class Order { full, effective };

double brevity_penalty(int64_t hypothesis, int64_t reference) {
  if (hypothesis >= reference) return 1;
  if (hypothesis == 0) return 0;
  return std::exp(1 - static_cast<double>(reference) / static_cast<double>(hypothesis));
}

// The reference length nearest to the hypothesis'; of two as near the shorter.
int64_t nearest(int64_t length, std::span<const int64_t> references) {
  return *std::min_element(references.begin(), references.end(), [&](int64_t a, int64_t b) {
    const int64_t distance_a = std::abs(length - a);
    const int64_t distance_b = std::abs(length - b);
    return distance_a != distance_b ? distance_a < distance_b : a < b;
  });
}

Bleu bleu(const BleuStatistics& statistics, Order order) {
  Bleu result;
  result.statistics = statistics;
  result.brevity_penalty = brevity_penalty(statistics.hypothesis_length, statistics.reference_length);
  if (std::all_of(statistics.counts.begin(), statistics.counts.end(), [](int64_t c) { return c == 0; })) {
    return result;
  }
  double halves = 1;
  size_t used = 0;
  double log_sum = 0;
  for (; used < kBleuOrder && statistics.totals[used] > 0; ++used) {
    auto matched = static_cast<double>(statistics.counts[used]);
    if (statistics.counts[used] == 0) matched = 1 / (halves *= 2);
    result.precisions[used] = 100 * matched / static_cast<double>(statistics.totals[used]);
    log_sum += std::log(result.precisions[used]);
  }
  if (order == Order::effective || used == kBleuOrder) {
    result.score = result.brevity_penalty * std::exp(log_sum / static_cast<double>(used));
  }
  return result;
}

std::string signature(size_t references, Order order, Tokenization tokenization) {
  return fmt::format("nrefs:{}|case:mixed|eff:{}|tok:{}|smooth:exp|version:{}", references,
                     order == Order::effective ? "yes" : "no", name(tokenization), kMetricsVersion);
}

}  // namespace

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  for (size_t n = 0; n < kBleuOrder; ++n) {
    counts[n] += other.counts[n];
    totals[n] += other.totals[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

BleuStatistics bleu_statistics(const std::string& hypothesis, std::span<const std::string> references,
                               Tokenization tokenization) {
  if (references.empty()) throw ShapeError("[bleu] 0 references of a line, expected at least 1");
  WordNumbers numbers;
  const std::u32string words = numbers(tokenize(hypothesis, tokenization));
  std::vector<std::u32string> reference_words;
  std::vector<int64_t> lengths;
  for (const std::string& reference : references) {
    reference_words.push_back(numbers(tokenize(reference, tokenization)));
    lengths.push_back(static_cast<int64_t>(reference_words.back().size()));
  }

  BleuStatistics result;
  result.hypothesis_length = static_cast<int64_t>(words.size());
  result.reference_length = nearest(result.hypothesis_length, lengths);
  for (size_t n = 1; n <= kBleuOrder; ++n) {
    NgramCounts allowed = count_ngrams(reference_words[0], n);
    for (size_t r = 1; r < reference_words.size(); ++r) {
      for (const auto& entry : count_ngrams(reference_words[r], n)) {
        int64_t& most = allowed[entry.first];
        most = std::max(most, entry.second);
      }
    }
    result.counts[n - 1] = matches(count_ngrams(words, n), allowed);
    result.totals[n - 1] = std::max<int64_t>(0, result.hypothesis_length - static_cast<int64_t>(n) + 1);
  }
  return result;
}

Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::string> references,
                 Tokenization tokenization) {
  const std::vector<std::string> only(references.begin(), references.end());
  return corpus_bleu(hypotheses, std::span(&only, 1), tokenization);
}

Bleu corpus_bleu(std::span<const std::string> hypotheses,
                 std::span<const std::vector<std::string>> reference_sets, Tokenization tokenization) {
  check_references("corpus_bleu", hypotheses, reference_sets);
  BleuStatistics sum;
  std::vector<std::string> references(reference_sets.size());
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    for (size_t r = 0; r < references.size(); ++r) references[r] = reference_sets[r][line];
    sum += bleu_statistics(hypotheses[line], references, tokenization);
  }
  Bleu result = bleu(sum, Order::full);
  result.signature = signature(reference_sets.size(), Order::full, tokenization);
  return result;
}

Bleu sentence_bleu(const std::string& hypothesis, std::span<const std::string> references,
                   Tokenization tokenization) {
  Bleu result = bleu(bleu_statistics(hypothesis, references, tokenization), Order::effective);
  result.signature = signature(references.size(), Order::effective, tokenization);
  return result;
}

}  // namespace regard::evaluation
