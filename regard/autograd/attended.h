#pragma once
// Inside autograd only: contexts and weights as one value on the tape.

#include <cstring>
#include <memory>
#include <vector>

#include "regard/autograd/operations.h"
#include "regard/autograd/score_attention.h"

namespace regard::autograd {

/// Both results of an operation, side by side: [c | alpha].
template <class T>
struct Joined {
  Tensor tensor;
  int64_t E;

  Joined(int64_t R, int64_t width, const Ragged& sources, DType type)
      : tensor(Tensor::zeros({R, width + sources.longest()}, type)), E(width) {}
  Joined(const Tensor& joined, int64_t width) : tensor(joined), E(width) {}
  MatrixView<T> context() const { return tensor.as_matrix<T>().column_range(0, E); }
  MatrixView<T> weights() const { return tensor.as_matrix<T>().column_range(E, tensor.dim(1)); }
};

inline Attended parted(const Tensor& joined, int64_t E) {
  return {columns(joined, 0, E), columns(joined, E, joined.dim(1))};
}

inline Tensor joined(const Attended& attended) {
  return concat_columns(std::vector{attended.context, attended.weights});
}

inline Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.shape(), x.dtype()); }

/// A gradient that a kernel adds to: the node's own; without a node one that nobody reads.
inline Tensor sum_of(const std::shared_ptr<Node>& node, const Tensor& like) {
  if (!node) return zeros_like(like);
  node->contribute([](const Tensor& g, bool more) {
    if (!more) std::memset(g.bytes(), 0, static_cast<size_t>(g.byte_size()));
  });
  return node->gradient;
}

}  // namespace regard::autograd
