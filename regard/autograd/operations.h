#pragma once
// Differentiable operations on matrices of rows. Each works in f32 and f64 and records itself when a tape is
// current. Shape letters: R rows, K and N widths.

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/tape.h"
#include "regard/tensor/tensor.h"

namespace regard::autograd {

/// y = x W' + b.  x [R, K], W [N, K], b [N] or undefined; returns [R, N].
Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b = {});
/// a + b of equal shapes.
Tensor add(const Tensor& a, const Tensor& b);
/// x + b for every row.  x [R, N], b [N].
Tensor add_bias(const Tensor& x, const Tensor& b);
/// a * b of equal shapes, element by element.
Tensor multiply(const Tensor& a, const Tensor& b);
/// (1 - z) a + z b of equal shapes: how a gate mixes two states.
Tensor mix(const Tensor& z, const Tensor& a, const Tensor& b);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
/// Columns begin..end-1 of x [R, N].
Tensor columns(const Tensor& x, int64_t begin, int64_t end);
/// [x_0 | x_1 | ...] of equal R.
Tensor concat_columns(std::span<const Tensor> parts);
/// x_0 over x_1 over ... of equal N.
Tensor concat_rows(std::span<const Tensor> parts);
/// Rows ids[0], ids[1], ... of x [R, N]; a table's gradient stays sparse (Node::sparse).
/// Throws ShapeError if an id is out of range.
Tensor rows(const Tensor& x, std::span<const int32_t> ids);
/// Rows begin..end-1 of x [R, N], without a copy; the gradient is dense.
Tensor row_range(const Tensor& x, int64_t begin, int64_t end);
/// max(x_{2k}, x_{2k+1}): [R, 2 N] -> [R, N].  Goodfellow et al. 2013, arXiv:1302.4389. Ties go to the first.
Tensor maxout(const Tensor& x);
/// x * m / (1 - p) with m in {0, 1}, drawn from (the row's key, column) alone.  x [R, N], row_keys [R]; p in
/// [0, 1), p = 0 returns x.  Srivastava et al. 2014.
Tensor dropout(const Tensor& x, double p, std::span<const uint64_t> row_keys);
/// The sum of all elements, as a scalar of shape [1].
Tensor sum(const Tensor& x);

}  // namespace regard::autograd
