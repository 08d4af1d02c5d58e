#include "regard/models/bahdanau.h"

#include <cmath>
#include <unordered_map>

#include "regard/autograd/operations.h"

namespace regard::models {

using autograd::add;
using autograd::add_bias;
using autograd::columns;
using autograd::concat_columns;
using autograd::gru_step;
using autograd::linear;
using autograd::output_loss;
using autograd::Ragged;
using autograd::rows;
using autograd::tanh;

namespace {

/// The distinct numbers of a list, in order of first appearance, and for every entry its place among them.
struct Distinct {
  std::vector<int32_t> ids, index;
  void push_back(int32_t id) {
    const auto [place, fresh] = place_.try_emplace(id, static_cast<int32_t>(ids.size()));
    if (fresh) ids.push_back(id);
    index.push_back(place->second);
  }

 private:
  std::unordered_map<int32_t, int32_t> place_;
};

/// Rows of the backward encoder's states at position 0 of every sentence, and zero for an empty one.
std::vector<int32_t> first_positions(const Ragged& sources) {
  std::vector<int32_t> first;
  for (int64_t b = 0; b < sources.count(); ++b) first.push_back(static_cast<int32_t>(sources.begin(b)));
  return first;
}

}  // namespace

/// The one list of parameters: name, tensor, shape, bound of the initial uniform distribution (0: normal).
template <class Self, class Visit>
void Bahdanau::members(Self& self, Visit visit) {
  const auto& c = self.config_;
  const int64_t D = c.embedding, N = c.width, A = c.alignment, R = c.readout;
  const auto fan = [](int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); };
  visit("embedding.source", self.E_source_, Shape{c.source_vocabulary, D}, 0.0);
  visit("embedding.target", self.E_target_, Shape{c.target_vocabulary, D}, 0.0);
  const auto cell = [&](const std::string& name, auto& it) {
    visit(name + ".W_ih", it.W, Shape{3 * N, D}, fan(N));
    visit(name + ".W_hh", it.U, Shape{3 * N, N}, fan(N));
    visit(name + ".b_ih", it.b_ih, Shape{3 * N}, fan(N));
    visit(name + ".b_hh", it.b_hh, Shape{3 * N}, fan(N));
  };
  cell("encoder.forward", self.forward_);
  cell("encoder.backward", self.backward_);
  visit("initial.W", self.W_s_, Shape{N, N}, fan(N));
  visit("initial.b", self.b_s_, Shape{N}, fan(N));
  visit("attention.W_a", self.W_a_, Shape{A, N}, fan(N));
  visit("attention.U_a", self.U_a_, Shape{A, 2 * N}, fan(2 * N));
  visit("attention.b", self.b_a_, Shape{A}, fan(2 * N));
  visit("attention.v", self.v_a_, Shape{A}, fan(A));
  visit("decoder.W", self.W_, Shape{3 * N, D}, fan(N));
  visit("decoder.C", self.C_, Shape{3 * N, 2 * N}, fan(N));
  visit("decoder.U", self.U_, Shape{3 * N, N}, fan(N));
  visit("decoder.b_ih", self.b_ih_, Shape{3 * N}, fan(N));
  visit("decoder.b_hh", self.b_hh_, Shape{3 * N}, fan(N));
  visit("readout.S", self.S_o_, Shape{R, N}, fan(3 * N + D));
  visit("readout.C", self.C_o_, Shape{R, 2 * N}, fan(3 * N + D));
  visit("readout.E", self.V_o_, Shape{R, D}, fan(3 * N + D));
  visit("readout.b", self.b_o_, Shape{R}, fan(3 * N + D));
  visit("output.W", self.W_out_, Shape{c.target_vocabulary, R}, fan(R));
  visit("output.b", self.b_out_, Shape{c.target_vocabulary}, fan(R));
}

Bahdanau::Bahdanau(const BahdanauConfig& config, uint64_t seed) : config_(config) {
  uint64_t stream = 100;
  members(*this, [&](const std::string&, Tensor& tensor, const Shape& shape, double bound) {
    tensor = bound > 0 ? nn::uniform(shape, bound, seed, stream) : nn::normal(shape, 1.0, seed, stream);
    ++stream;
  });
}

std::vector<nn::Parameter> Bahdanau::parameters() const {
  std::vector<nn::Parameter> list;
  members(*this, [&](const std::string& name, const Tensor& tensor, const Shape&, double) {
    list.push_back({name, tensor});
  });
  return list;
}

