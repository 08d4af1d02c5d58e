#include "regard/decoding/forced.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "regard/simd/rows.h"
#include "regard/text/vocabulary.h"

namespace regard::decoding {
namespace {

constexpr int64_t kGroup = 32;  // pairs that go through the decoder together

/// What the decoder has to say at one place of one pair.
void add_step(Hypothesis& hypothesis, const models::Step& step, int64_t row, int32_t y,
              int64_t source_length) {
  const auto logits = step.logits.as_matrix<float>();
  hypothesis.score += static_cast<double>(logits.row(row)[y]) -
                      static_cast<double>(simd::log_sum_exp(logits.row(row), logits.columns));
  if (!step.alpha.defined()) return;
  const float* alpha = step.alpha.as_matrix<float>().row(row);
  hypothesis.attention.emplace_back(alpha, alpha + source_length);
}

void force_group(const models::EncoderDecoder& model, std::span<const std::span<const int32_t>> sources,
                 std::span<const std::span<const int32_t>> targets, std::span<Hypothesis> results) {
  const models::Memory memory = model.encode(sources);
  models::State state = memory.initial_state;
  std::vector<int32_t> active(sources.size()), previous(sources.size(), model.begin());
  std::iota(active.begin(), active.end(), 0);
  for (size_t i = 0; !active.empty(); ++i) {
    const models::Step step = model.step(previous, state, memory, active);
    std::vector<int32_t> kept, still_active;
    previous.clear();
    for (size_t row = 0; row < active.size(); ++row) {
      const auto pair = static_cast<size_t>(active[row]);
      const int32_t y = i < targets[pair].size() ? targets[pair][i] : text::Vocabulary::kEnd;
      add_step(results[pair], step, static_cast<int64_t>(row), y, memory.sources.length(active[row]));
      if (i == targets[pair].size()) continue;
      kept.push_back(static_cast<int32_t>(row));
      still_active.push_back(active[row]);
      previous.push_back(y);
    }
    state = models::select(step.state, kept);
    active = std::move(still_active);
  }
}

}  // namespace

std::vector<Hypothesis> force(const models::EncoderDecoder& model,
                              std::span<const std::span<const int32_t>> sources,
                              std::span<const std::span<const int32_t>> targets, ThreadPool& pool,
                              const autograd::FrozenWeights* frozen) {
  std::vector<Hypothesis> results(sources.size());
  const auto count = static_cast<int64_t>(sources.size());
  std::optional<autograd::FrozenWeights> own;
  if (!frozen) frozen = &own.emplace(models::tensors_of(model));
  pool.parallel_for((count + kGroup - 1) / kGroup, [&](int64_t part) {
    const autograd::FrozenWeights::Use use(*frozen);
    const auto begin = static_cast<size_t>(part * kGroup);
    const auto size = static_cast<size_t>(std::min(kGroup, count - part * kGroup));
    const auto group = std::span(results).subspan(begin, size);
    for (size_t i = 0; i < size; ++i) {
      group[i].ids.assign(targets[begin + i].begin(), targets[begin + i].end());
      group[i].complete = true;
    }
    force_group(model, sources.subspan(begin, size), targets.subspan(begin, size), group);
  });
  return results;
}

}  // namespace regard::decoding
