#include "regard/autograd/frozen_weights.h"

namespace regard::autograd {
namespace {

thread_local const FrozenWeights* current = nullptr;

}  // namespace

FrozenWeights::FrozenWeights(std::span<const Tensor> weights) {
  for (const Tensor& tensor : weights) {
    if (tensor.rank() != 2 || tensor.dtype() != DType::f32) continue;
    auto slot = std::make_unique<Slot>();
    slot->weights = tensor;
    slots_.emplace(tensor.bytes(), std::move(slot));
  }
}

FrozenWeights::Use::Use(const FrozenWeights& weights) : outer_(current) { current = &weights; }
FrozenWeights::Use::~Use() { current = outer_; }

template <>
const gemm::Packed<float>* FrozenWeights::packed_transpose<float>(const Tensor& W) {
  if (!current) return nullptr;
  const auto found = current->slots_.find(W.bytes());
  if (found == current->slots_.end() || found->second->weights.shape() != W.shape()) return nullptr;
  Slot& slot = *found->second;
  std::call_once(slot.once, [&] { slot.packed.pack(W.as_matrix<float>().transposed()); });
  return &slot.packed;
}

template <>
const gemm::Packed<double>* FrozenWeights::packed_transpose<double>(const Tensor&) {
  return nullptr;
}

}  // namespace regard::autograd
