#include "regard/models/luong.h"

#include "regard/nn/unrolled.h"

namespace regard::models {

using autograd::add;
using autograd::Attended;
using autograd::columns;
using autograd::concat_columns;
using autograd::linear;
using autograd::multiply;
using autograd::output_loss;
using autograd::rows;
using autograd::tanh;

namespace {

std::string value(const char* field, const ModelConfig& config) {
  const ChoiceField& choice = std::get<ChoiceField>(config_field(field).kind);
  return choice.names.at(static_cast<size_t>(choice.get(config)));
}

/// 0, 1, ... of every target: [total, 1].
Tensor positions(const autograd::Ragged& targets, DType dtype) {
  Tensor t = Tensor::empty({targets.total(), 1}, DType::f64);
  for (int64_t b = 0; b < targets.count(); ++b)
    for (int64_t k = 0; k < targets.length(b); ++k)
      t.data<double>()[targets.begin(b) + k] = static_cast<double>(k);
  return t.to(dtype);
}

/// The tensors whose columns stand side by side, as wide as those of `like`.
State parted(const Tensor& joined, const State& like) {
  State state;
  int64_t begin = 0;
  for (const Tensor& tensor : like) {
    state.push_back(columns(joined, begin, begin + tensor.dim(1)));
    begin += tensor.dim(1);
  }
  return state;
}

}  // namespace

void Luong::check(const ModelConfig& config) {
  check_recurrent(config);
  const std::string score = value("score", config), attention = value("attention", config);
  const bool local = config.attention != Attention::global;
  if (local && config.window == 0)
    throw UsageError("--attention " + attention + " needs --window D, the half width of its window");
  if (!local && config.window > 0)
    throw UsageError("--window says nothing to --attention global, which sees all of the source");
  if (local && (config.score == Score::concat || config.score == Score::location))
    throw UsageError("--attention " + attention + " goes with --score dot or general, not with " + score);
  if (config.score == Score::location && config.longest_source == 0)
    throw UsageError("--score location needs --longest-source L: it has weights for so many positions");
  if (config.score != Score::location && config.longest_source > 0)
    throw UsageError("--longest-source says nothing to --score " + score);
  if (config.score == Score::dot && config.bidirectional)
    throw UsageError(
        "--score dot needs states and annotations of one width, and --bidirectional makes annotations of "
        "twice --width; use --score general");
}

void Luong::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t D = c.embedding, N = c.width, E = c.bidirectional ? 2 * N : N, A = c.alignment_width,
                R = c.readout_width;
  const auto fan = nn::Initial::fan_in;
  visitor("embedding.source", E_source_, {c.source_vocabulary, D}, nn::Initial::normal(1));
  visitor("embedding.target", E_target_, {c.target_vocabulary, D}, nn::Initial::normal(1));
  encoder_.visit(visitor, "encoder", c, c.bidirectional);
  decoder_.resize(static_cast<size_t>(c.layers));
  for (size_t l = 0; l < layers(); ++l)
    decoder_[l].visit(visitor, l == 0 ? "decoder" : "decoder." + std::to_string(l + 1), c.cell,
                      l == 0 ? D : N, N);
  if (c.input_feeding) visitor("decoder.F", F_, {nn::gates(c.cell) * N, R}, fan(N));
  if (c.score == Score::general) visitor("attention.W_a", W_a_, {N, E}, fan(E));
  if (c.score == Score::location) visitor("attention.W_a", W_a_, {c.longest_source, N}, fan(N));
  if (c.score == Score::concat) {
    visitor("attention.W_a_t", W_a_t_, {A, N}, fan(N));
    visitor("attention.W_a_s", W_a_s_, {A, E}, fan(E));
    visitor("attention.v_a", v_a_, {A}, fan(A));
  }
  if (c.attention == Attention::local_p) {
    visitor("attention.W_p", W_p_, {A, N}, fan(N));
    visitor("attention.v_p", v_p_, {A}, fan(A));
  }
  visitor("combine.W_c", W_c_, {R, E + N}, fan(E + N));
  visitor("output.W", W_out_, {c.target_vocabulary, R}, fan(R));
  visitor("output.b", b_out_, {c.target_vocabulary}, fan(R));
}

