#pragma once
// BLEU, Papineni et al. 2002 (aclanthology.org/P02-1040),
// with the smoothing and the numbers of sacreBLEU 2.6.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regard/evaluation/tokenization.h"

namespace regard::evaluation {

inline constexpr size_t kBleuOrder = 4;

/// What BLEU adds up over the lines; lines may be added in any order or grouping.
struct BleuStatistics {
  std::array<int64_t, kBleuOrder> counts{};  ///< n-grams of the hypothesis that a reference has too, n = 1..4
  std::array<int64_t, kBleuOrder> totals{};  ///< n-grams of the hypothesis
  int64_t hypothesis_length = 0;             ///< in tokens
  int64_t reference_length = 0;  ///< of each line's reference nearest in length, the shorter of two

  BleuStatistics& operator+=(const BleuStatistics& other);
};

struct Bleu {
  double score = 0;                             ///< 0 to 100
  std::array<double, kBleuOrder> precisions{};  ///< in percent, smoothed
  double brevity_penalty = 1;
  BleuStatistics statistics;
  std::string signature;  ///< "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:regard-0.1"
};

/// One line against its references (at least one). An empty line counts as one of length 0.
BleuStatistics bleu_statistics(const std::string& hypothesis, std::span<const std::string> references,
                               Tokenization tokenization);

/// BLEU of a whole text, one reference a line.
/// An order without a match gets 1/2, 1/4, ... of a match ("exp"); without any match,
/// or if no line has four tokens, the score is 0. Throws ShapeError if the numbers of lines differ.
Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::string> references,
                 Tokenization tokenization = Tokenization::mteval_13a);

/// The same with several references: reference_sets[r][line].
Bleu corpus_bleu(std::span<const std::string> hypotheses,
                 std::span<const std::vector<std::string>> reference_sets,
                 Tokenization tokenization = Tokenization::mteval_13a);

/// BLEU of one line, with effective order: only orders that the hypothesis is long enough for enter the mean.
/// Throws ShapeError without a reference.
Bleu sentence_bleu(const std::string& hypothesis, std::span<const std::string> references,
                   Tokenization tokenization = Tokenization::mteval_13a);

}  // namespace regard::evaluation
