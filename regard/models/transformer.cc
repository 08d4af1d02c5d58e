#include "regard/models/transformer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "regard/autograd/layers.h"

namespace regard::models {

using autograd::linear;
using autograd::output_loss;
using autograd::Ragged;
using autograd::RowDropout;
using nn::PositionKind;

namespace {

/// Dropout's layers: each has a number for every block and for its attention weights.
enum : uint64_t { kEmbeddings = 0, kBlock = 1, kWeights = 4, kNumbers = 8, kDecoder = 0x10000 };

uint64_t dropout_layer(uint64_t stack, size_t layer, uint64_t what) {
  return stack + kNumbers * (layer + 1) + what;
}

/// The one form of all layers, or that of layer l.
nn::AttentionForm form_of(const ModelConfig& config, size_t l) {
  const auto& forms = config.self_attention;
  if (forms.empty()) return config.window > 0 ? nn::AttentionForm::window : nn::AttentionForm::exact;
  return forms.size() == 1 ? forms[0] : forms.at(l);
}

void check_forms(const ModelConfig& config) {
  const auto& forms = config.self_attention;
  const auto uses = [&](nn::AttentionForm form) {
    return std::find(forms.begin(), forms.end(), form) != forms.end();
  };
  if (forms.size() > 1 && static_cast<int64_t>(forms.size()) != config.layers)
    throw UsageError("--self-attention names " + std::to_string(forms.size()) + " forms for " +
                     std::to_string(config.layers) + " layers; give one for all or one a layer");
  if (uses(nn::AttentionForm::window) && config.window == 0)
    throw UsageError("--self-attention window needs --window N, how far away it sees");
  if (!forms.empty() && !uses(nn::AttentionForm::window) && config.window > 0)
    throw UsageError("--window says nothing to layers none of which attends in a window");
  if (uses(nn::AttentionForm::block_sparse) != (config.block_size > 0))
    throw UsageError("--self-attention block-sparse and --block-size N go together");
  if (!uses(nn::AttentionForm::linear)) return;
  if (config.positions != PositionKind::sinusoid && config.positions != PositionKind::learned &&
      config.positions != PositionKind::none)
    throw UsageError(
        "linear attention has no scores to add a distance to: --positions sinusoid, learned or none");
  if (config.attention_dropout > 0)
    throw UsageError("--attention-dropout drops weights, and linear attention has none");
}

}  // namespace

void Transformer::check(const ModelConfig& config) {
  const int64_t D = config.width, H = config.heads;
  if (D % H != 0)
    throw UsageError("--width " + std::to_string(D) + " does not divide into --heads " + std::to_string(H));
  if (config.positions == PositionKind::rotary && D / H % 2 != 0)
    throw UsageError("--positions rotary turns pairs of numbers; --width " + std::to_string(D) + " gives " +
                     std::to_string(H) + " heads an odd width of " + std::to_string(D / H));
  check_forms(config);
}

nn::SelfAttentionSizes Transformer::self_attention(const ModelConfig& config, bool causal, size_t l) {
  return {config.width,  config.heads,      causal,          form_of(config, l),
          config.window, config.block_size, config.positions};
}

Transformer::Transformer(const ModelConfig& config) : EncoderDecoder(config) {
  check(config);
  if (!config.separate_embeddings && config.source_vocabulary != config.target_vocabulary)
    throw UsageError("shared embeddings need one vocabulary for both sides; else give --separate-embeddings");
}

void Transformer::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t D = c.width, H = c.heads, F = c.feed_forward;
  const auto layers = static_cast<size_t>(c.layers);
  encoder_.resize(layers);
  decoder_.resize(layers);
  const auto embedding = nn::Initial::normal(1 / std::sqrt(static_cast<double>(D)));
  visitor("embedding", E_, {c.target_vocabulary, D}, embedding);
  if (c.separate_embeddings) visitor("embedding.source", E_source_, {c.source_vocabulary, D}, embedding);
  positions_.visit(visitor, "positions", D, c.positions);
  const bool biased = c.positions == PositionKind::relative_bias;
  const auto no_bias = nn::Initial::constant(0);
  if (biased) visitor("encoder.relative", encoder_bias_, {nn::kRelativeBuckets, H}, no_bias);
  for (size_t l = 0; l < layers; ++l) {
    EncoderLayer& layer = encoder_[l];
    const std::string name = "encoder." + std::to_string(l + 1);
    layer.self_attention.visit(visitor, name + ".self", self_attention(c, false, l));
    layer.first.visit(visitor, name + ".self", D, c.norm);
    layer.feed_forward.visit(visitor, name + ".feed_forward", D, F, c.activation);
    layer.second.visit(visitor, name + ".feed_forward", D, c.norm);
  }
  if (norm_at_end()) encoder_norm_.visit(visitor, "encoder.norm", D);
  if (biased) visitor("decoder.relative", decoder_bias_, {nn::kRelativeBuckets, H}, no_bias);
  for (size_t l = 0; l < layers; ++l) {
    DecoderLayer& layer = decoder_[l];
    const std::string name = "decoder." + std::to_string(l + 1);
    layer.self_attention.visit(visitor, name + ".self", self_attention(c, true, l));
    layer.first.visit(visitor, name + ".self", D, c.norm);
    layer.cross_attention.visit(visitor, name + ".cross", D, H);
    layer.second.visit(visitor, name + ".cross", D, c.norm);
    layer.feed_forward.visit(visitor, name + ".feed_forward", D, F, c.activation);
    layer.third.visit(visitor, name + ".feed_forward", D, c.norm);
  }
  if (norm_at_end()) decoder_norm_.visit(visitor, "decoder.norm", D);
  if (c.separate_embeddings) visitor("output.W", W_out_, {c.target_vocabulary, D}, embedding);
  visitor("output.b", b_out_, {c.target_vocabulary}, nn::Initial::constant(0));
}

