#pragma once
// Text drawn from a language model, word by word.

#include <cstdint>
#include <span>
#include <vector>

#include "regard/decoding/search.h"

namespace regard::decoding {

struct SamplingOptions {
  double temperature = 1;  ///< p ~ exp(logit / temperature); 0: always the most probable
  int64_t top_k = 0;       ///< drawn among so many of the most probable; 0: all
  double top_p = 1;        ///< among the fewest whose share reaches this: the nucleus, Holtzman et al. 2020,
                           ///< arXiv:1904.09751; of what top_k leaves
  int64_t max_length = 200;  ///< tokens behind the prompt
  uint64_t seed = 1;
  int64_t sentences = 64;  ///< so many go through the model together; results do not depend on it
};

/// The token that a uniform number u in [0, 1) stands for. The last of the logits, the begin symbol's, is
/// never it. Equal logits: the lower number first.
int32_t draw(std::span<const float> logits, const SamplingOptions& options, double u);

/// Prompt i continued by draws, until the end symbol or max_length. ids: prompt and continuation without end
/// symbol; score: the continuation's log-probability under the model in nats, end symbol included, whatever
/// the temperature. Draws depend on (seed, first_number + i, place behind the prompt) alone: a prompt's
/// result is the same, to the bit, alone and in any batch and for any number of threads. Throws UsageError.
std::vector<Hypothesis> sample(const models::EncoderDecoder& model,
                               std::span<const std::span<const int32_t>> prompts, int64_t first_number,
                               const SamplingOptions& options, ThreadPool& pool,
                               const autograd::FrozenWeights* frozen = nullptr);

}  // namespace regard::decoding
