#include "regard/models/recurrent.h"

#include <algorithm>
#include <numeric>

namespace regard::models {

using autograd::add;
using autograd::concat_columns;
using autograd::linear;
using autograd::rows;

void RecurrentLayer::visit(const ParameterVisitor& visitor, const std::string& name, nn::CellKind cell,
                           int64_t inputs, int64_t width) {
  kind = cell;
  const int64_t rows = nn::gates(cell) * width;
  const auto initial = nn::Initial::fan_in(width);
  visitor(name + ".W_ih", W, {rows, inputs}, initial);
  visitor(name + ".W_hh", U, {rows, width}, initial);
  visitor(name + ".b_ih", b_ih, {rows}, initial);
  if (nn::has_state_bias(cell)) visitor(name + ".b_hh", b_hh, {rows}, initial);
}

void check_recurrent(const ModelConfig& config) {
  if (config.residual && config.layers < 2)
    throw UsageError("--residual adds what a layer reads from the one below; it needs --layers 2 or more");
}

Tensor layer_output(const ModelConfig& config, size_t layer, const Tensor& h, const Tensor& below) {
  return config.residual && layer > 0 ? add(h, below) : h;
}

void RecurrentEncoder::visit(const ParameterVisitor& visitor, const std::string& name,
                             const ModelConfig& config, bool bidirectional) {
  layers_.resize(static_cast<size_t>(config.layers));
  bidirectional_ = bidirectional;
  int64_t inputs = config.embedding;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const std::string layer = l == 0 ? name : name + "." + std::to_string(l + 1);
    layers_[l].forward.visit(visitor, layer + ".forward", config.cell, inputs, config.width);
    if (bidirectional)
      layers_[l].backward.visit(visitor, layer + ".backward", config.cell, inputs, config.width);
    inputs = bidirectional ? 2 * config.width : config.width;
  }
}

Encoded RecurrentEncoder::operator()(std::span<const std::span<const int32_t>> sources,
                                     const Tensor& embedding, const ModelConfig& config,
                                     const Dropout& dropout) const {
  Encoded result;
  Distinct words;
  for (const auto& source : sources) {
    result.sources.push_back(static_cast<int64_t>(source.size()));
    const size_t length = source.empty() ? 0 : source.size() - 1;  // without the end symbol
    for (size_t j = 0; j < length; ++j)
      words.push_back(config.reverse_source ? source[length - 1 - j] : source[j]);
    if (!source.empty()) words.push_back(source.back());
  }
  Tensor below = rows(embedding, words.ids());                             // E x_j  [S', D]
  std::vector<int32_t> index(words.index().begin(), words.index().end());  // of the rows of `below`
  for (size_t l = 0; l < layers_.size(); ++l) {
    const auto read = [&](const RecurrentLayer& layer, bool reverse) {
      return nn::run(layer.cell(), layer.project(below), index, result.sources, reverse);
    };
    const nn::Sequence forward = read(layers_[l].forward, false);  // h_j ->  [S, N]
    result.h = forward.h;
    result.forward.push_back(forward.last);
    if (bidirectional_) {
      const nn::Sequence backward = read(layers_[l].backward, true);  // h_j <-  [S, N]
      result.h = concat_columns(std::vector{forward.h, backward.h});  // h_j     [S, 2N]
      result.backward.push_back(backward.last);
    }
    result.h = dropout(layer_output(config, l, result.h, below), kEncoderLayer + l, result.sources);
    below = result.h;
    index = identity_index(result.sources.total());
  }
  return result;
}

void ReadoutLayer::visit(const ParameterVisitor& visitor, const ModelConfig& config, int64_t context_width) {
  kind = config.readout;
  const int64_t R = config.readout_width, N = config.width, D = config.embedding;
  const int64_t rows = kind == Readout::maxout ? 2 * R : R;
  const auto initial = nn::Initial::fan_in(N + context_width + D);
  visitor("readout.S", S, {rows, N}, initial);
  visitor("readout.C", C, {rows, context_width}, initial);
  visitor("readout.E", V, {rows, D}, initial);
  if (kind == Readout::tanh) visitor("readout.b", b, {rows}, initial);
}

Tensor ReadoutLayer::finish(const Tensor& s_and_c, const Tensor& word_part) const {
  const Tensor sum = add(s_and_c, word_part);
  return kind == Readout::maxout ? autograd::maxout(sum) : autograd::tanh(sum);
}

std::vector<int32_t> identity_index(int64_t n) {
  std::vector<int32_t> index(static_cast<size_t>(n));
  std::iota(index.begin(), index.end(), 0);
  return index;
}

}  // namespace regard::models
