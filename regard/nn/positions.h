#pragma once
// How a Transformer knows where a word stands.

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/sequences.h"
#include "regard/nn/parameter.h"

namespace regard::nn {

enum class PositionKind {
  sinusoid,       ///< added to the embeddings.  Vaswani et al. 2017, 3.5
  learned,        ///< added to the embeddings, a trained table.  Gehring et al. 2017, arXiv:1705.03122
  relative,       ///< clipped distances meet the query.  Shaw, Uszkoreit and Vaswani 2018, arXiv:1803.02155
  relative_bias,  ///< a number for each head and bucket of distances.  Raffel et al. 2020, arXiv:1910.10683
  rotary,         ///< queries and keys are turned.  Su et al. 2021, arXiv:2104.09864
  alibi,          ///< scores fall with the distance.  Press, Smith and Lewis 2021, arXiv:2108.12409
  none
};

/// Positions 0, 1, ... of every sentence: [total].
std::vector<int32_t> positions_of(const autograd::Ragged& sentences);

/// PE(p, i) = sin(p / 10000^(2i/D)),  PE(p, D/2 + i) = cos(p / 10000^(2i/D)),  i < D/2: the paper's
/// encoding, sines before cosines as its authors' program has them.  Returns [R, D]; an odd D ends with a
/// sine.
Tensor sinusoids(std::span<const int32_t> positions, int64_t D, DType dtype);

/// What is added to embeddings: sinusoids, rows of a table, or nothing.
class AddedPositions {
 public:
  /// Positions with a row of their own; those behind share the last.
  static constexpr int64_t kLongest = 512;

  void visit(const ParameterVisitor& visitor, const std::string& name, int64_t D, PositionKind kind);
  /// x + positions.  x [R, D].
  Tensor operator()(const Tensor& x, std::span<const int32_t> positions) const;

 private:
  PositionKind kind_ = PositionKind::none;
  Tensor table_;  // [kLongest, D], learned ones
};

}  // namespace regard::nn
