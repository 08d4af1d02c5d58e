#include "regard/models/lstmn.h"

#include <cstring>

#include "regard/models/recurrent_lm.h"
#include "regard/nn/attention.h"
#include "regard/nn/unrolled.h"

namespace regard::models {

using autograd::columns;
using autograd::concat_columns;
using autograd::linear;
using autograd::output_loss;
using autograd::Ragged;
using autograd::rows;

void LstmnLayer::visit(const ParameterVisitor& visitor, const std::string& name, int64_t K, int64_t N,
                       int64_t A) {
  const auto fan = nn::Initial::fan_in;
  visitor(name + ".W", W, {4 * N, K}, fan(N));
  visitor(name + ".U", U, {4 * N, N}, fan(N));
  visitor(name + ".b", b, {4 * N}, fan(N));
  visitor(name + ".W_h", W_h, {A, N}, fan(N));
  visitor(name + ".W_x", W_x, {A, K}, fan(N));
  visitor(name + ".W_s", W_s, {A, N}, fan(N));
  visitor(name + ".v", v, {A}, fan(A));
}

Tensor LstmnLayer::run(const Tensor& y, std::span<const int32_t> index, const Ragged& sentences,
                       bool reverse) const {
  return lstmn_sequence({linear(y, W, b), linear(y, W_x), index, U, W_h, W_s, v}, sentences, reverse);
}

void Lstmn::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t N = c.width, A = c.alignment_width, E = c.bidirectional ? 2 * N : N;
  visitor("embedding.source", E_source_, {c.source_vocabulary, c.embedding}, nn::Initial::normal(1));
  decoder_.visit_embedding(visitor, c);
  encoder_.resize(static_cast<size_t>(c.layers));
  for (size_t l = 0; l < encoder_.size(); ++l) {
    const std::string name = "encoder." + std::to_string(l + 1);
    const int64_t K = l == 0 ? c.embedding : E;
    encoder_[l].forward.visit(visitor, name + ".forward", K, N, A);
    if (c.bidirectional) encoder_[l].backward.visit(visitor, name + ".backward", K, N, A);
  }
  decoder_.visit(visitor, c, E);
}

Memory Lstmn::encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const {
  const int64_t N = config().width;
  const Ragged S = ragged(sources);
  Distinct words;
  for (const int32_t word : words_of(sources)) words.push_back(word);
  Tensor h = rows(E_source_, words.ids());  // E x_j  [S', D]
  std::vector<int32_t> index(words.index().begin(), words.index().end());
  Tensor last;  // [B, 2N]
  for (size_t l = 0; l < encoder_.size(); ++l) {
    const Tensor forward = encoder_[l].forward.run(h, index, S, false);  // h_j | c_j ->  [S, 2N]
    last = nn::last_states(forward, S, false);
    if (config().bidirectional) {
      const Tensor backward = encoder_[l].backward.run(h, index, S, true);  // h_j | c_j <-  [S, 2N]
      last = nn::last_states(backward, S, true);
      h = concat_columns(std::vector{columns(forward, 0, N), columns(backward, 0, N)});  // h_j  [S, 2N]
    } else {
      h = columns(forward, 0, N);  // h_j  [S, N]
    }
    h = dropout(h, kEncoderLayer + l, S);
    index = identity_index(S.total());
  }
  return decoder_.memory(S, h, columns(last, 0, N));
}

Tensor Lstmn::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  return decoder_.loss(encode(pairs.sources, dropout), pairs, options, dropout, begin());
}

LstmnLm::LstmnLm(const ModelConfig& config) : EncoderDecoder(config) { RecurrentLm::check(config); }

void LstmnLm::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t D = c.embedding, N = c.width;
  const auto fan = nn::Initial::fan_in(N);
  visitor("embedding", E_, {c.target_vocabulary, D}, c.tied_embeddings ? fan : nn::Initial::normal(1));
  layers_.resize(static_cast<size_t>(c.layers));
  for (size_t l = 0; l < layers_.size(); ++l)
    layers_[l].visit(visitor, "layer." + std::to_string(l + 1), l == 0 ? D : N, N, c.alignment_width);
  if (!c.tied_embeddings) visitor("output.W", W_out_, {c.target_vocabulary, N}, fan);
  visitor("output.b", b_out_, {c.target_vocabulary}, fan);
}

