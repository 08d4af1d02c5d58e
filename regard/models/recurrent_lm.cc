#include "regard/models/recurrent_lm.h"

namespace regard::models {

using autograd::linear;
using autograd::output_loss;
using autograd::rows;

void RecurrentLm::check(const ModelConfig& config) {
  if (config.tied_embeddings && config.embedding != config.width)
    throw UsageError("--tied-embeddings are embeddings and output layer at once, so --embedding " +
                     std::to_string(config.embedding) + " and --width " + std::to_string(config.width) +
                     " have to be equal");
}

void RecurrentLm::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t D = c.embedding, N = c.width;
  const auto fan = nn::Initial::fan_in(N);
  visitor("embedding", E_, {c.target_vocabulary, D}, c.tied_embeddings ? fan : nn::Initial::normal(1));
  layers_.resize(static_cast<size_t>(c.layers));
  for (size_t l = 0; l < layers_.size(); ++l)
    layers_[l].visit(visitor, "layer." + std::to_string(l + 1), c.cell, l == 0 ? D : N, N);
  if (!c.tied_embeddings) visitor("output.W", W_out_, {c.target_vocabulary, N}, fan);
  visitor("output.b", b_out_, {c.target_vocabulary}, fan);
}

Memory RecurrentLm::encode(std::span<const std::span<const int32_t>> sources) const {
  Memory memory;
  memory.sources = ragged(sources);
  for (size_t l = 0; l < layers_.size(); ++l) {
    const nn::CellState h0 =
        nn::zero_state(config().cell, memory.sources.count(), config().width, E_.dtype());  // [B, N]
    memory.initial_state.push_back(h0.h);
    if (h0.c.defined()) memory.initial_state.push_back(h0.c);
  }
  return memory;
}

Tensor RecurrentLm::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const TargetRows target = target_rows(pairs.targets, begin());
  Tensor h = rows(E_, target.previous.ids());  // E y_{t-1}  [T', D]
  std::vector<int32_t> index(target.previous.index().begin(), target.previous.index().end());
  for (size_t l = 0; l < layers_.size(); ++l) {
    const RecurrentLayer& layer = layers_[l];
    h = nn::run(layer.cell(), layer.project(h), index, target.targets, false).h;  // h_t  [T, N]
    h = dropout(h, kDecoderLayer + l, target.targets);
    index = identity_index(target.targets.total());
  }
  return output_loss(h, W_out(), b_out_, target.y, options.smoothing, options.scale);
}

Step RecurrentLm::step(std::span<const int32_t> y_prev, const State& state, const Memory&,
                       std::span<const int32_t>) const {
  Step result;
  const size_t tensors = nn::has_memory(config().cell) ? 2 : 1;  // of a layer's state
  Tensor h = rows(E_, y_prev);                                   // E y_{t-1}  [R, D]
  for (size_t l = 0; l < layers_.size(); ++l) {
    const RecurrentLayer& layer = layers_[l];
    const nn::CellState next =
        nn::step(layer.cell(), layer.project(h),
                 {state[tensors * l], tensors == 2 ? state[tensors * l + 1] : Tensor()});
    h = next.h;  // h_t  [R, N]
    result.state.push_back(next.h);
    if (next.c.defined()) result.state.push_back(next.c);
  }
  result.logits = linear(h, W_out(), b_out_);  // [R, V]
  return result;
}

}  // namespace regard::models
