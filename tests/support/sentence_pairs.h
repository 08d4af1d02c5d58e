#pragma once
// Pairs of sentences, written as lists of lists.

#include <cstdint>
#include <vector>

#include "regard/models/model.h"

namespace regard::tests {

using Words = std::vector<std::vector<int32_t>>;

/// Spans of what is given, which has to outlive them.
inline models::SentencePairs sentence_pairs(const Words& sources, const Words& targets) {
  models::SentencePairs pairs;
  for (const auto& source : sources) pairs.sources.emplace_back(source);
  for (const auto& target : targets) pairs.targets.emplace_back(target);
  return pairs;
}

}  // namespace regard::tests