Memory Luong::encode(std::span<const std::span<const int32_t>> sources) const {
  return encode(sources, Dropout());
}

Memory Luong::encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const {
  const Encoded encoded = encoder_(sources, E_source_, config(), dropout);
  Memory memory;
  memory.sources = encoded.sources;
  memory.h = encoded.h;                                                         // h_s      [S, E]
  if (config().score == Score::dot) memory.keys = memory.h;                     //          [S, N]
  if (config().score == Score::general) memory.keys = linear(memory.h, W_a_);   // W_a h_s  [S, N]
  if (config().score == Score::concat) memory.keys = linear(memory.h, W_a_s_);  // W_a h_s  [S, A]
  for (const nn::CellState& last : config().bidirectional ? encoded.backward : encoded.forward) {
    memory.initial_state.push_back(last.h);  // [B, N]
    if (last.c.defined()) memory.initial_state.push_back(last.c);
  }
  const int64_t B = memory.sources.count();
  const DType dtype = memory.h.dtype();
  if (config().attention == Attention::local_m) memory.initial_state.push_back(Tensor::zeros({B, 1}, dtype));
  if (config().input_feeding)
    memory.initial_state.push_back(Tensor::zeros({B, config().readout_width}, dtype));  // h~_0  [B, R]
  return memory;
}

Attended Luong::attend(const Tensor& h_t, const Tensor& t, const Memory& memory,
                       std::span<const int32_t> sentence_of) const {
  if (config().attention != Attention::global) {
    const bool predicted = config().attention == Attention::local_p;
    const Tensor p_t =
        predicted ? autograd::local_centres(h_t, W_p_, v_p_, memory.sources, sentence_of) : t;  // [R, 1]
    return autograd::local_attention(h_t, memory.keys, memory.h, p_t, {config().window, predicted},
                                     memory.sources, sentence_of);
  }
  if (config().score == Score::location)
    return autograd::location_attention(h_t, W_a_, memory.h, memory.sources, sentence_of);
  if (config().score == Score::concat)
    return autograd::additive_attention(linear(h_t, W_a_t_), memory.keys, memory.h, v_a_, memory.sources,
                                        sentence_of);
  return autograd::dot_attention(h_t, memory.keys, memory.h, memory.sources, sentence_of);
}

Tensor Luong::combine(const Tensor& c_t, const Tensor& h_t) const {
  return tanh(linear(concat_columns(std::vector{c_t, h_t}), W_c_));
}

nn::CellState Luong::of_layer(const State& state, size_t layer) const {
  if (!nn::has_memory(config().cell)) return {state[layer], {}};
  return {state[2 * layer], state[2 * layer + 1]};
}

Luong::Next Luong::next(const Tensor& WEy, const State& before, const Memory& memory,
                        std::span<const int32_t> sentence_of, std::span<const Tensor> masks) const {
  Next result;
  Tensor x = config().input_feeding ? add(WEy, linear(before.back(), F_)) : WEy;  // [R, gN]
  Tensor h_t;
  for (size_t l = 0; l < layers(); ++l) {
    if (l > 0 && l - 1 < masks.size()) h_t = multiply(h_t, masks[l - 1]);
    if (l > 0) x = decoder_[l].project(h_t);
    const nn::CellState after = nn::step(decoder_[l].cell(), x, of_layer(before, l));
    h_t = layer_output(config(), l, after.h, h_t);  // [R, N]
    result.state.push_back(after.h);
    if (after.c.defined()) result.state.push_back(after.c);
  }
  Tensor t;
  if (config().attention == Attention::local_m) {
    t = before[tensors_of_layers()];  // [R, 1]
    result.state.push_back(add(t, Tensor::full(t.shape(), 1, t.dtype())));
  }
  const Attended attended = attend(h_t, t, memory, sentence_of);
  result.alpha = attended.weights;
  result.h_tilde = combine(attended.context, h_t);
  if (config().input_feeding) result.state.push_back(result.h_tilde);
  return result;
}

