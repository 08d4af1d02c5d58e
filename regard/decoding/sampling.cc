#include "regard/decoding/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "regard/base/random.h"
#include "regard/decoding/prompts.h"
#include "regard/simd/rows.h"
#include "regard/text/vocabulary.h"

namespace regard::decoding {
namespace {

constexpr uint64_t kDraws = 0x64726177;  // apart from other numbers of the same seed

/// The uniform number for one place of one text.
double uniform_at(uint64_t seed, uint64_t number, uint64_t place) {
  RandomStream random(mix(seed, kDraws), number);
  random.seek(2 * place);
  return random.uniform();
}

/// The entry at which the sum of weights passes u of their total.
size_t chosen(std::span<const double> weights, double u) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last = i;
    sum += weights[i];
    if (sum > u * total) break;
  }
  return last;
}

/// How many of the weights, largest first, make up the share p of their total.
size_t nucleus(std::span<const double> weights, double p) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= p * total) return i + 1;
  }
  return weights.size();
}

struct Text {
  std::span<const int32_t> prompt;
  uint64_t number;
  Hypothesis* result;

  /// The token at place i, given the model's logits there.
  int32_t next(size_t i, std::span<const float> logits, const SamplingOptions& options) const {
    if (i < prompt.size()) return prompt[i];
    const int32_t y = draw(logits, options, uniform_at(options.seed, number, i - prompt.size()));
    const auto V = static_cast<int64_t>(logits.size());
    result->score += static_cast<double>(logits[static_cast<size_t>(y)]) -
                     static_cast<double>(simd::log_sum_exp(logits.data(), V));
    return y;
  }
};

void sample_group(const models::EncoderDecoder& model, std::vector<Text> texts,
                  const SamplingOptions& options) {
  const std::vector<std::span<const int32_t>> nothing(texts.size());
  const models::Memory memory = model.encode(nothing);
  std::vector<std::span<const int32_t>> prompts;
  for (const Text& text : texts) prompts.push_back(text.prompt);
  auto [read, state, previous] = read_prompts(model, prompts, memory);
  for (const Text& text : texts)
    text.result->ids.assign(text.prompt.begin(), text.prompt.begin() + static_cast<std::ptrdiff_t>(read));
  std::vector<int32_t> active(texts.size());
  std::iota(active.begin(), active.end(), 0);
  for (size_t i = read; !active.empty(); ++i) {
    const models::Step step = model.step(previous, state, memory, active);
    const auto logits = step.logits.as_matrix<float>();
    std::vector<int32_t> kept, still_active;
    previous.clear();
    for (size_t row = 0; row < active.size(); ++row) {
      const Text& text = texts[static_cast<size_t>(active[row])];
      const float* const of_row = logits.row(static_cast<int64_t>(row));
      const int32_t y = text.next(i, {of_row, static_cast<size_t>(logits.columns)}, options);
      text.result->complete = i >= text.prompt.size() && y == text::Vocabulary::kEnd;
      if (text.result->complete) continue;
      text.result->ids.push_back(y);
      if (i + 1 >= text.prompt.size() + static_cast<size_t>(options.max_length)) continue;
      kept.push_back(static_cast<int32_t>(row));
      still_active.push_back(active[row]);
      previous.push_back(y);
    }
    state = models::select(step.state, kept);
    active = std::move(still_active);
  }
}

void check(const SamplingOptions& options) {
  if (!(options.temperature >= 0)) throw UsageError("a temperature below 0");
  if (options.top_k < 0) throw UsageError("top-k below 0");
  if (!(options.top_p > 0 && options.top_p <= 1)) throw UsageError("top-p outside (0, 1]");
  if (options.max_length < 1) throw UsageError("a continuation of fewer than 1 token");
}

}  // namespace

int32_t draw(std::span<const float> logits, const SamplingOptions& options, double u) {
  const auto words = logits.first(logits.size() - 1);  // all but the begin symbol
  const int64_t V = static_cast<int64_t>(words.size());
  if (options.temperature == 0) return static_cast<int32_t>(simd::arg_max(words.data(), V));
  const double largest = static_cast<double>(simd::largest(words.data(), V));
  const auto weight = [&](size_t v) {
    return std::exp((static_cast<double>(words[v]) - largest) / options.temperature);
  };
  std::vector<double> weights;
  if (options.top_k == 0 && options.top_p == 1) {
    for (size_t v = 0; v < words.size(); ++v) weights.push_back(weight(v));
    return static_cast<int32_t>(chosen(weights, u));
  }
  std::vector<int32_t> order(words.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return words[static_cast<size_t>(a)] > words[static_cast<size_t>(b)];
  });
  if (options.top_k > 0 && options.top_k < V) order.resize(static_cast<size_t>(options.top_k));
  for (const int32_t v : order) weights.push_back(weight(static_cast<size_t>(v)));
  weights.resize(nucleus(weights, options.top_p));
  return order[chosen(weights, u)];
}

std::vector<Hypothesis> sample(const models::EncoderDecoder& model,
                               std::span<const std::span<const int32_t>> prompts, int64_t first_number,
                               const SamplingOptions& options, ThreadPool& pool,
                               const autograd::FrozenWeights* frozen) {
  check(options);
  std::vector<Hypothesis> results(prompts.size());
  const auto count = static_cast<int64_t>(prompts.size()), size = std::max<int64_t>(options.sentences, 1);
  std::optional<autograd::FrozenWeights> own;
  if (!frozen) frozen = &own.emplace(models::tensors_of(model));
  pool.parallel_for((count + size - 1) / size, [&](int64_t part) {
    const autograd::FrozenWeights::Use use(*frozen);
    std::vector<Text> texts;
    for (int64_t i = part * size; i < std::min(count, (part + 1) * size); ++i)
      texts.push_back({prompts[static_cast<size_t>(i)], static_cast<uint64_t>(first_number + i),
                       &results[static_cast<size_t>(i)]});
    sample_group(model, std::move(texts), options);
  });
  return results;
}

}  // namespace regard::decoding
