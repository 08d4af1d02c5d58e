#pragma once
// Pairs of sentences through a classifier.

#include <span>
#include <vector>

#include "regard/base/thread_pool.h"
#include "regard/models/model.h"
#include "regard/text/batches.h"

namespace regard::decoding {

/// What a classifier says of one pair.
struct Classification {
  std::vector<double> probabilities;      ///< of every class; they add up to 1
  int32_t best = 0;                       ///< the most probable class, the lower of equals
  std::vector<std::vector<float>> alpha;  ///< [source, target] what each source word attends to, if asked for
};

/// The classes of all pairs, in their order. A pair's result is the same, to the bit, alone and among others
/// and for any number of threads.
std::vector<Classification> classify(const models::Classifier& model, const text::Sentences& source,
                                     const text::Sentences& target, ThreadPool& pool,
                                     bool with_attention = false);

/// The share of pairs whose most probable class is their label; 0 for no pairs.
double accuracy(const models::Classifier& model, const text::Sentences& source, const text::Sentences& target,
                std::span<const int32_t> labels, ThreadPool& pool);

}  // namespace regard::decoding
