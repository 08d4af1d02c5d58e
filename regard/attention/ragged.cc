#include "regard/attention/ragged.h"

namespace regard::attention {

int64_t RaggedSources::check(const std::string& operation, int64_t rows, int64_t source_rows) const {
  if (offsets.empty() || offsets.front() < 0 || !std::is_sorted(offsets.begin(), offsets.end()))
    throw ShapeError("[" + operation + "] offsets must hold B + 1 numbers from 0 upwards that never fall");
  if (offsets.back() > source_rows)
    throw ShapeError("[" + operation + "] offsets end at " + std::to_string(offsets.back()) +
                     ", but keys have " + std::to_string(source_rows) + " rows (S)");
  if (!sentences.empty() && static_cast<int64_t>(sentences.size()) != rows)
    throw ShapeError("[" + operation + "] sentences [" + std::to_string(sentences.size()) + "], expected [" +
                     std::to_string(rows) + "] (R)");
  const auto B = static_cast<int64_t>(offsets.size()) - 1;
  int64_t longest = 0;
  for (int64_t i = 0; i < rows; ++i) {
    if (sentence(i) < 0 || sentence(i) >= B)
      throw ShapeError("[" + operation + "] row " + std::to_string(i) + " looks at sentence " +
                       std::to_string(sentence(i)) + " of " + std::to_string(B));
    longest = std::max(longest, length(i));
  }
  return longest;
}

bool RaggedSources::repeat() const {
  std::vector<bool> seen(offsets.size());
  for (const int32_t b : sentences) {
    if (seen[static_cast<size_t>(b)]) return true;
    seen[static_cast<size_t>(b)] = true;
  }
  return false;
}

}  // namespace regard::attention
