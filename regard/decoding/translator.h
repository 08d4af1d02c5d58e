#pragma once
// Lines of text through a trained model: what every door of the product (command, server, libraries) calls.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "regard/decoding/search.h"
#include "regard/models/directory.h"

namespace regard::decoding {

/// A line's hypotheses. A line of white space only has none and comes back as it is.
struct Translated {
  bool blank = false;
  int64_t parts = 1;  ///< a line longer than the model was trained on is translated in so many pieces
  std::vector<int32_t> source_ids;     ///< of all parts, one end symbol at the end
  bool attention_left_out = false;     ///< of a line so long that its matrix would not fit
  std::vector<Hypothesis> hypotheses;  ///< best first; of several parts: joined, attention within each part
};

/// What the caller will look at; the rest is not kept.
struct Wanted {
  int64_t hypotheses = std::numeric_limits<int64_t>::max();
  bool attention = true;
};

/// The attention of a line in parts is left out beyond so many numbers (64 MiB).
constexpr int64_t kLargestMatrix = int64_t{1} << 24;

/// Translates lines. What was longer than the model's training sentences is cut at sentence ends or words,
/// translated in parts and joined, so that nothing is lost. Results do not depend on the other lines. Time
/// grows with the length of the text, memory with that of its translations and, up to kLargestMatrix, the
/// square of a line's length.
std::vector<Translated> translate(const models::TrainedModel& trained, std::span<const std::string> lines,
                                  const SearchOptions& options, ThreadPool& pool, const Wanted& wanted = {});

/// The text of a hypothesis, one line: what would end a line is written as line_of() writes it. With
/// `replace_unknown`, an unknown word is written as the source word with most attention (Luong et al. 2015,
/// arXiv:1410.8206); `line` is the source line.
std::string text_of(const models::TrainedModel& trained, const Translated& translated,
                    const Hypothesis& hypothesis, const std::string& line, bool replace_unknown);

/// Where to cut pieces longer than `longest`: ends of parts, the last one ids.size(). After a word that ends
/// a sentence, else after a word, else anywhere.
std::vector<int64_t> part_ends(const text::Vocabulary& vocabulary, std::span<const int32_t> ids,
                               int64_t longest);

}  // namespace regard::decoding
