#include "regard/models/model.h"

#include <numeric>
#include <unordered_map>

namespace regard::models {

State select(const State& state, std::span<const int32_t> rows) {
  State selected;
  for (const Tensor& tensor : state) {
    if (tensor.rank() == 2) {
      selected.push_back(autograd::rows(tensor, rows));
      continue;
    }
    const int64_t R = tensor.dim(0);
    Shape shape = tensor.shape();
    shape[0] = static_cast<int64_t>(rows.size());
    const Tensor flat = tensor.reshaped({R, R > 0 ? tensor.size() / R : 0});
    selected.push_back(autograd::rows(flat, rows).reshaped(std::move(shape)));
  }
  return selected;
}

void Model::initialise(uint64_t seed) {
  uint64_t stream = 100;
  set_each([&](const std::string&, Tensor& tensor, const Shape& shape, const nn::Initial& initial) {
    tensor = initial.draw(shape, seed, stream++);
  });
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const auto& parameter : parameters_) count += parameter.value.size();
  return count;
}

void Model::load(std::span<const nn::Parameter> values) {
  std::unordered_map<std::string, Tensor> by_name;
  for (const auto& value : values) by_name[value.name] = value.value;
  size_t known = 0;
  set_each([&](const std::string& name, Tensor& tensor, const Shape& shape, const nn::Initial&) {
    const auto found = by_name.find(name);
    if (found == by_name.end())
      throw DataError("the weights lack " + name + "; is this another model's file?");
    if (found->second.shape() != shape)
      throw DataError("weights " + name + " " + shape_text(found->second.shape()) + ", expected " +
                      shape_text(shape));
    tensor = found->second;
    ++known;
  });
  if (known == by_name.size()) return;
  for (const auto& parameter : parameters_) by_name.erase(parameter.name);
  throw DataError("the weights have " + by_name.begin()->first +
                  ", which the model does not; is this another model's file?");
}

void Model::convert(DType dtype) {
  set_each([&](const std::string&, Tensor& tensor, const Shape&, const nn::Initial&) {
    tensor = tensor.to(dtype);
  });
}

void Model::set_each(const ParameterVisitor& set) {
  std::vector<nn::Parameter> list;
  visit([&](const std::string& name, Tensor& tensor, const Shape& shape, const nn::Initial& initial) {
    set(name, tensor, shape, initial);
    list.push_back({name, tensor});
  });
  parameters_ = std::move(list);
}

State EncoderDecoder::read(std::span<const std::span<const int32_t>> texts, const Memory& memory) const {
  State state = memory.initial_state;
  std::vector<int32_t> words(texts.size()), sentence_of(texts.size());
  std::iota(sentence_of.begin(), sentence_of.end(), 0);
  const size_t length = texts.empty() ? 0 : texts[0].size();
  for (size_t t = 0; t < length; ++t) {
    for (size_t r = 0; r < texts.size(); ++r) words[r] = texts[r][t];
    state = step(words, state, memory, sentence_of).state;
  }
  return state;
}

std::vector<Tensor> tensors_of(const Model& model) {
  std::vector<Tensor> tensors;
  for (const auto& parameter : model.parameters()) tensors.push_back(parameter.value);
  return tensors;
}

}  // namespace regard::models
