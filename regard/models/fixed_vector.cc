#include "regard/models/fixed_vector.h"

namespace regard::models {

using autograd::add;
using autograd::concat_columns;
using autograd::linear;
using autograd::output_loss;
using autograd::rows;
using autograd::tanh;

void FixedVector::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t N = c.width, E = c.bidirectional ? 2 * N : N, gN = nn::gates(c.cell) * N;
  const auto fan = nn::Initial::fan_in;
  visitor("embedding.source", E_source_, {c.source_vocabulary, c.embedding}, nn::Initial::normal(1));
  visitor("embedding.target", E_target_, {c.target_vocabulary, c.embedding}, nn::Initial::normal(1));
  encoder_.visit(visitor, "encoder", c, c.bidirectional);
  initial_.resize(static_cast<size_t>(c.layers));
  decoder_.resize(initial_.size());
  for (size_t l = 0; l < initial_.size(); ++l) {
    const std::string number = l == 0 ? "" : "." + std::to_string(l + 1);
    visitor("initial" + number + ".W", initial_[l].W, {N, E}, fan(E));
    visitor("initial" + number + ".b", initial_[l].b, {N}, fan(E));
  }
  visitor("decoder.C", C_, {gN, E}, fan(N));
  for (size_t l = 0; l < decoder_.size(); ++l)
    decoder_[l].visit(visitor, l == 0 ? "decoder" : "decoder." + std::to_string(l + 1), c.cell,
                      l == 0 ? c.embedding : N, N);
  readout_.visit(visitor, c, E);
  visitor("output.W", W_out_, {c.target_vocabulary, c.readout_width}, fan(c.readout_width));
  visitor("output.b", b_out_, {c.target_vocabulary}, fan(c.readout_width));
}

Memory FixedVector::encode(std::span<const std::span<const int32_t>> sources) const {
  return encode(sources, Dropout());
}

Memory FixedVector::encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const {
  const Encoded encoded = encoder_(sources, E_source_, config(), dropout);
  Memory memory;
  memory.sources = encoded.sources;
  memory.h = encoded.forward.back().h;  // v  [B, E]
  if (config().bidirectional)
    memory.h = concat_columns(std::vector{encoded.forward.back().h, encoded.backward.back().h});
  for (size_t l = 0; l < decoder_.size(); ++l) {
    const nn::CellState s0 = initial(memory, l);
    memory.initial_state.push_back(s0.h);
    if (s0.c.defined()) memory.initial_state.push_back(s0.c);
  }
  return memory;
}

nn::CellState FixedVector::initial(const Memory& memory, size_t layer) const {
  const Tensor h = tanh(linear(memory.h, initial_[layer].W, initial_[layer].b));  // [B, N]
  return {h, nn::has_memory(config().cell) ? Tensor::zeros(h.shape(), h.dtype()) : Tensor()};
}

Tensor FixedVector::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const Memory memory = encode(pairs.sources, dropout);
  const TargetRows target = target_rows(pairs.targets, begin());
  const auto sentence = sentence_rows(target.targets);
  const auto every_row = identity_index(target.targets.total());
  const Tensor Ey = rows(E_target_, target.previous.ids());  // E y  [T', D]
  Tensor x = add(rows(decoder_[0].project(Ey), target.previous.index()),
                 rows(linear(memory.h, C_), sentence));  //      [T, gN]
  Tensor s;
  for (size_t l = 0; l < decoder_.size(); ++l) {
    if (l > 0) x = decoder_[l].project(s);
    const Tensor h = nn::run(decoder_[l].cell(), x, every_row, target.targets, false, initial(memory, l)).h;
    s = layer_output(config(), l, h, s);  // [T, N]
    if (l + 1 < decoder_.size()) s = dropout(s, kDecoderLayer + l, target.targets);
  }
  const Tensor s_and_v = add(linear(s, readout_.S), rows(linear(memory.h, readout_.C), sentence));  // [T, R]
  const Tensor word = rows(readout_.word_part(Ey), target.previous.index());                        // [T, R]
  const Tensor t = dropout(readout_.finish(s_and_v, word), kReadoutLayer, target.targets);          // [T, R]
  return output_loss(t, W_out_, b_out_, target.y, options.smoothing, options.scale);
}

Step FixedVector::step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
                       std::span<const int32_t> sentence_of) const {
  Step result;
  const size_t tensors = nn::has_memory(config().cell) ? 2 : 1;  // of a layer's state
  const Tensor Ey = rows(E_target_, y_prev);                     // E y_{t-1}  [R, D]
  const Tensor v = rows(memory.h, sentence_of);                  // v          [R, E]
  Tensor x = add(decoder_[0].project(Ey), linear(v, C_));        //            [R, gN]
  Tensor s;
  for (size_t l = 0; l < decoder_.size(); ++l) {
    if (l > 0) x = decoder_[l].project(s);
    const nn::CellState next = nn::step(
        decoder_[l].cell(), x, {state[tensors * l], tensors == 2 ? state[tensors * l + 1] : Tensor()});
    s = layer_output(config(), l, next.h, s);  // [R, N]
    result.state.push_back(next.h);
    if (next.c.defined()) result.state.push_back(next.c);
  }
  const Tensor t = readout_.finish(add(linear(s, readout_.S), linear(v, readout_.C)),
                                   readout_.word_part(Ey));  // [R, R]
  result.logits = linear(t, W_out_, b_out_);                 // [R, V]
  return result;
}

}  // namespace regard::models
