#pragma once
// Greedy and beam search over many sentences at once.

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/frozen_weights.h"
#include "regard/base/thread_pool.h"
#include "regard/models/model.h"

namespace regard::decoding {

struct SearchOptions {
  int64_t beam = 4;  ///< 1: greedy
  double length_penalty =
      1;  ///< score = log-probability / (tokens with the end symbol)^length_penalty, applied once
  int64_t max_length = 0;  ///< tokens; 0: twice the source's length and 10 more
  /// No three tokens in a row are written twice in a hypothesis (Paulus, Xiong and Socher 2017,
  /// arXiv:1705.04304, 2.5): what would make it so has probability 0, and the others keep theirs.
  bool no_repeat_trigrams = false;
  int64_t sentences = 64;  ///< so many go through the decoder together; results do not depend on it
};

struct Hypothesis {
  std::vector<int32_t> ids;  ///< without the end symbol
  double score =
      0;  ///< normalised, see length_penalty; one cut at max_length is normalised by its own length
  bool complete = false;  ///< false: cut at max_length
  /// [ids.size() + 1 (the end symbol's row last; absent if cut), source length]: what each token attended to.
  /// Empty if the model has no attention.
  std::vector<std::vector<float>> attention;
};

/// The hypotheses of every sentence, best first, at most `beam` each; ties go to the lower token number. A
/// sentence's result is the same, to the bit, alone and in any batch and for any number of threads. Sources
/// hold their end symbol. `frozen` holds the model's weights if they are packed already. With `prompts`, one
/// a sentence, every hypothesis begins with the sentence's prompt, which counts neither for its score nor for
/// max_length.
std::vector<std::vector<Hypothesis>> search(const models::EncoderDecoder& model,
                                            std::span<const std::span<const int32_t>> sources,
                                            const SearchOptions& options, ThreadPool& pool,
                                            const autograd::FrozenWeights* frozen = nullptr,
                                            std::span<const std::span<const int32_t>> prompts = {});

}  // namespace regard::decoding
