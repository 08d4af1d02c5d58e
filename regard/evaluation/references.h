#pragma once
// Inside evaluation only: what every metric of a whole text checks first.

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regard/base/error.h"

namespace regard::evaluation {

/// Throws ShapeError, naming `metric`, unless every set of references has as many lines as the hypothesis.
inline void check_references(std::string_view metric, std::span<const std::string> hypotheses,
                             std::span<const std::vector<std::string>> reference_sets) {
  for (const auto& set : reference_sets) {
    if (set.size() == hypotheses.size()) continue;
    throw ShapeError(fmt::format("[{}] references [{}], expected [{}] (lines of the hypothesis)", metric,
                                 set.size(), hypotheses.size()));
  }
}

}  // namespace regard::evaluation
