#include "regard/evaluation/accuracy.h"

#include <fmt/format.h>

#include <algorithm>

#include "regard/base/error.h"

namespace regard::evaluation {

Accuracy accuracy(std::span<const std::string> hypotheses,
                  std::span<const std::vector<std::string>> reference_sets) {
  for (const auto& set : reference_sets) {
    if (set.size() != hypotheses.size()) {
      throw ShapeError(fmt::format("[accuracy] references [{}], expected [{}] (lines of the hypothesis)",
                                   set.size(), hypotheses.size()));
    }
  }
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