void Bahdanau::load(std::span<const nn::Parameter> values) {
  std::unordered_map<std::string, Tensor> by_name;
  for (const auto& value : values) by_name[value.name] = value.value;
  members(*this, [&](const std::string& name, Tensor& tensor, const Shape& shape, double) {
    const auto found = by_name.find(name);
    if (found == by_name.end())
      throw DataError("the weights lack " + name + "; is this another model's file?");
    if (found->second.shape() != shape)
      throw DataError("weights " + name + " " + shape_text(found->second.shape()) + ", expected " +
                      shape_text(shape));
    tensor = found->second;
  });
}

void Bahdanau::convert(DType dtype) {
  members(*this,
          [&](const std::string&, Tensor& tensor, const Shape&, double) { tensor = tensor.to(dtype); });
}

Memory Bahdanau::encode(std::span<const std::span<const int32_t>> sources) const {
  Memory memory;
  Distinct words;
  for (const auto& source : sources) {
    memory.sources.push_back(static_cast<int64_t>(source.size()));
    for (int32_t x : source) words.push_back(x);
  }
  const Tensor Ex = rows(E_source_, words.ids);  // E x_j    [S', D]
  const Tensor hf = gru_sequence(linear(Ex, forward_.W, forward_.b_ih), words.index, forward_.U,
                                 forward_.b_hh, memory.sources, false);  // h_j ->   [S, N]
  const Tensor hb = gru_sequence(linear(Ex, backward_.W, backward_.b_ih), words.index, backward_.U,
                                 backward_.b_hh, memory.sources, true);             // h_j <-   [S, N]
  memory.h = concat_columns(std::vector{hf, hb});                                   // h_j      [S, 2N]
  memory.Ua_h = linear(memory.h, U_a_, b_a_);                                       // U_a h_j  [S, A]
  memory.s0 = tanh(linear(rows(hb, first_positions(memory.sources)), W_s_, b_s_));  // s_0      [B, N]
  return memory;
}

Tensor Bahdanau::loss(const SentencePairs& pairs, double smoothing, double scale) const {
  const Memory memory = encode(pairs.sources);
  Distinct previous;
  std::vector<int32_t> y;
  Ragged targets;
  const auto begin = static_cast<int32_t>(config_.target_vocabulary - 1);
  for (const auto& target : pairs.targets) {
    targets.push_back(static_cast<int64_t>(target.size()));
    for (size_t i = 0; i < target.size(); ++i) previous.push_back(i ? target[i - 1] : begin);
    y.insert(y.end(), target.begin(), target.end());
  }
  const Tensor Ey = rows(E_target_, previous.ids);  // E y      [T', D]
  const Tensor sc =
      attention_decoder({memory.s0, memory.Ua_h, memory.h, W_a_, v_a_, linear(Ey, W_, b_ih_), C_, U_, b_hh_},
                        previous.index, memory.sources, targets);              // s_i, c_i [T, 3N]
  const Tensor s_and_c = linear(sc, concat_columns(std::vector{S_o_, C_o_}));  //          [T, R]
  const Tensor y_part = rows(linear(Ey, V_o_, b_o_), previous.index);          //          [T, R]
  return output_loss(tanh(add(s_and_c, y_part)), W_out_, b_out_, y, smoothing, scale);
}

Step Bahdanau::step(std::span<const int32_t> y_prev, const Tensor& s, const Memory& memory,
                    std::span<const int32_t> sentence_of) const {
  Step result;
  const Tensor Ey = rows(E_target_, y_prev);  // E y_{i-1} [R, D]
  const Tensor c =
      additive_attention(linear(s, W_a_), memory.Ua_h, memory.h, v_a_, memory.sources, sentence_of,
                         &result.alpha);                                         // c_i       [R, 2N]
  result.s = gru_step(add(linear(Ey, W_, b_ih_), linear(c, C_)), s, U_, b_hh_);  // s_i       [R, N]
  const Tensor t =
      tanh(add(linear(concat_columns(std::vector{result.s, c}), concat_columns(std::vector{S_o_, C_o_})),
               linear(Ey, V_o_, b_o_)));      // t_i       [R, R]
  result.logits = linear(t, W_out_, b_out_);  //           [R, V]
  return result;
}

}  // namespace regard::models
