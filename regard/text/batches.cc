#include "regard/text/batches.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "regard/base/error.h"
#include "regard/base/random.h"
#include "regard/text/vocabulary_kinds.h"

namespace regard::text {

void Sentences::push_back(std::span<const int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  offsets_.push_back(static_cast<int64_t>(ids_.size()));
}

Sentences encode_lines(const Vocabulary& vocabulary, std::span<const std::string> lines, int64_t longest) {
  if (longest < 1) throw UsageError("a sentence may not be cut to fewer than 1 piece");
  Sentences sentences;
  for (const std::string& line : lines) {
    std::vector<int32_t> ids = vocabulary.encode(line);
    ids.push_back(Vocabulary::kEnd);
    if (static_cast<int64_t>(ids.size()) > longest) ids.resize(static_cast<size_t>(longest));
    sentences.push_back(ids);
  }
  return sentences;
}

std::string closed_line(const std::string& line) { return line + std::string(kNewline); }

Sentences encode_stream(const Vocabulary& vocabulary, std::span<const std::string> lines, int64_t longest) {
  if (longest < 1) throw UsageError("a text may not be cut into chunks of fewer than 1 piece");
  Sentences chunks;
  std::vector<int32_t> chunk;
  for (const std::string& line : lines)
    for (const int32_t id : vocabulary.encode(closed_line(line))) {
      chunk.push_back(id);
      if (static_cast<int64_t>(chunk.size()) < longest) continue;
      chunks.push_back(chunk);
      chunk.clear();
    }
  if (!chunk.empty()) chunks.push_back(chunk);
  return chunks;
}

Sentences empty_sentences(int64_t count) {
  Sentences sentences;
  for (int64_t i = 0; i < count; ++i) sentences.push_back({});
  return sentences;
}

namespace {

/// Cuts one sorted pool into batches; a batch is closed before the sentence that would exceed the budget.
std::vector<std::vector<int64_t>> filled(std::span<const int64_t> pool, const Sentences& source,
                                         const Sentences& target, int64_t budget) {
  std::vector<std::vector<int64_t>> batches;
  int64_t longest = 0;
  for (const int64_t sentence : pool) {
    const int64_t length = std::max(source.length(sentence), target.length(sentence));
    const bool fits = !batches.empty() &&
                      (static_cast<int64_t>(batches.back().size()) + 1) * std::max(longest, length) <= budget;
    if (!fits) {
      batches.emplace_back();
      longest = 0;
    }
    longest = std::max(longest, length);
    batches.back().push_back(sentence);
  }
  return batches;
}

}  // namespace

std::vector<std::vector<int64_t>> make_batches(const Sentences& source, const Sentences& target,
                                               const BatchOptions& options, uint64_t seed, uint64_t epoch,
                                               bool shuffled) {
  if (source.size() != target.size()) {
    throw ShapeError("[make_batches] " + std::to_string(source.size()) + " sources, " +
                     std::to_string(target.size()) + " targets");
  }
  if (options.tokens < 1 || options.pool < 1)
    throw UsageError("a batch and a pool need a size of at least 1");
  RandomStream random(mix(seed, epoch), 0x6261746368);
  std::vector<int64_t> order(static_cast<size_t>(source.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (shuffled) shuffle(order.begin(), order.end(), random);

  std::vector<std::vector<int64_t>> batches;
  for (size_t begin = 0; begin < order.size(); begin += static_cast<size_t>(options.pool)) {
    const std::span<int64_t> pool =
        std::span(order).subspan(begin, std::min(order.size() - begin, static_cast<size_t>(options.pool)));
    std::stable_sort(pool.begin(), pool.end(), [&](int64_t a, int64_t b) {
      return std::tuple(target.length(a), source.length(a)) < std::tuple(target.length(b), source.length(b));
    });
    auto of_pool = filled(pool, source, target, options.tokens);
    if (shuffled) shuffle(of_pool.begin(), of_pool.end(), random);
    std::move(of_pool.begin(), of_pool.end(), std::back_inserter(batches));
  }
  return batches;
}

}  // namespace regard::text
