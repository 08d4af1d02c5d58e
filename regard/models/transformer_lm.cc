#include "regard/models/transformer_lm.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "regard/models/transformer.h"

namespace regard::models {

using autograd::linear;
using autograd::output_loss;
using autograd::Ragged;
using nn::PositionKind;

namespace {

/// Dropout's layers: of the embeddings, and of every layer's two blocks and its weights.
enum : uint64_t { kEmbeddings = 0, kBlock = 1, kWeights = 3, kNumbers = 4 };

uint64_t dropout_layer(size_t layer, uint64_t what) { return kNumbers * (layer + 1) + what; }

}  // namespace

TransformerLm::TransformerLm(const ModelConfig& config) : EncoderDecoder(config) {
  Transformer::check(config);
}

void TransformerLm::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t D = c.width, H = c.heads;
  const auto embedding = nn::Initial::normal(1 / std::sqrt(static_cast<double>(D)));
  visitor("embedding", E_, {c.target_vocabulary, D}, embedding);
  positions_.visit(visitor, "positions", D, c.positions);
  if (c.positions == PositionKind::relative_bias)
    visitor("layer.relative", bias_, {nn::kRelativeBuckets, H}, nn::Initial::constant(0));
  layers_.resize(static_cast<size_t>(c.layers));
  for (size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    const std::string name = "layer." + std::to_string(l + 1);
    layer.self_attention.visit(visitor, name + ".self", Transformer::self_attention(c, true, l));
    layer.first.visit(visitor, name + ".self", D, c.norm);
    layer.feed_forward.visit(visitor, name + ".feed_forward", D, c.feed_forward, c.activation);
    layer.second.visit(visitor, name + ".feed_forward", D, c.norm);
  }
  if (norm_at_end()) norm_.visit(visitor, "last.norm", D);
  if (c.separate_embeddings) visitor("output.W", W_out_, {c.target_vocabulary, D}, embedding);
  visitor("output.b", b_out_, {c.target_vocabulary}, nn::Initial::constant(0));
}

Tensor TransformerLm::embed(std::span<const int32_t> words, std::span<const int32_t> positions) const {
  const double scale = std::sqrt(static_cast<double>(config().width));
  return positions_(autograd::scaled_rows(E_, words, scale), positions);  // sqrt(D) E y + PE  [R, D]
}

Tensor TransformerLm::layers_of(std::span<const int32_t> words, const Ragged& T, const Dropout& dropout,
                                const Shown& shown) const {
  Tensor x = dropout(embed(words, nn::positions_of(T)), kEmbeddings, T);  // [T, D]
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const auto drop = [&](uint64_t what) { return dropout.rows(dropout_layer(l, what), T); };
    const auto drop_weights = dropout.weights(config().attention_dropout, dropout_layer(l, kWeights));
    const bool is_top = l + 1 == layers_.size();
    Tensor* const cache = shown.caches ? &shown.caches->emplace_back() : nullptr;
    const Tensor x1 = layer.first(x, drop(kBlock), [&](const Tensor& q) {
      return layer.self_attention(q, T, bias_, drop_weights, is_top ? shown.weights : nullptr, cache);
    });                                                          // [T, D]
    x = layer.second(x1, drop(kBlock + 1), layer.feed_forward);  // [T, D]
  }
  return norm_at_end() ? norm_(x) : x;
}

Tensor TransformerLm::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const Tensor t =
      layers_of(previous_words(pairs.targets, begin()), ragged(pairs.targets), dropout, {});  // [T, D]
  return output_loss(t, W_out(), b_out_, words_of(pairs.targets), options.smoothing, options.scale);
}

Tensor TransformerLm::own_attention(std::span<const int32_t> text) const {
  std::vector<int32_t> words{begin()};
  words.insert(words.end(), text.begin(), text.end());
  Ragged T;
  T.push_back(static_cast<int64_t>(words.size()));
  Tensor weights;
  layers_of(words, T, Dropout(), {.weights = &weights});
  return weights;
}

Memory TransformerLm::encode(std::span<const std::span<const int32_t>> sources) const {
  Memory memory;
  memory.sources = ragged(sources);
  for (const Layer& layer : layers_)
    memory.initial_state.push_back(layer.self_attention.empty_cache(memory.sources.count()));
  memory.initial_state.push_back(no_steps(memory.sources.count(), E_.dtype()));
  return memory;
}

State TransformerLm::read(std::span<const std::span<const int32_t>> texts, const Memory& memory) const {
  const bool keeps = std::all_of(layers_.begin(), layers_.end(),
                                 [](const Layer& layer) { return layer.self_attention.keeps_positions(); });
  if (!keeps || texts.empty() || texts[0].empty()) return EncoderDecoder::read(texts, memory);
  constexpr int64_t kRows = 8192;  // at once: what a layer's widest matrix holds
  const auto R = static_cast<int64_t>(texts.size()), n = static_cast<int64_t>(texts[0].size());
  const int64_t part = std::max<int64_t>(kRows / n, 1);
  std::vector<std::vector<Tensor>> parts(layers_.size());  // of every layer [R', n, 2D]
  for (int64_t begin = 0; begin < R; begin += part) {
    const auto some =
        texts.subspan(static_cast<size_t>(begin), static_cast<size_t>(std::min(part, R - begin)));
    std::vector<Tensor> caches;
    layers_of(words_of(some), ragged(some), Dropout(), {.caches = &caches});
    for (size_t l = 0; l < layers_.size(); ++l) parts[l].push_back(caches[l]);
  }
  State state;
  for (const auto& of_layer : parts)
    state.push_back(autograd::concat_rows(of_layer).reshaped({R, n, 2 * config().width}));
  state.push_back(more_steps(memory.initial_state.back(), n));
  return state;
}

Step TransformerLm::step(std::span<const int32_t> y_prev, const State& state, const Memory&,
                         std::span<const int32_t>) const {
  Step result;
  const int64_t t_prev = steps_of(state.back());
  const std::vector<int32_t> positions(y_prev.size(), static_cast<int32_t>(t_prev));
  Tensor x = embed(y_prev, positions);  // [R, D]
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const Tensor x1 = layer.first(x, {}, [&](const Tensor& q) {
      const nn::CachedStep attended = layer.self_attention.step(q, state[l], t_prev, bias_);
      result.state.push_back(attended.cache);
      return attended.value;  // [R, D]
    });
    x = layer.second(x1, {}, layer.feed_forward);  // [R, D]
  }
  result.state.push_back(more_steps(state.back()));
  const Tensor t = norm_at_end() ? norm_(x) : x;  // [R, D]
  result.logits = linear(t, W_out(), b_out_);     // [R, V]
  return result;
}

}  // namespace regard::models
