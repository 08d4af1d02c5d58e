#pragma once
// Inside pictures only: what every matrix picture checks and asks first.

#include <array>
#include <cstdint>
#include <string>

#include "regard/base/error.h"
#include "regard/pictures/matrix.h"

namespace regard::pictures {

/// Throws ShapeError unless there is one weight for each pair of words.
inline void check_shape(const AttentionMatrix& matrix) {
  if (matrix.weights.size() == matrix.source.size() * matrix.target.size()) return;
  const std::array<int64_t, 1> weights = {static_cast<int64_t>(matrix.weights.size())};
  const std::array<int64_t, 2> words = {static_cast<int64_t>(matrix.target.size()),
                                        static_cast<int64_t>(matrix.source.size())};
  throw ShapeError("[attention matrix] weights " + shape_text(weights) + ", expected " + shape_text(words) +
                   " (target words, source words)");
}

inline float weight_at(const AttentionMatrix& matrix, size_t target, size_t source) {
  return matrix.weights[target * matrix.source.size() + source];
}

}  // namespace regard::pictures
