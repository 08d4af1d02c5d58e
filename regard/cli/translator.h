#pragma once
// Lines through a trained model: what translate, view, align and report share.

#include <span>
#include <string>
#include <vector>

#include "regard/base/thread_pool.h"
#include "regard/decoding/search.h"
#include "regard/models/directory.h"
#include "regard/pictures/matrix.h"

namespace regard::cli {

/// A line's hypotheses. Lines of white space only come back as they are: `untouched`.
struct Translated {
  bool untouched = false;
  std::vector<int32_t> source_ids;  ///< with end symbol
  std::vector<decoding::Hypothesis> hypotheses;
};

std::vector<Translated> translate_lines(const models::TrainedModel& model, std::span<const std::string> lines,
                                        const decoding::SearchOptions& options, ThreadPool& pool);

/// Only white space (ASCII, NBSP, U+2000..200A, U+3000 ...) or nothing at all.
bool is_blank(const std::string& line);

/// Attention of words: sub-words' rows are averaged, their columns summed. The end symbols' row and column
/// are kept, as </s>.
pictures::AttentionMatrix word_matrix(const models::TrainedModel& model, std::span<const int32_t> source_ids,
                                      const decoding::Hypothesis& hypothesis);

/// Attention of a given translation (teacher-forced), and its log-probability in nats, end symbol included.
decoding::Hypothesis force(const models::TrainedModel& model, std::span<const int32_t> source_ids,
                           std::span<const int32_t> target_ids);

/// Pharaoh links i-j of words: each target word but the end symbol to the source word (end symbol excluded)
/// with most weight.
std::string pharaoh_links(const pictures::AttentionMatrix& matrix);

}  // namespace regard::cli
