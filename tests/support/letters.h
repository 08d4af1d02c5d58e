#pragma once
// A task that a model either learns or does not: to copy letters, or to write them in reverse.

#include <cstdint>
#include <string>

#include "regard/base/random.h"
#include "regard/training/session.h"

namespace regard::tests {

/// `count` lines of letters and the same (or reversed) as targets.
inline training::Lines letters(int count, bool reverse) {
  training::Lines lines;
  RandomStream random(5, 9);
  for (int i = 0; i < count; ++i) {
    std::string source, target;
    const auto length = 2 + random.below(5);
    for (uint64_t k = 0; k < length; ++k) {
      const auto letter = static_cast<char>('a' + random.below(8));
      source += letter;
      target = reverse ? letter + target : target + letter;
    }
    lines.source.push_back(source);
    lines.target.push_back(target);
  }
  lines.dev_source.assign(lines.source.begin(), lines.source.begin() + 30);
  lines.dev_target.assign(lines.target.begin(), lines.target.begin() + 30);
  return lines;
}

}  // namespace regard::tests
