#include "regard/decoding/prompts.h"

#include <algorithm>

namespace regard::decoding {

ReadPrompts read_prompts(const models::EncoderDecoder& model,
                         std::span<const std::span<const int32_t>> prompts, const models::Memory& memory) {
  ReadPrompts result;
  result.previous.assign(prompts.size(), model.begin());
  size_t shortest = prompts.empty() ? 0 : prompts[0].size();
  for (const auto& prompt : prompts) shortest = std::min(shortest, prompt.size());
  result.read = shortest;
  if (shortest == 0) {
    result.state = memory.initial_state;
    return result;
  }
  std::vector<std::vector<int32_t>> words;  // the begin symbol and all but the last one
  for (size_t r = 0; r < prompts.size(); ++r) {
    words.emplace_back(1, model.begin());
    words[r].insert(words[r].end(), prompts[r].begin(),
                    prompts[r].begin() + static_cast<std::ptrdiff_t>(shortest) - 1);
    result.previous[r] = prompts[r][shortest - 1];
  }
  const std::vector<std::span<const int32_t>> spans(words.begin(), words.end());
  result.state = model.read(spans, memory);
  return result;
}

}  // namespace regard::decoding
