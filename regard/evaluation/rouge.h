#pragma once
// ROUGE-1, -2 and -L, Lin 2004 (aclanthology.org/W04-1013), as the Python package rouge-score counts them
// without stemming; and how much a text repeats itself.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regard::evaluation {

/// Means of F1 over the lines, 0 to 1.
struct Rouge {
  double rouge1 = 0;  ///< words that both sides have
  double rouge2 = 0;  ///< pairs of neighbouring words
  double rougeL = 0;  ///< the longest common subsequence of words, a line being one sentence
};

/// Words are what is left of a line when capitals are small and everything but a-z and 0-9 is a space. With P
/// and R the shares of the hypothesis' and the reference's n-grams that are common, each as often as both
/// have it, F1 = 2 P R / (P + R), 0 if nothing is common or a side has no n-grams. Of several references,
/// reference_sets[r][line], each score takes the line's best. Throws ShapeError if the numbers of lines
/// differ or there is no reference; no lines score 0. Time of a line: the product of its two lengths.
Rouge rouge(std::span<const std::string> hypotheses,
            std::span<const std::vector<std::string>> reference_sets);

/// Trigrams of ROUGE's words that stand in their line a second time or more.
struct RepeatedTrigrams {
  int64_t repeated = 0, total = 0;
  double share() const { return total > 0 ? static_cast<double>(repeated) / static_cast<double>(total) : 0; }
};
RepeatedTrigrams repeated_trigrams(std::span<const std::string> lines);

}  // namespace regard::evaluation
