#include "regard/evaluation/rouge.h"

#include <algorithm>

#include "regard/base/error.h"
#include "regard/evaluation/ngrams.h"
#include "regard/evaluation/references.h"
#include "regard/evaluation/unicode.h"

namespace regard::evaluation {
namespace {

constexpr char32_t kCapitalIWithDot = U'\u0130', kKelvin = U'\u212A';  // their small letters are i and k

/// The line's words, a number each.
std::u32string words_of(const std::string& line, WordNumbers& numbers) {
  std::vector<std::u32string> words;
  std::u32string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (const char32_t c : code_points(line)) {
    if (c >= U'A' && c <= U'Z') {
      word += c - U'A' + U'a';
    } else if ((c >= U'a' && c <= U'z') || (c >= U'0' && c <= U'9')) {
      word += c;
    } else if (c == kKelvin) {
      word += U'k';
    } else {
      if (c == kCapitalIWithDot) word += U'i';  // and a combining dot, which ends the word
      end_word();
    }
  }
  end_word();
  return numbers(words);
}

int64_t ngrams_in(const std::u32string& words, size_t n) {
  return words.size() < n ? 0 : static_cast<int64_t>(words.size() - n + 1);
}

double f1(int64_t common, int64_t hypothesis, int64_t reference) {
  if (common == 0) return 0;
  const double precision = static_cast<double>(common) / static_cast<double>(hypothesis);
  const double recall = static_cast<double>(common) / static_cast<double>(reference);
  return 2 * precision * recall / (precision + recall);
}

double ngram_f1(const std::u32string& hypothesis, const std::u32string& reference, size_t n) {
  const int64_t common = matches(count_ngrams(hypothesis, n), count_ngrams(reference, n));
  return f1(common, ngrams_in(hypothesis, n), ngrams_in(reference, n));
}

/// The length of the longest common subsequence, row by row of its table.
int64_t common_subsequence(const std::u32string& a, const std::u32string& b) {
  std::vector<int64_t> row(b.size() + 1);
  for (const char32_t word : a) {
    int64_t diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t above = row[j];
      row[j] = word == b[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

Rouge rouge(std::span<const std::string> hypotheses,
            std::span<const std::vector<std::string>> reference_sets) {
  if (reference_sets.empty()) throw ShapeError("[rouge] 0 references of a line, expected at least 1");
  check_references("rouge", hypotheses, reference_sets);
  Rouge sum;
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    WordNumbers numbers;
    const std::u32string hypothesis = words_of(hypotheses[line], numbers);
    Rouge best;
    for (const auto& set : reference_sets) {
      const std::u32string reference = words_of(set[line], numbers);
      best.rouge1 = std::max(best.rouge1, ngram_f1(hypothesis, reference, 1));
      best.rouge2 = std::max(best.rouge2, ngram_f1(hypothesis, reference, 2));
      best.rougeL = std::max(best.rougeL, f1(common_subsequence(hypothesis, reference),
                                             ngrams_in(hypothesis, 1), ngrams_in(reference, 1)));
    }
    sum.rouge1 += best.rouge1;
    sum.rouge2 += best.rouge2;
    sum.rougeL += best.rougeL;
  }
  const auto lines = static_cast<double>(std::max<size_t>(hypotheses.size(), 1));
  return {sum.rouge1 / lines, sum.rouge2 / lines, sum.rougeL / lines};
}

RepeatedTrigrams repeated_trigrams(std::span<const std::string> lines) {
  RepeatedTrigrams result;
  for (const std::string& line : lines) {
    WordNumbers numbers;
    const std::u32string words = words_of(line, numbers);
    const auto distinct = static_cast<int64_t>(count_ngrams(words, 3).size());
    result.total += ngrams_in(words, 3);
    result.repeated += ngrams_in(words, 3) - distinct;
  }
  return result;
}

}  // namespace regard::evaluation
