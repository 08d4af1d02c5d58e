#pragma once
// The share of lines that are exactly right.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regard::evaluation {

struct Accuracy {
  double score = 0;  ///< in percent; 0 for no lines
  int64_t correct = 0;
  int64_t lines = 0;
};

/// Lines that equal a reference byte for byte; reference_sets[r][line].
/// Throws ShapeError if the numbers of lines differ.
Accuracy accuracy(std::span<const std::string> hypotheses,
                  std::span<const std::vector<std::string>> reference_sets);

/// The same with one reference a line.
Accuracy accuracy(std::span<const std::string> hypotheses, std::span<const std::string> references);

}  // namespace regard::evaluation