Memory LstmnLm::encode(std::span<const std::span<const int32_t>> sources) const {
  const int64_t N = config().width, A = config().alignment_width;
  Memory memory;
  memory.sources = ragged(sources);
  const int64_t B = memory.sources.count();
  for (size_t l = 0; l < layers_.size(); ++l)
    for (const Shape& shape : {Shape{B, 0, 2 * N}, Shape{B, 0, A}, Shape{B, N}})
      memory.initial_state.push_back(Tensor::zeros(shape, E_.dtype()));
  return memory;
}

Tensor LstmnLm::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const TargetRows target = target_rows(pairs.targets, begin());
  Tensor h = rows(E_, target.previous.ids());  // E y_{t-1}  [T', D]
  std::vector<int32_t> index(target.previous.index().begin(), target.previous.index().end());
  for (size_t l = 0; l < layers_.size(); ++l) {
    h = columns(layers_[l].run(h, index, target.targets, false), 0, config().width);  // h_t  [T, N]
    h = dropout(h, kDecoderLayer + l, target.targets);
    index = identity_index(target.targets.total());
  }
  return output_loss(h, W_out(), b_out_, target.y, options.smoothing, options.scale);
}

namespace {

/// Row r's t positions of caches [R, t, W], as rows one after the other.
Tensor as_rows(const Tensor& cache) { return cache.reshaped({cache.dim(0) * cache.dim(1), cache.dim(2)}); }

}  // namespace

Step LstmnLm::step(std::span<const int32_t> y_prev, const State& state, const Memory&,
                   std::span<const int32_t>) const {
  return step(y_prev, state, nullptr);
}

Tensor LstmnLm::own_attention(std::span<const int32_t> text) const {
  const auto T = static_cast<int64_t>(text.size()) + 1;
  const std::vector<std::span<const int32_t>> nothing(1);
  State state = encode(nothing).initial_state;
  Tensor rows = Tensor::zeros({T, T}, E_.dtype());
  for (int64_t t = 0; t < T; ++t) {
    const int32_t y = t == 0 ? begin() : text[static_cast<size_t>(t - 1)];
    Tensor weights;  // [1, t]
    state = step(std::vector<int32_t>{y}, state, &weights).state;
    const auto size = static_cast<size_t>(dtype_size(rows.dtype()));
    std::memcpy(static_cast<char*>(rows.bytes()) + static_cast<size_t>(t * T) * size, weights.bytes(),
                static_cast<size_t>(t) * size);
  }
  return rows;
}

/// `weights`, if not null, receives the last layer's.
Step LstmnLm::step(std::span<const int32_t> y_prev, const State& state, Tensor* weights) const {
  Step result;
  Ragged positions;  // t of every hypothesis
  for (size_t r = 0; r < y_prev.size(); ++r) positions.push_back(state[0].dim(1));
  Tensor h = rows(E_, y_prev);  // E y_{t-1}  [R, D]
  for (size_t l = 0; l < layers_.size(); ++l) {
    const LstmnLayer& layer = layers_[l];
    const Tensor &states = state[3 * l], &keys = state[3 * l + 1], &summary = state[3 * l + 2];
    const autograd::LstmnStep next = autograd::lstmn_step(
        linear(h, layer.W, layer.b), linear(h, layer.W_x), summary,
        {as_rows(states), as_rows(keys), positions}, layer.U, layer.W_h, layer.W_s, layer.v);
    h = columns(next.state, 0, config().width);  // h_t  [R, N]
    result.state.push_back(nn::grown(states, next.state));
    result.state.push_back(nn::grown(keys, next.key));
    result.state.push_back(next.summary);
    if (weights) *weights = next.weights;  // s  [R, t]
  }
  result.logits = linear(h, W_out(), b_out_);  // [R, V]
  return result;
}

}  // namespace regard::models
