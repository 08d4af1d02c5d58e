#include "regard/evaluation/accuracy.h"

#include <algorithm>

#include "regard/evaluation/references.h"

namespace regard::evaluation {

Accuracy accuracy(std::span<const std::string> hypotheses,
                  std::span<const std::vector<std::string>> reference_sets) {
  check_references("accuracy", hypotheses, reference_sets);
  Accuracy result;
  for (size_t line = 0; line < hypotheses.size(); ++line) {
    const auto right = [&](const std::vector<std::string>& set) { return set[line] == hypotheses[line]; };
    if (std::any_of(reference_sets.begin(), reference_sets.end(), right)) ++result.correct;
  }
  result.lines = static_cast<int64_t>(hypotheses.size());
  if (result.lines > 0) {
    result.score = 100 * static_cast<double>(result.correct) / static_cast<double>(result.lines);
  }
  return result;
}

Accuracy accuracy(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  const std::vector<std::string> only(references.begin(), references.end());
  return accuracy(hypotheses, std::span(&only, 1));
}

}  // namespace regard::evaluation
