#pragma once
// Counts of n-grams, of characters or of words by number.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace regard::evaluation {

/// How often each n-gram stands in a text. The keys are views into the text that was counted.
using NgramCounts = std::unordered_map<std::u32string_view, int64_t>;

inline NgramCounts count_ngrams(std::u32string_view symbols, size_t n) {
  NgramCounts counts;
  if (symbols.size() < n) return counts;
  counts.reserve(symbols.size() - n + 1);
  for (size_t i = 0; i + n <= symbols.size(); ++i) ++counts[symbols.substr(i, n)];
  return counts;
}

/// N-grams that both have: the sum of the smaller counts.
inline int64_t matches(const NgramCounts& hypothesis, const NgramCounts& reference) {
  int64_t sum = 0;
  for (const auto& [ngram, count] : hypothesis) {
    const auto found = reference.find(ngram);
    if (found != reference.end()) sum += std::min(count, found->second);
  }
  return sum;
}

/// Gives equal words equal numbers, so that words are counted as characters are.
class WordNumbers {
 public:
  template <class Words>
  std::u32string operator()(const Words& words) {
    std::u32string result;
    for (const auto& word : words) {
      const auto next = static_cast<char32_t>(numbers_.size());
      result.push_back(numbers_.try_emplace(std::u32string(word), next).first->second);
    }
    return result;
  }

 private:
  std::unordered_map<std::u32string, char32_t> numbers_;
};

}  // namespace regard::evaluation
