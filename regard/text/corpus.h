#pragma once
// Clean, distinct, held-out line files from pairs.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "regard/text/readers.h"

namespace regard::text {

struct CorpusOptions {
  int64_t dev = 0;          ///< lines to hold out for development
  double dev_fraction = 0;  ///< this share of the distinct sources, if it is more
  int64_t test = 0;         ///< lines to hold out for testing
  uint64_t seed = 1;
  int64_t longest_words = 200;  ///< pairs with more words on a side are dropped
  bool drop_copies = false;     ///< drop pairs whose target is their source
};

struct Corpus {
  std::vector<Pair> train, dev, test;  ///< as lines: no U+000A inside
  int64_t read = 0;
  int64_t empty = 0;       ///< dropped: a side holds nothing but spaces
  int64_t copies = 0;      ///< dropped: target = source
  int64_t overlong = 0;    ///< dropped: too many words
  int64_t duplicates = 0;  ///< dropped: the same source and target again
  int64_t held_out = 0;    ///< dropped: other translations of a source that was held out

  int64_t distinct() const {
    return static_cast<int64_t>(train.size() + dev.size() + test.size()) + held_out;
  }
};

/// Cleans pairs and holds out by distinct source: a source of dev or test occurs once, and nowhere else. A
/// function of (pairs, options) only; train, dev and test keep the pairs' order. Throws UsageError for
/// negative numbers and DataError if no pair would be left to train on.
Corpus build_corpus(std::span<const Pair> pairs, const CorpusOptions& options);

/// Writes train.SRC, train.TGT and, where not empty, dev.* and test.*; each atomically.
/// Creates the folder; removes dev.* and test.* of an earlier run
/// where this one holds out nothing, for their sources may be in train now.
void write_corpus(const Corpus& corpus, const std::filesystem::path& folder,
                  const std::string& source_language, const std::string& target_language);

}  // namespace regard::text
