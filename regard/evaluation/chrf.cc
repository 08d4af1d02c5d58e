#include "regard/evaluation/chrf.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "regard/base/error.h"
#include "regard/evaluation/ngrams.h"
#include "regard/evaluation/references.h"
#include "regard/evaluation/unicode.h"
#include "regard/evaluation/version.h"

namespace regard::evaluation {
namespace {

constexpr size_t kCharacterOrder = 6;
constexpr size_t kWordOrder = 2;
constexpr double kBetaSquared = 4;

struct Counted {
  int64_t hypothesis = 0, reference = 0, matched = 0;
};

// The characters' orders, then the words'; those of the words stay zero in chrF.
using Statistics = std::array<Counted, kCharacterOrder + kWordOrder>;

std::u32string without_space(std::u32string_view text) {
  std::u32string result;
  for (const auto word : split_words(text)) result += word;
  return result;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') ||
         (c >= U'{' && c <= U'~');
}

// Words with one punctuation mark cut off: the last character's,
// or else the first's ("(hi)" gives "(hi" and ")").
std::vector<std::u32string_view> words_without_punctuation(std::u32string_view text) {
  std::vector<std::u32string_view> result;
  for (const auto word : split_words(text)) {
    size_t cut = 0;
    if (word.size() > 1 && is_ascii_punctuation(word.back())) {
      cut = word.size() - 1;
    } else if (word.size() > 1 && is_ascii_punctuation(word.front())) {
      cut = 1;
    }
    if (cut > 0) result.push_back(word.substr(0, cut));
    result.push_back(word.substr(cut));
  }
  return result;
}

Counted count(std::u32string_view hypothesis, std::u32string_view reference, size_t n) {
  if (reference.size() < n) return {};
  const auto number = [n](std::u32string_view text) {
    return text.size() < n ? 0 : static_cast<int64_t>(text.size() - n + 1);
  };
  return {number(hypothesis), number(reference),
          matches(count_ngrams(hypothesis, n), count_ngrams(reference, n))};
}

Statistics line_statistics(const std::u32string& hypothesis, const std::u32string& reference, ChrfKind kind) {
  Statistics result;
  const std::u32string hypothesis_characters = without_space(hypothesis);
  const std::u32string reference_characters = without_space(reference);
  for (size_t n = 1; n <= kCharacterOrder; ++n) {
    result[n - 1] = count(hypothesis_characters, reference_characters, n);
  }
  if (kind == ChrfKind::chrf) return result;
  WordNumbers numbers;
  const std::u32string hypothesis_words = numbers(words_without_punctuation(hypothesis));
  const std::u32string reference_words = numbers(words_without_punctuation(reference));
  for (size_t n = 1; n <= kWordOrder; ++n) {
    result[kCharacterOrder + n - 1] = count(hypothesis_words, reference_words, n);
  }
  return result;
}

// 100 F of the precision and recall averaged over the orders that both sides have.
double f_score(const Statistics& statistics) {
  double precision = 0, recall = 0;
  int orders = 0;
  for (const Counted& order : statistics) {
    if (order.hypothesis == 0 || order.reference == 0) continue;
    precision += static_cast<double>(order.matched) / static_cast<double>(order.hypothesis);
    recall += static_cast<double>(order.matched) / static_cast<double>(order.reference);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * ((1 + kBetaSquared) * precision * recall / (kBetaSquared * precision + recall));
}

void add(Statistics& sum, const Statistics& line) {
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i].hypothesis += line[i].hypothesis;
    sum[i].reference += line[i].reference;
    sum[i].matched += line[i].matched;
  }
}

}  // namespace

Chrf corpus_chrf(std::span<const std::string> hypotheses, std::span<const std::string> references,
                 ChrfKind kind) {
  const std::vector<std::string> only(references.begin(), references.end());
  return corpus_chrf(hypotheses, std::span(&only, 1), kind);
}

Chrf corpus_chrf(std::span<const std::string> hypotheses,
                 std::span<const std::vector<std::string>> reference_sets, ChrfKind kind) {
  if (reference_sets.empty()) throw ShapeError("[corpus_chrf] 0 references of a line, expected at least 1");
  check_references("corpus_chrf", hypotheses, reference_sets);
  Statistics sum;
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    const std::u32string hypothesis = code_points(hypotheses[line]);
    Statistics best;
    double best_score = -1;
    for (const auto& set : reference_sets) {
      const Statistics statistics = line_statistics(hypothesis, code_points(set[line]), kind);
      const double score = f_score(statistics);
      if (score > best_score) {
        best_score = score;
        best = statistics;
      }
    }
    add(sum, best);
  }
  const size_t words = kind == ChrfKind::chrf ? 0 : kWordOrder;
  return {f_score(sum), fmt::format("nrefs:{}|case:mixed|eff:yes|nc:{}|nw:{}|space:no|version:{}",
                                    reference_sets.size(), kCharacterOrder, words, kMetricsVersion)};
}

}  // namespace regard::evaluation
