#include "regard/models/bahdanau.h"

#include "regard/models/sentences.h"

namespace regard::models {

using autograd::add;
using autograd::concat_columns;
using autograd::gru_step;
using autograd::linear;
using autograd::output_loss;
using autograd::Ragged;
using autograd::rows;
using autograd::tanh;

namespace {

enum DropoutLayer : uint64_t { kAnnotations, kReadout };

}  // namespace

void Bahdanau::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t D = c.embedding, N = c.width, A = c.alignment_width, R = c.readout_width;
  const auto fan = nn::Initial::fan_in;
  visitor("embedding.source", E_source_, {c.source_vocabulary, D}, nn::Initial::normal(1));
  visitor("embedding.target", E_target_, {c.target_vocabulary, D}, nn::Initial::normal(1));
  const auto cell = [&](const std::string& name, Cell& it) {
    visitor(name + ".W_ih", it.W, {3 * N, D}, fan(N));
    visitor(name + ".W_hh", it.U, {3 * N, N}, fan(N));
    visitor(name + ".b_ih", it.b_ih, {3 * N}, fan(N));
    visitor(name + ".b_hh", it.b_hh, {3 * N}, fan(N));
  };
  cell("encoder.forward", forward_);
  cell("encoder.backward", backward_);
  visitor("initial.W", W_s_, {N, N}, fan(N));
  visitor("initial.b", b_s_, {N}, fan(N));
  visitor("attention.W_a", W_a_, {A, N}, fan(N));
  visitor("attention.U_a", U_a_, {A, 2 * N}, fan(2 * N));
  visitor("attention.b", b_a_, {A}, fan(2 * N));
  visitor("attention.v", v_a_, {A}, fan(A));
  visitor("decoder.W", W_, {3 * N, D}, fan(N));
  visitor("decoder.C", C_, {3 * N, 2 * N}, fan(N));
  visitor("decoder.U", U_, {3 * N, N}, fan(N));
  visitor("decoder.b_ih", b_ih_, {3 * N}, fan(N));
  visitor("decoder.b_hh", b_hh_, {3 * N}, fan(N));
  visitor("readout.S", S_o_, {R, N}, fan(3 * N + D));
  visitor("readout.C", C_o_, {R, 2 * N}, fan(3 * N + D));
  visitor("readout.E", V_o_, {R, D}, fan(3 * N + D));
  visitor("readout.b", b_o_, {R}, fan(3 * N + D));
  visitor("output.W", W_out_, {c.target_vocabulary, R}, fan(R));
  visitor("output.b", b_out_, {c.target_vocabulary}, fan(R));
}

Memory Bahdanau::encode(std::span<const std::span<const int32_t>> sources) const {
  return encode(sources, Dropout());
}

Memory Bahdanau::encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const {
  Memory memory;
  Distinct words;
  for (const auto& source : sources) {
    memory.sources.push_back(static_cast<int64_t>(source.size()));
    for (int32_t x : source) words.push_back(x);
  }
  const Tensor Ex = rows(E_source_, words.ids());  // E x_j    [S', D]
  const Tensor hf = gru_sequence(linear(Ex, forward_.W, forward_.b_ih), words.index(), forward_.U,
                                 forward_.b_hh, memory.sources, false);  // h_j ->   [S, N]
  const Tensor hb = gru_sequence(linear(Ex, backward_.W, backward_.b_ih), words.index(), backward_.U,
                                 backward_.b_hh, memory.sources, true);                   // h_j <-   [S, N]
  memory.h = dropout(concat_columns(std::vector{hf, hb}), kAnnotations, memory.sources);  // h_j  [S, 2N]
  memory.keys = linear(memory.h, U_a_, b_a_);                                             // U_a h_j  [S, A]
  const Tensor h1 = rows(hb, first_rows(memory.sources));                                 // h_1 <-   [B, N]
  memory.initial_state = {tanh(linear(h1, W_s_, b_s_))};                                  // s_0      [B, N]
  return memory;
}

Tensor Bahdanau::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const Memory memory = encode(pairs.sources, dropout);
  const TargetRows target = target_rows(pairs.targets, begin());
  const Tensor Ey = rows(E_target_, target.previous.ids());  // E y      [T', D]
  const Tensor sc = attention_decoder(
      {memory.initial_state[0], memory.keys, memory.h, W_a_, v_a_, linear(Ey, W_, b_ih_), C_, U_, b_hh_},
      target.previous.index(), memory.sources,
      target.targets);                                                             // s_i, c_i [T, 3N]
  const Tensor s_and_c = linear(sc, concat_columns(std::vector{S_o_, C_o_}));      //          [T, R]
  const Tensor y_part = rows(linear(Ey, V_o_, b_o_), target.previous.index());     //          [T, R]
  const Tensor t = dropout(tanh(add(s_and_c, y_part)), kReadout, target.targets);  // t_i    [T, R]
  return output_loss(t, W_out_, b_out_, target.y, options.smoothing, options.scale);
}

Step Bahdanau::step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
                    std::span<const int32_t> sentence_of) const {
  Step result;
  const Tensor& s0 = state[0];                // s_{i-1}   [R, N]
  const Tensor Ey = rows(E_target_, y_prev);  // E y_{i-1} [R, D]
  const Tensor c = additive_attention(linear(s0, W_a_), memory.keys, memory.h, v_a_, memory.sources,
                                      sentence_of, &result.alpha);                      // c_i  [R, 2N]
  const Tensor s = gru_step(add(linear(Ey, W_, b_ih_), linear(c, C_)), s0, U_, b_hh_);  // s_i  [R, N]
  const Tensor t =
      tanh(add(add(linear(s, S_o_), linear(c, C_o_)), linear(Ey, V_o_, b_o_)));  // t_i       [R, R]
  result.logits = linear(t, W_out_, b_out_);                                     //           [R, V]
  result.state = {s};
  return result;
}

}  // namespace regard::models
