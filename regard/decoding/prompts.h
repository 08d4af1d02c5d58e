#pragma once
// What decoding does with texts that begin with given words.

#include <span>
#include <vector>

#include "regard/models/model.h"

namespace regard::decoding {

/// Where R hypotheses stand once the model has read what all their prompts have.
struct ReadPrompts {
  size_t read = 0;                ///< so many words of every prompt are done
  models::State state;            ///< before the step whose y_prev is `previous`
  std::vector<int32_t> previous;  ///< [R]
};

/// Reads the prompts as far as the shortest one goes, all positions at once where the model can.
ReadPrompts read_prompts(const models::EncoderDecoder& model,
                         std::span<const std::span<const int32_t>> prompts, const models::Memory& memory);

}  // namespace regard::decoding
