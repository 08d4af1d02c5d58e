#pragma once
// Operations of feed-forward layers and of what stands around them. As in operations.h each works in f32 and
// f64 and records itself when a tape is current; a row's bits are those of the row alone.

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/tape.h"
#include "regard/tensor/tensor.h"

namespace regard::autograd {

/// Where dropout's random numbers come from: rate 0 is none, else a key for every row.
struct RowDropout {
  double rate = 0;
  std::vector<uint64_t> keys{};
};

/// y = (x - mean) / sqrt(variance + epsilon) gain + bias, by rows.  x [R, N], gain and bias [N].
/// Ba, Kiros and Hinton 2016, arXiv:1607.06450.  Throws ShapeError.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon = 1e-5);

/// a + dropout(x) of equal shapes: the sum at the end of a residual block. Reference: add and dropout.
Tensor add_dropout(const Tensor& a, const Tensor& x, const RowDropout& dropout);

/// x sigmoid(x).  Ramachandran, Zoph and Le 2017, arXiv:1710.05941.
Tensor swish(const Tensor& x);

/// linear(swish(x), W, b), which computes swish(x) again in backward instead of keeping it: a feed-forward
/// layer's widest matrix is kept once.  x [R, K], W [N, K], b [N]; returns [R, N].
Tensor swish_linear(const Tensor& x, const Tensor& W, const Tensor& b);

/// factor times rows ids[0], ids[1], ... of the table [V, N]; the table's gradient stays sparse.
Tensor scaled_rows(const Tensor& table, std::span<const int32_t> ids, double factor);

/// The vectors of every head turned by their position: with theta_i = 10000^(-2i/D) the pair of numbers
/// (i, i + D/2) by the angle position theta_i.  Su et al. 2021, arXiv:2104.09864, the halves of a head
/// turning together.  x [R, N] whose first `turned` columns are vectors of `head_width` D, even; positions
/// [R].
Tensor rotary(const Tensor& x, std::span<const int32_t> positions, int64_t head_width, int64_t turned);

}  // namespace regard::autograd
