#pragma once
// Weights that are multiplied by again and again without changing: packed for products once, not at every
// call.

#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "regard/gemm/gemm.h"
#include "regard/tensor/tensor.h"

namespace regard::autograd {

/// The tensors given must not change while it lives. Inside a Use, linear() takes their packed panels (made
/// at first use) instead of packing; results are the same to the bit. Safe from several threads.
class FrozenWeights {
 public:
  /// Matrices [N, K] in f32; others are ignored.
  explicit FrozenWeights(std::span<const Tensor> weights);
  FrozenWeights(const FrozenWeights&) = delete;
  FrozenWeights& operator=(const FrozenWeights&) = delete;

  /// Makes them the calling thread's frozen weights for as long as it lives.
  class Use {
   public:
    explicit Use(const FrozenWeights& weights);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    const FrozenWeights* outer_;
  };

  /// W' packed, if the calling thread uses frozen weights and W is one of them; else null.
  template <class T>
  static const gemm::Packed<T>* packed_transpose(const Tensor& W);

 private:
  struct Slot {
    Tensor weights;  // keeps the address from being reused
    std::once_flag once;
    gemm::Packed<float> packed;
  };
  std::unordered_map<const void*, std::unique_ptr<Slot>> slots_;
};

template <>
const gemm::Packed<float>* FrozenWeights::packed_transpose<float>(const Tensor& W);
template <>
const gemm::Packed<double>* FrozenWeights::packed_transpose<double>(const Tensor& W);

}  // namespace regard::autograd