Tensor Transformer::embed(const Tensor& E, std::span<const int32_t> words,
                          std::span<const int32_t> positions) const {
  const double scale = std::sqrt(static_cast<double>(config().width));
  return positions_(autograd::scaled_rows(E, words, scale), positions);  // sqrt(D) E y + PE  [R, D]
}

Tensor Transformer::encode(std::span<const std::span<const int32_t>> sources, const Ragged& S,
                           const Dropout& dropout) const {
  const auto drop = [&](size_t l, uint64_t what) { return dropout.rows(dropout_layer(0, l, what), S); };
  Tensor x = dropout(embed(E_source(), words_of(sources), nn::positions_of(S)), kEmbeddings, S);  // [S, D]
  for (size_t l = 0; l < encoder_.size(); ++l) {
    const EncoderLayer& layer = encoder_[l];
    const auto weights = dropout.weights(config().attention_dropout, dropout_layer(0, l, kWeights));
    const Tensor x1 = layer.first(x, drop(l, kBlock), [&](const Tensor& q) {
      return layer.self_attention(q, S, encoder_bias_, weights);  // [S, D]
    });
    x = layer.second(x1, drop(l, kBlock + 1), layer.feed_forward);  // [S, D]
  }
  return norm_at_end() ? encoder_norm_(x) : x;
}

Transformer::Decoded Transformer::decode(const Tensor& y, const Tensor& h, const Ragged& T, const Ragged& S,
                                         const Dropout& dropout, bool guided) const {
  const auto drop = [&](size_t l, uint64_t what) {
    return dropout.rows(dropout_layer(kDecoder, l, what), T);
  };
  Tensor alpha;
  Tensor x = y;  // [T, D]
  for (size_t l = 0; l < decoder_.size(); ++l) {
    const DecoderLayer& layer = decoder_[l];
    const double rate = config().attention_dropout;
    const auto weights = [&](uint64_t k) {
      return dropout.weights(rate, dropout_layer(kDecoder, l, kWeights + k));
    };
    const Tensor kv = layer.cross_attention.keys_and_values(h);  // [S, 2D]
    const Tensor x1 = layer.first(x, drop(l, kBlock), [&](const Tensor& q) {
      return layer.self_attention(q, T, decoder_bias_, weights(0));  // [T, D]
    });
    const Tensor x2 = layer.second(x1, drop(l, kBlock + 1), [&](const Tensor& q) {
      if (guided && l == shown_layer()) alpha = layer.cross_attention.weights(q, kv, S, sentence_rows(T));
      return layer.cross_attention(q, kv, T, S, weights(1));  // [T, D]
    });
    x = layer.third(x2, drop(l, kBlock + 2), layer.feed_forward);  // [T, D]
  }
  return {norm_at_end() ? decoder_norm_(x) : x, alpha};
}

Tensor Transformer::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const Ragged S = ragged(pairs.sources), T = ragged(pairs.targets);
  const Tensor h = encode(pairs.sources, S, dropout);                                       // [S, D]
  const Tensor y = embed(E_, previous_words(pairs.targets, begin()), nn::positions_of(T));  // [T, D]
  const bool guided = is_guided(pairs, options);
  const Decoded decoded = decode(dropout(y, kDecoder + kEmbeddings, T), h, T, S, dropout, guided);  // [T, D]
  const Tensor loss =
      output_loss(decoded.t, W_out(), b_out_, words_of(pairs.targets), options.smoothing, options.scale);
  return guided ? autograd::add(loss, guided_loss(decoded.alpha, pairs, options, T)) : loss;
}

Memory Transformer::encode(std::span<const std::span<const int32_t>> sources) const {
  Memory memory;
  memory.sources = ragged(sources);
  memory.h = encode(sources, memory.sources, Dropout());  // [S, D]
  for (const DecoderLayer& layer : decoder_) {
    memory.layers.push_back(layer.cross_attention.keys_and_values(memory.h));  // [S, 2D]
    memory.initial_state.push_back(layer.self_attention.empty_cache(memory.sources.count()));
  }
  memory.initial_state.push_back(no_steps(memory.sources.count(), memory.h.dtype()));
  return memory;
}

Step Transformer::step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
                       std::span<const int32_t> sentence_of) const {
  Step result;
  const int64_t t_prev = steps_of(state.back());
  const std::vector<int32_t> positions(y_prev.size(), static_cast<int32_t>(t_prev));
  Tensor x = embed(E_, y_prev, positions);  // [R, D]
  for (size_t l = 0; l < decoder_.size(); ++l) {
    const DecoderLayer& layer = decoder_[l];
    const Tensor x1 = layer.first(x, {}, [&](const Tensor& q) {
      const nn::CachedStep attended = layer.self_attention.step(q, state[l], t_prev, decoder_bias_);
      result.state.push_back(attended.cache);
      return attended.value;  // [R, D]
    });
    const Tensor x2 = layer.second(x1, {}, [&](const Tensor& q) {
      const bool shown = l == shown_layer();
      const nn::AttendedRows attended =
          layer.cross_attention.step(q, memory.layers[l], memory.sources, sentence_of, shown);
      if (shown) result.alpha = attended.alpha;  // [R, longest S]
      return attended.value;                     // [R, D]
    });
    x = layer.third(x2, {}, layer.feed_forward);  // [R, D]
  }
  result.state.push_back(more_steps(state.back()));
  const Tensor t = norm_at_end() ? decoder_norm_(x) : x;  // [R, D]
  result.logits = linear(t, W_out(), b_out_);             // [R, V]
  return result;
}

}  // namespace regard::models
