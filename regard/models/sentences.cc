#include "regard/models/sentences.h"

#include <numeric>

#include "regard/autograd/score_attention.h"

namespace regard::models {

TargetRows target_rows(std::span<const std::span<const int32_t>> targets, int32_t begin) {
  TargetRows rows;
  for (const auto& target : targets) {
    rows.targets.push_back(static_cast<int64_t>(target.size()));
    for (size_t i = 0; i < target.size(); ++i) rows.previous.push_back(i ? target[i - 1] : begin);
    rows.y.insert(rows.y.end(), target.begin(), target.end());
  }
  return rows;
}

std::vector<int32_t> words_of(std::span<const std::span<const int32_t>> sentences) {
  std::vector<int32_t> words;
  for (const auto& sentence : sentences) words.insert(words.end(), sentence.begin(), sentence.end());
  return words;
}

std::vector<int32_t> previous_words(std::span<const std::span<const int32_t>> sentences, int32_t begin) {
  std::vector<int32_t> words;
  for (const auto& sentence : sentences)
    for (size_t t = 0; t < sentence.size(); ++t) words.push_back(t ? sentence[t - 1] : begin);
  return words;
}

autograd::Ragged ragged(std::span<const std::span<const int32_t>> sentences) {
  autograd::Ragged result;
  for (const auto& sentence : sentences) result.push_back(static_cast<int64_t>(sentence.size()));
  return result;
}

std::vector<int32_t> sentence_rows(const autograd::Ragged& sentences) {
  std::vector<int32_t> rows;
  for (int64_t b = 0; b < sentences.count(); ++b)
    rows.insert(rows.end(), static_cast<size_t>(sentences.length(b)), static_cast<int32_t>(b));
  return rows;
}

bool is_guided(const SentencePairs& pairs, const LossOptions& options) {
  return options.guided_weight > 0 && !pairs.guidance.empty();
}

Tensor guided_loss(const Tensor& alpha, const SentencePairs& pairs, const LossOptions& options,
                   const autograd::Ragged& targets) {
  std::vector<autograd::GuidedWeight> guided;
  for (size_t b = 0; b < pairs.guidance.size(); ++b)
    for (const GuidedLink& link : pairs.guidance[b])
      guided.push_back({static_cast<int32_t>(targets.begin(static_cast<int64_t>(b))) + link.target,
                        link.source, static_cast<double>(link.share)});
  return autograd::guided_loss(alpha, guided, options.guided_weight * options.scale);
}

int64_t steps_of(const Tensor& count) {
  if (count.size() == 0) return 0;
  return dispatch(count.dtype(),
                  [&](auto zero) { return static_cast<int64_t>(count.data<decltype(zero)>()[0]); });
}

Tensor more_steps(const Tensor& count, int64_t n) {
  return Tensor::full(count.shape(), static_cast<double>(steps_of(count) + n), count.dtype());
}

Tensor states_before(const Tensor& after, const Tensor& initial, const autograd::Ragged& sentences) {
  const int64_t B = sentences.count();
  std::vector<int32_t> from;  // rows of [initial; after]
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < sentences.length(b); ++t)
      from.push_back(static_cast<int32_t>(t == 0 ? b : B + sentences.begin(b) + t - 1));
  return autograd::rows(autograd::concat_rows(std::vector{initial, after}), from);
}

Dropout::Dropout(double rate, const SentencePairs& pairs, const LossOptions& options)
    : rate_(options.dropout ? rate : 0), training_(options.dropout.has_value()), numbers_(pairs.numbers) {
  if (!training_) return;
  key_ = mix(options.dropout->seed, static_cast<uint64_t>(options.dropout->step));
  if (!numbers_.empty()) return;
  numbers_.resize(pairs.sources.size());
  std::iota(numbers_.begin(), numbers_.end(), uint64_t{0});
}

Tensor Dropout::operator()(const Tensor& x, uint64_t layer, const autograd::Ragged& sentences) const {
  if (rate_ == 0) return x;
  if (x.rows() == sentences.total()) return autograd::dropout(x, rate_, rows(layer, sentences).keys);
  autograd::Ragged one_each;
  for (int64_t b = 0; b < sentences.count(); ++b) one_each.push_back(1);
  return autograd::dropout(x, rate_, rows(layer, one_each).keys);
}

autograd::RowDropout Dropout::rows(uint64_t layer, const autograd::Ragged& sentences) const {
  if (rate_ == 0) return {};
  autograd::RowDropout dropout{rate_, {}};
  dropout.keys.reserve(static_cast<size_t>(sentences.total()));
  for (int64_t b = 0; b < sentences.count(); ++b) {
    const uint64_t sentence = mix(mix(key_, layer), numbers_[static_cast<size_t>(b)]);
    for (int64_t t = 0; t < sentences.length(b); ++t)
      dropout.keys.push_back(mix(sentence, static_cast<uint64_t>(t)));
  }
  return dropout;
}

autograd::WeightDropout Dropout::weights(double rate, uint64_t layer) const {
  if (!training_ || rate == 0) return {};
  return {.probability = rate, .seed = key_, .layer = layer, .streams = numbers_};
}

Tensor Dropout::mask(int64_t N, uint64_t layer, const autograd::Ragged& sentences, DType dtype) const {
  if (rate_ == 0) return {};
  return (*this)(Tensor::full({sentences.total(), N}, 1, dtype), layer, sentences);
}

}  // namespace regard::models
