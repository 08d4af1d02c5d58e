#include "regard/text/vocabulary.h"

#include <algorithm>

#include "regard/base/error.h"
#include "regard/base/random.h"
#include "regard/text/utf8.h"
#include "regard/text/vocabulary_kinds.h"

namespace regard::text {
namespace {

/// At most `wanted` lines, each set of so many equally likely, in their order.
/// Knuth, The Art of Computer Programming 2, section 3.4.2, algorithm S.
std::vector<std::string> sampled(std::span<const std::string> lines, int64_t wanted, uint64_t seed) {
  RandomStream random(seed, 0x73616d706c65);
  auto missing = static_cast<uint64_t>(std::clamp<int64_t>(wanted, 0, static_cast<int64_t>(lines.size())));
  std::vector<std::string> result;
  result.reserve(missing);
  for (size_t i = 0; i < lines.size() && missing > 0; ++i) {
    const uint64_t left = lines.size() - i;
    if (left > missing && random.below(left) >= missing) continue;
    result.push_back(repaired_utf8(lines[i]));
    --missing;
  }
  return result;
}

}  // namespace

std::shared_ptr<const Vocabulary> train_vocabulary(std::span<const std::string> lines,
                                                   const VocabularyOptions& options) {
  if (options.size < 3) throw UsageError("a vocabulary needs at least 3 pieces");
  if (options.sample_lines < 1) throw UsageError("a vocabulary needs at least 1 line to train on");
  const bool some = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find_first_not_of(" \t\r\n") != std::string::npos;
  });
  if (!some) throw DataError("there is no text to train a vocabulary on");
  const std::vector<std::string> sample = sampled(lines, options.sample_lines, options.seed);
  if (options.kind == VocabularyKind::sentencepiece) return train_sentencepiece(sample, options);
  return train_list(sample, options);
}

std::shared_ptr<const Vocabulary> load_vocabulary(VocabularyKind kind, std::string_view bytes,
                                                  const std::string& name) {
  if (bytes.empty()) throw DataError(name, 0, "is empty, expected a vocabulary; restore the file");
  if (kind == VocabularyKind::sentencepiece) return load_sentencepiece(bytes, name);
  return load_list(kind, bytes, name);
}

}  // namespace regard::text
