#pragma once
// A small English-French grammar for tests and demonstrations:
// "the small red house" is "la petite maison rouge".

#include <cstdint>
#include <vector>

#include "regard/text/readers.h"

namespace regard::text {

/// `count` pairs of distinct sources, a function of (count, seed); the first pairs do not depend on `count`.
/// Sentences are subject, verb, object and sometimes a place. French agrees in gender and number; size
/// adjectives stand before the noun, colours after it. Throws UsageError unless 0 <= count <= 1,000,000.
std::vector<Pair> toy_pairs(int64_t count, uint64_t seed);

}  // namespace regard::text
