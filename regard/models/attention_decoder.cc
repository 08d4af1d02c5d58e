#include "regard/models/attention_decoder.h"

#include "regard/autograd/score_attention.h"
#include "regard/nn/unrolled.h"

namespace regard::models {

using autograd::add;
using autograd::additive_attention;
using autograd::columns;
using autograd::concat_columns;
using autograd::linear;
using autograd::output_loss;
using autograd::rows;
using autograd::tanh;

void AttentionDecoder::visit_embedding(const ParameterVisitor& visitor, const ModelConfig& c) {
  visitor("embedding.target", E_target_, {c.target_vocabulary, c.embedding}, nn::Initial::normal(1));
}

void AttentionDecoder::visit(const ParameterVisitor& visitor, const ModelConfig& c, int64_t E) {
  kind_ = c.cell;
  const int64_t D = c.embedding, N = c.width, A = c.alignment_width, gN = nn::gates(c.cell) * N;
  const bool biases = c.readout == Readout::tanh;  // the paper's model has none of these
  const auto fan = nn::Initial::fan_in;
  visitor("initial.W", W_s_, {N, N}, fan(N));
  if (biases) visitor("initial.b", b_s_, {N}, fan(N));
  visitor("attention.W_a", W_a_, {A, N}, fan(N));
  visitor("attention.U_a", U_a_, {A, E}, fan(E));
  if (biases) visitor("attention.b", b_a_, {A}, fan(E));
  visitor("attention.v", v_a_, {A}, fan(A));
  visitor("decoder.W", W_, {gN, D}, fan(N));
  visitor("decoder.C", C_, {gN, E}, fan(N));
  visitor("decoder.U", U_, {gN, N}, fan(N));
  visitor("decoder.b_ih", b_ih_, {gN}, fan(N));
  if (nn::has_state_bias(c.cell)) visitor("decoder.b_hh", b_hh_, {gN}, fan(N));
  readout_.visit(visitor, c, E);
  visitor("output.W", W_out_, {c.target_vocabulary, c.readout_width}, fan(c.readout_width));
  visitor("output.b", b_out_, {c.target_vocabulary}, fan(c.readout_width));
}

Memory AttentionDecoder::memory(const autograd::Ragged& sources, const Tensor& h, const Tensor& last) const {
  Memory memory;
  memory.sources = sources;
  memory.h = h;                                      // h_j      [S, E]
  memory.keys = linear(h, U_a_, b_a_);               // U_a h_j  [S, A]
  const Tensor s0 = tanh(linear(last, W_s_, b_s_));  // s_0      [B, N]
  memory.initial_state = {s0};
  if (nn::has_memory(kind_)) memory.initial_state.push_back(Tensor::zeros(s0.shape(), s0.dtype()));
  return memory;
}

/// s_i and c_i of all steps, [T, N + E]. The common cell has a fused recurrence, the others are written out.
Tensor AttentionDecoder::decode(const Memory& memory, const Tensor& WEy, const TargetRows& target) const {
  const Tensor& s0 = memory.initial_state[0];
  if (kind_ == nn::CellKind::gru)
    return attention_decoder({s0, memory.keys, memory.h, W_a_, v_a_, WEy, C_, U_, b_hh_},
                             target.previous.index(), memory.sources, target.targets);
  const int64_t N = s0.dim(1), E = memory.h.dim(1);
  const bool lstm = nn::has_memory(kind_);
  const Tensor no_context = Tensor::zeros({s0.dim(0), E}, s0.dtype());
  std::vector<Tensor> initial{s0, no_context};
  if (lstm) initial.push_back(memory.initial_state[1]);
  const auto recurrence = [&](const nn::ActiveRows& active, const Tensor& before) {  // s | c | memory
    std::vector<int32_t> words;
    for (const int32_t t : active.positions) words.push_back(target.previous.index()[static_cast<size_t>(t)]);
    const Tensor s = columns(before, 0, N);  // s_{i-1}  [R, N]
    const Tensor c = additive_attention(linear(s, W_a_), memory.keys, memory.h, v_a_, memory.sources,
                                        active.sentences)
                         .context;  // c_i      [R, E]
    const nn::CellState next = nn::step(cell(), add(rows(WEy, words), linear(c, C_)),
                                        {s, lstm ? columns(before, N + E, 2 * N + E) : Tensor()});
    std::vector<Tensor> after{next.h, c};
    if (lstm) after.push_back(next.c);
    return concat_columns(after);
  };
  const Tensor states = nn::unroll(target.targets, false, concat_columns(initial), recurrence);
  return lstm ? columns(states, 0, N + E) : states;
}

Tensor AttentionDecoder::loss(const Memory& memory, const SentencePairs& pairs, const LossOptions& options,
                              const Dropout& dropout, int32_t begin) const {
  const int64_t N = memory.initial_state[0].dim(1), E = memory.h.dim(1);
  const TargetRows target = target_rows(pairs.targets, begin);
  const Tensor Ey = rows(E_target_, target.previous.ids());   // E y       [T', D]
  Tensor sc = decode(memory, linear(Ey, W_, b_ih_), target);  // s_i, c_i  [T, N + E]
  Tensor s_before;                                            // s_{i-1}   [T, N]
  if (readout_.kind == Readout::maxout || is_guided(pairs, options))
    s_before = states_before(columns(sc, 0, N), memory.initial_state[0], target.targets);
  if (readout_.kind == Readout::maxout) sc = concat_columns(std::vector{s_before, columns(sc, N, N + E)});
  const Tensor s_and_c = linear(sc, concat_columns(std::vector{readout_.S, readout_.C}));   // [T, R]
  const Tensor word = rows(readout_.word_part(Ey), target.previous.index());                // [T, R]
  const Tensor t = dropout(readout_.finish(s_and_c, word), kReadoutLayer, target.targets);  // t_i [T, R]
  const Tensor loss = output_loss(t, W_out_, b_out_, target.y, options.smoothing, options.scale);
  if (!is_guided(pairs, options)) return loss;
  const Tensor alpha = additive_attention(linear(s_before, W_a_), memory.keys, memory.h, v_a_, memory.sources,
                                          sentence_rows(target.targets))
                           .weights;  // alpha_ij of all i at once  [T, longest S]
  return add(loss, guided_loss(alpha, pairs, options, target.targets));
}

Step AttentionDecoder::step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
                            std::span<const int32_t> sentence_of) const {
  Step result;
  const Tensor& before = state[0];            // s_{i-1}   [R, N]
  const Tensor Ey = rows(E_target_, y_prev);  // E y_{i-1} [R, D]
  const autograd::Attended attended =
      additive_attention(linear(before, W_a_), memory.keys, memory.h, v_a_, memory.sources, sentence_of);
  const Tensor& c = attended.context;  // c_i       [R, E]
  result.alpha = attended.weights;     // alpha_ij  [R, longest S]
  const nn::CellState next = nn::step(cell(), add(linear(Ey, W_, b_ih_), linear(c, C_)),
                                      {before, state.size() > 1 ? state[1] : Tensor()});  // s_i  [R, N]
  const Tensor& seen = readout_.kind == Readout::maxout ? before : next.h;
  const Tensor t = readout_.finish(add(linear(seen, readout_.S), linear(c, readout_.C)),
                                   readout_.word_part(Ey));  // t_i  [R, R]
  result.logits = linear(t, W_out_, b_out_);                 //      [R, V]
  result.state = {next.h};
  if (next.c.defined()) result.state.push_back(next.c);
  return result;
}

}  // namespace regard::models
