#pragma once
// How a fused operation hands gradients to its inputs. A null node wants none.

#include <cstring>
#include <memory>

#include "regard/autograd/tape.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/rows.h"

namespace regard::autograd {

/// The node's gradient += contribution.
template <class T>
void add_to(const std::shared_ptr<Node>& node, const Tensor& contribution) {
  if (!node) return;
  node->contribute([&](const Tensor& g, bool more) {
    if (more)
      simd::add(g.data<T>(), contribution.data<T>(), g.data<T>(), g.size());
    else
      std::memcpy(g.bytes(), contribution.bytes(), static_cast<size_t>(g.byte_size()));
  });
}

/// The node's gradient += a b.
template <class T>
void add_product(const std::shared_ptr<Node>& node, MatrixView<const T> a, MatrixView<const T> b) {
  if (!node) return;
  node->contribute(
      [&](const Tensor& g, bool more) { gemm::multiply(a, b, g.as_matrix<T>(), {.accumulate = more}); });
}

/// The node's gradient += the sum of the rows of d: a bias that was added to each of them.
template <class T>
void add_row_sum(const std::shared_ptr<Node>& node, MatrixView<const T> d) {
  if (!node) return;
  node->contribute([&](const Tensor& g, bool more) {
    if (!more) std::memset(g.bytes(), 0, static_cast<size_t>(g.byte_size()));
    simd::add_column_sums(d.data, d.rows, d.row_stride, g.data<T>(), d.columns);
  });
}

}  // namespace regard::autograd
