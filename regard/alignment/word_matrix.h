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

/// Ids of one sentence and the vocabulary that they belong to.
struct Pieces {
  const text::Vocabulary& vocabulary;
  std::span<const int32_t> ids;
};

/// Attention of words, weights[target piece][source piece]: sub-words' rows are averaged, their columns
/// summed.
pictures::AttentionMatrix word_matrix(const Pieces& source, const Pieces& target,
                                      std::span<const std::vector<float>> weights);

/// The same of a translation. The end symbols' row and column are kept, as </s>. Source ids hold their end
/// symbol. Throws UsageError if the model has no attention.
pictures::AttentionMatrix word_matrix(const models::TrainedModel& trained,
                                      std::span<const int32_t> source_ids,
                                      const decoding::Hypothesis& hypothesis);

/// Links (source word, target word), from 0: each target word but the end symbol to the source word (end
/// symbol excluded) with most weight.
std::vector<std::pair<int64_t, int64_t>> links(const pictures::AttentionMatrix& matrix);

/// Links as Pharaoh writes them: "0-0 1-2".
std::string pharaoh(std::span<const std::pair<int64_t, int64_t>> links);

}  // namespace regard::alignment