/// Without input feeding the recurrence does not wait for attention: each layer runs as one sequence, and all
/// positions attend together.
Luong::Decoded Luong::decode_at_once(const Memory& memory, const Tensor& WEy, const TargetRows& target,
                                     const Dropout& dropout) const {
  const auto every_row = identity_index(target.targets.total());
  Tensor h_t;
  for (size_t l = 0; l < layers(); ++l) {
    const nn::CellState initial = of_layer(memory.initial_state, l);
    if (l > 0) h_t = dropout(h_t, kDecoderLayer + l - 1, target.targets);
    const Tensor x = l == 0 ? WEy : decoder_[l].project(h_t);
    const auto index = l == 0 ? target.previous.index() : std::span<const int32_t>(every_row);
    const Tensor h = nn::run(decoder_[l].cell(), x, index, target.targets, false, initial).h;
    h_t = layer_output(config(), l, h, h_t);  // [T, N]
  }
  const Attended attended =
      attend(h_t, positions(target.targets, h_t.dtype()), memory, sentence_rows(target.targets));
  return {h_t, combine(attended.context, h_t)};
}

Luong::Decoded Luong::decode_step_by_step(const Memory& memory, const Tensor& WEy, const TargetRows& target,
                                          const Dropout& dropout) const {
  std::vector<Tensor> masks;  // [T, N] of the layers but the last
  for (size_t l = 0; l + 1 < layers(); ++l) {
    const Tensor mask = dropout.mask(config().width, kDecoderLayer + l, target.targets, WEy.dtype());
    if (mask.defined()) masks.push_back(mask);
  }
  const auto recurrence = [&](const nn::ActiveRows& active, const Tensor& before) {
    std::vector<int32_t> words;
    for (const int32_t t : active.positions) words.push_back(target.previous.index()[static_cast<size_t>(t)]);
    std::vector<Tensor> masks_now;
    for (const Tensor& mask : masks) masks_now.push_back(rows(mask, active.positions));
    return concat_columns(
        next(rows(WEy, words), parted(before, memory.initial_state), memory, active.sentences, masks_now)
            .state);
  };
  const Tensor states = nn::unroll(target.targets, false, concat_columns(memory.initial_state), recurrence);
  const int64_t N = config().width, W = states.dim(1), R = config().readout_width;
  const int64_t width = N * static_cast<int64_t>(tensors_of_layers() / layers());  // of a layer's state
  Tensor h_t;
  for (size_t l = 0; l < layers(); ++l) {
    const int64_t begin = width * static_cast<int64_t>(l);
    if (!config().residual && l + 1 < layers()) continue;
    if (l > 0 && l - 1 < masks.size() && config().residual) h_t = multiply(h_t, masks[l - 1]);
    h_t = layer_output(config(), l, columns(states, begin, begin + N), h_t);  // [T, N]
  }
  return {h_t, columns(states, W - R, W)};
}

Tensor Luong::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const Memory memory = encode(pairs.sources, dropout);
  const TargetRows target = target_rows(pairs.targets, begin());
  const Tensor WEy = decoder_[0].project(rows(E_target_, target.previous.ids()));  // W E y + b  [T', gN]
  const Decoded decoded = config().input_feeding ? decode_step_by_step(memory, WEy, target, dropout)
                                                 : decode_at_once(memory, WEy, target, dropout);
  const Tensor h_tilde = dropout(decoded.h_tilde, kReadoutLayer, target.targets);  // [T, R]
  const Tensor loss = output_loss(h_tilde, W_out_, b_out_, target.y, options.smoothing, options.scale);
  if (!is_guided(pairs, options)) return loss;
  const Tensor alpha = attend(decoded.h_t, positions(target.targets, WEy.dtype()), memory,
                              sentence_rows(target.targets))
                           .weights;  // [T, longest S]
  return add(loss, guided_loss(alpha, pairs, options, target.targets));
}

Step Luong::step(std::span<const int32_t> y_prev, const State& state, const Memory& memory,
                 std::span<const int32_t> sentence_of) const {
  const Tensor WEy = decoder_[0].project(rows(E_target_, y_prev));  // W E y_{t-1} + b  [R, gN]
  Next after = next(WEy, state, memory, sentence_of, {});
  return {linear(after.h_tilde, W_out_, b_out_), std::move(after.state), after.alpha};
}

}  // namespace regard::models
