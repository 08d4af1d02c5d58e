#pragma once
// Inside autograd only: an output layer and its loss in one, in chunks of rows, so that no number per
// vocabulary entry of the whole batch exists.

#include <algorithm>
#include <cstring>
#include <memory>

#include "regard/autograd/tape.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/rows.h"

namespace regard::autograd {

/// What rows of logits W x_r + b came to.
struct OutputRows {
  double loss = 0;    // the sum of what row_loss returned
  Tensor dx, dW, db;  // undefined unless wanted, but for db
};

/// Calls row_loss(r, logits [V], db [V]) for every row, in order: it returns the row's loss, replaces the
/// logits by the loss's gradient and adds the same to db.  x [R, K], W [V, K], b [V].
template <class T, class RowLoss>
OutputRows output_rows(const Tensor& x, const Tensor& W, const Tensor& b, bool wanted, RowLoss&& row_loss) {
  constexpr int64_t kChunk = 512;  // rows of logits that exist at a time
  const int64_t R = x.rows(), K = x.dim(-1), V = W.dim(0);
  OutputRows result;
  if (wanted) {
    result.dx = Tensor::empty({R, K}, x.dtype());
    result.dW = Tensor::empty({V, K}, x.dtype());
  }
  result.db = Tensor::zeros({V}, x.dtype());
  const gemm::Packed<T> packed(W.as_matrix<T>().transposed());
  gemm::Packed<T> packed_back;
  if (wanted) packed_back.pack(W.as_matrix<T>());
  const int64_t stride =
      (V + 31) / 32 * 32 + 16;  // an odd number of cache lines: rows fall into different sets
  const Tensor logits = Tensor::empty({std::min(R, kChunk), stride}, x.dtype());
  for (int64_t begin = 0; begin < R; begin += kChunk) {
    const int64_t end = std::min(R, begin + kChunk);
    const auto rows = x.as_matrix<T>().row_range(begin, end);
    const auto l = logits.as_matrix<T>().row_range(0, end - begin).column_range(0, V);
    gemm::multiply(rows, packed, l, {.bias = b.data<T>()});
    for (int64_t r = begin; r < end; ++r) result.loss += row_loss(r, l.row(r - begin), result.db.data<T>());
    if (!wanted) continue;
    gemm::multiply(l, packed_back, result.dx.as_matrix<T>().row_range(begin, end));
    gemm::multiply(l.transposed(), rows, result.dW.as_matrix<T>(), {.accumulate = begin > 0});
  }
  return result;
}

/// The node's gradient += factor * stored. A null node wants none.
inline void contribute_scaled(const std::shared_ptr<Node>& node, const Tensor& stored, double factor) {
  if (!node) return;
  node->contribute([&](const Tensor& g, bool more) {
    dispatch(g.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if (!more && factor == 1)
        std::memcpy(g.bytes(), stored.bytes(), static_cast<size_t>(g.byte_size()));
      else if (!more)
        simd::scale(static_cast<T>(factor), stored.data<T>(), g.data<T>(), g.size());
      else
        simd::axpy(static_cast<T>(factor), stored.data<T>(), g.data<T>(), g.size());
    });
  });
}

}  // namespace regard::autograd
