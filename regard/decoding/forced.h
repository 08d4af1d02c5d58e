#pragma once
// Given translations through the decoder: their log-probabilities, and what each word attended to.

#include <span>
#include <vector>

#include "regard/decoding/search.h"

namespace regard::decoding {

/// One hypothesis a pair: ids = the target without end symbol, score = log-probability in nats, end symbol
/// included (not normalised), attention as search() gives it. Sources hold their end symbol, targets do not.
/// A pair's result is the same, to the bit, alone and in any batch and for any number of threads.
std::vector<Hypothesis> force(const models::EncoderDecoder& model,
                              std::span<const std::span<const int32_t>> sources,
                              std::span<const std::span<const int32_t>> targets, ThreadPool& pool,
                              const autograd::FrozenWeights* frozen = nullptr);

}  // namespace regard::decoding
