#pragma once
// Alignments of words, read off the attention of sub-words.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regard/decoding/search.h"
#include "regard/models/directory.h"
#include "regard/pictures/matrix.h"

namespace regard::alignment {

/// Attention of words: sub-words' rows are averaged, their columns summed. The end symbols' row and column
/// are kept, as </s>. Source ids hold their end symbol. Throws UsageError if the model has no attention.
pictures::AttentionMatrix word_matrix(const models::TrainedModel& trained,
                                      std::span<const int32_t> source_ids,
                                      const decoding::Hypothesis& hypothesis);

/// Links (source word, target word), from 0: each target word but the end symbol to the source word (end
/// symbol excluded) with most weight.
std::vector<std::pair<int64_t, int64_t>> links(const pictures::AttentionMatrix& matrix);

/// Links as Pharaoh writes them: "0-0 1-2".
std::string pharaoh(std::span<const std::pair<int64_t, int64_t>> links);

}  // namespace regard::alignment
