#pragma once
// Results that several verbs print as JSON.

#include <boost/json.hpp>
#include <cstdint>
#include <span>
#include <utility>

#include "regard/pictures/matrix.h"

namespace regard::cli {

/// [[source word, target word], ...]
inline boost::json::array links_json(std::span<const std::pair<int64_t, int64_t>> links) {
  boost::json::array list;
  for (const auto& [source, target] : links) list.push_back(boost::json::array{source, target});
  return list;
}

/// {"source": [words], "target": [words], "weights": [[of a target word], ...]}; what stands in columns and
/// rows may have other names.
inline boost::json::object matrix_json(const pictures::AttentionMatrix& matrix,
                                       const char* columns = "source", const char* rows = "target") {
  boost::json::array weights;
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    const float* const row = matrix.weights.data() + t * matrix.source.size();
    weights.push_back(boost::json::array(row, row + matrix.source.size()));
  }
  return {{columns, boost::json::array(matrix.source.begin(), matrix.source.end())},
          {rows, boost::json::array(matrix.target.begin(), matrix.target.end())},
          {"weights", std::move(weights)}};
}

}  // namespace regard::cli
