#pragma once
// chrF, Popović 2015 (aclanthology.org/W15-3049), and chrF++, Popović 2017 (W17-4770),
// as sacreBLEU 2.6 counts them.

#include <span>
#include <string>
#include <vector>

namespace regard::evaluation {

/// chrF counts n-grams of 1..6 characters; chrF++ also those of 1 and 2 words.
enum class ChrfKind { chrf, chrf_plus_plus };

struct Chrf {
  double score = 0;       ///< 0 to 100
  std::string signature;  ///< "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:regard-0.1"
};

/// chrF of a whole text, one reference a line: matches, n-grams of the hypothesis and of the reference are
/// added over the lines for each order; precision and recall are averaged over the orders that both sides
/// have; then F = (1 + 4) P R / (4 P + R). Characters are Unicode code points without white space. An empty
/// line counts as one of length 0; where a reference is too short for an order, the hypothesis' n-grams of
/// that order do not count. Throws ShapeError if the numbers of lines differ.
Chrf corpus_chrf(std::span<const std::string> hypotheses, std::span<const std::string> references,
                 ChrfKind kind = ChrfKind::chrf);

/// The same with several references, reference_sets[r][line]:
/// of each line the one with the best F counts, the first of equals.
Chrf corpus_chrf(std::span<const std::string> hypotheses,
                 std::span<const std::vector<std::string>> reference_sets, ChrfKind kind = ChrfKind::chrf);

}  // namespace regard::evaluation
