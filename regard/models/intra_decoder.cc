#include "regard/models/intra_decoder.h"

#include <limits>

#include "regard/autograd/intra_attention.h"
#include "regard/nn/attention.h"

namespace regard::models {

using autograd::add;
using autograd::concat_columns;
using autograd::intra_decoder_attention;
using autograd::intra_decoder_step;
using autograd::intra_temporal_attention;
using autograd::intra_temporal_step;
using autograd::linear;
using autograd::output_loss;
using autograd::pointer_log_probabilities;
using autograd::pointer_loss;
using autograd::rows;

namespace {

ModelConfig with_lstm(ModelConfig config) {
  config.cell = nn::CellKind::lstm;
  return config;
}

/// [forward; backward] of what both directions ended with, [B, 2N].
Tensor both(const Tensor& forward, const Tensor& backward) {
  return concat_columns(std::vector{forward, backward});
}

}  // namespace

IntraDecoder::IntraDecoder(const ModelConfig& config) : EncoderDecoder(with_lstm(config)) {
  if (config.source_vocabulary == config.target_vocabulary) return;
  if (shared())
    throw UsageError("shared embeddings need one vocabulary for both sides; else give --separate-embeddings");
  if (config.pointer)
    throw UsageError("a pointer needs one vocabulary for both sides; else give --no-pointer");
}

void IntraDecoder::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t V = c.target_vocabulary, D = c.embedding, N = c.width, K = c.intra_attention ? 6 * N : 4 * N;
  const auto fan = nn::Initial::fan_in;
  if (shared()) {
    visitor("embedding", W_emb_, {V, D}, nn::Initial::normal(1));
    visitor("embedding.projection", W_proj_, {K, D}, fan(K * D));  // so that W_out begins as fan(K)
  } else {
    visitor("embedding.source", E_source_, {c.source_vocabulary, D}, nn::Initial::normal(1));
    visitor("embedding.target", E_target_, {V, D}, nn::Initial::normal(1));
    visitor("output.W", W_out_, {V, K}, fan(K));
  }
  encoder_.visit(visitor, "encoder", c, true);
  decoder_.visit(visitor, "decoder", c.cell, D, 2 * N);
  visitor("attention.source.W", W_e_, {2 * N, 2 * N}, fan(2 * N));
  if (c.intra_attention) visitor("attention.decoder.W", W_d_, {2 * N, 2 * N}, fan(2 * N));
  if (c.pointer) {
    visitor("pointer.W", W_u_, {1, K}, fan(K));
    visitor("pointer.b", b_u_, {1}, fan(K));
  }
  visitor("output.b", b_out_, {V}, fan(K));
}

Memory IntraDecoder::encode(std::span<const std::span<const int32_t>> sources) const {
  Memory memory = encode(sources, Dropout());
  memory.packed_W_out = std::make_shared<const autograd::FrozenWeights>(std::span(&memory.W_out, 1));
  return memory;
}

Memory IntraDecoder::encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const {
  const Encoded encoded = encoder_(sources, E_source(), config(), dropout);
  Memory memory;
  memory.sources = encoded.sources;
  memory.h = memory.keys = encoded.h;                                          // h^e_i  [S, 2N]
  memory.W_out = shared() ? autograd::tanh(linear(W_emb_, W_proj_)) : W_out_;  //        [V, K]
  memory.words = words_of(sources);                                            //        [S]
  const nn::CellState &forward = encoded.forward.back(), &backward = encoded.backward.back();
  const int64_t B = memory.sources.count(), S = memory.sources.longest();
  const DType dtype = memory.h.dtype();
  memory.initial_state = {
      both(forward.h, backward.h),                                            // h^d_0  [B, 2N]
      both(forward.c, backward.c),                                            //        [B, 2N]
      Tensor::full({B, S}, -std::numeric_limits<double>::infinity(), dtype),  // log 0  [B, longest S]
      Tensor::empty({B, 0, 2 * config().width}, dtype)};                      //        [B, 0, 2N]
  return memory;
}

autograd::PointerInputs IntraDecoder::pointer(const Tensor& seen, const Tensor& alpha,
                                              const Memory& memory) const {
  return {seen, memory.W_out, b_out_, linear(seen, W_u_, b_u_), alpha};
}

Tensor IntraDecoder::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const Memory memory = encode(pairs.sources, dropout);
  const TargetRows target = target_rows(pairs.targets, begin());
  const autograd::Ragged& T = target.targets;
  const nn::CellState h_0{memory.initial_state[0], memory.initial_state[1]};
  const Tensor WEy = decoder_.project(rows(E_target(), target.previous.ids()));  // W E y + b  [T', 8N]
  const Tensor h = nn::run(decoder_.cell(), WEy, target.previous.index(), T, false, h_0).h;  // [T, 2N]
  const autograd::Attended source =  // c^e [T, 2N] and alpha^e [T, longest S]
      intra_temporal_attention(linear(h, W_e_), memory.h, memory.h, memory.sources, T);
  std::vector parts{h, source.context};
  if (config().intra_attention) parts.push_back(intra_decoder_attention(linear(h, W_d_), h, T));  // c^d
  const Tensor seen = dropout(concat_columns(parts), kReadoutLayer, T);  // [h; c^e; c^d]  [T, K]
  const Tensor loss =
      config().pointer ? pointer_loss(pointer(seen, source.weights, memory),
                                      {memory.words, memory.sources, sentence_rows(T)}, target.y,
                                      options.smoothing, options.scale)
                       : output_loss(seen, memory.W_out, b_out_, target.y, options.smoothing, options.scale);
  if (!is_guided(pairs, options)) return loss;
  return add(loss, guided_loss(source.weights, pairs, options, T));
}

Step IntraDecoder::step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
                        std::span<const int32_t> sentence_of) const {
  const Tensor WEy = decoder_.project(rows(E_target(), y_prev));             // W E y_{t-1} + b  [R, 8N]
  const auto [h, c] = nn::step(decoder_.cell(), WEy, {state[0], state[1]});  // h^d_t and memory  [R, 2N]
  const auto [source, sums] =  // c^e_t [R, 2N] and alpha^e_t [R, longest S]
      intra_temporal_step(linear(h, W_e_), memory.h, memory.h, state[2], memory.sources, sentence_of);
  std::vector parts{h, source.context};
  if (config().intra_attention) parts.push_back(intra_decoder_step(linear(h, W_d_), state[3]));  // c^d_t
  const Tensor seen = concat_columns(parts);  // [h^d_t; c^e_t; c^d_t]  [R, K]
  const autograd::FrozenWeights::Use use(*memory.packed_W_out);
  const Tensor logits = config().pointer
                            ? pointer_log_probabilities(pointer(seen, source.weights, memory),
                                                        {memory.words, memory.sources, sentence_of})
                            : linear(seen, memory.W_out, b_out_);  // [R, V]
  return {logits, {h, c, sums, nn::grown(state[3], h)}, source.weights};
}

}  // namespace regard::models
