#pragma once
// Pairs of sentences with a label, as classifiers read them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace regard::text {

struct LabelledPair {
  std::string premise, hypothesis;
  std::string label;  ///< empty: none
  int64_t line = 0;   ///< from 1
};

/// One line, premise TAB hypothesis TAB label; further columns are ignored, quotes are literal, \t \n \\ are
/// escapes. Throws DataError FILE:LINE if there is no hypothesis, or no label where one is needed.
LabelledPair labelled_pair(std::string_view line, bool needs_label, const std::string& name, int64_t number);

/// The pairs of a file, plain or .gz; empty lines are left out.
std::vector<LabelledPair> read_labelled(const std::filesystem::path& path);

}  // namespace regard::text
