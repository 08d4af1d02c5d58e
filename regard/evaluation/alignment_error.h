#pragma once
// Alignment error rate, Och and Ney 2003 (aclanthology.org/J03-1002), section 5.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace regard::evaluation {

/// A link between source word and target word, both from 0.
using Link = std::pair<int64_t, int64_t>;

/// One sentence's links. In a hypothesis sure and possible ones count alike.
struct Links {
  std::set<Link> sure;
  std::set<Link> possible;  ///< holds the sure ones too
};

/// Reads one line in Pharaoh's form: "0-0 1-2" sure, "2?3" or "2p3" possible;
/// blanks between links, and at the ends, are free, and an empty line has no links.
/// Throws DataError with `file` and `line` for anything else.
Links parse_links(std::string_view text, std::string_view file = "links", int64_t line = 0);

struct AlignmentError {
  double rate = 0;  ///< 1 - (|A and S| + |A and P|) / (|A| + |S|), from 0 (best) to 1; 0 if A and S are empty
  double precision = 0;  ///< |A and P| / |A|; 1 if A is empty
  double recall = 0;     ///< |A and S| / |S|; 1 if S is empty
  int64_t links = 0, sure = 0, matched_sure = 0, matched_possible = 0;
};

/// The hypothesis' links A against gold ones, added over the sentences.
/// Throws ShapeError if the numbers of sentences differ.
AlignmentError alignment_error(std::span<const Links> hypotheses, std::span<const Links> gold);

}  // namespace regard::evaluation
