#pragma once
// Guided alignment (Chen, Matusov, Khadivi and Peter 2016, arXiv:1607.01628): word links of the training
// pairs that attention should follow, from a file in Pharaoh's form.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "regard/evaluation/alignment_error.h"
#include "regard/models/model.h"
#include "regard/text/batches.h"

namespace regard::training {

/// Links (source word, target word) of every pair, from 0; words are what blanks part.
using WordLinks = std::vector<std::vector<evaluation::Link>>;

/// Line i holds the links of pair i, sure and possible ones alike; an empty line has none. Throws DataError
/// naming the file and the line of what is no link or speaks of a word that the pair lacks, or both counts if
/// there are more or fewer lines than pairs.
WordLinks read_word_links(const std::filesystem::path& path, std::span<const std::string> source,
                          std::span<const std::string> target);

/// One side of the training data.
struct GuidedSide {
  const text::Vocabulary& vocabulary;
  std::span<const std::string> lines;
  const text::Sentences& sentences;
};

/// From words to pieces: every piece of a linked target word looks at all pieces of its source words, in
/// equal shares. Words that were cut off with a long line's end lose their links; a pair whose vocabulary
/// parts words elsewhere than at blanks has none.
std::vector<std::vector<models::GuidedLink>> guided_links(const WordLinks& links, const GuidedSide& source,
                                                          const GuidedSide& target);

}  // namespace regard::training
