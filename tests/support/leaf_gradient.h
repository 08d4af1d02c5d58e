#pragma once
// The gradient that a tape collected for a leaf.

#include "regard/autograd/tape.h"
#include "regard/tensor/tensor.h"

namespace regard {

/// A copy with the contributions to single rows added; zero where nothing contributed.
inline Tensor leaf_gradient(const autograd::Tape& tape, const Tensor& leaf) {
  const auto node = tape.leaf(leaf);
  const Tensor g =
      node->gradient.defined() ? node->gradient.copy() : Tensor::zeros(leaf.shape(), leaf.dtype());
  dispatch(leaf.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto to = g.as_matrix<T>();
    for (const auto& part : node->sparse) {
      const auto from = part.rows.template as_matrix<T>();
      for (int64_t r = 0; r < from.rows; ++r)
        for (int64_t c = 0; c < from.columns; ++c) to(part.ids[static_cast<size_t>(r)], c) += from(r, c);
    }
  });
  return g;
}

}  // namespace regard
