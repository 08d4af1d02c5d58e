#pragma once
// A pointer beside the output layer: the next word is generated from the vocabulary or copied from the source
// (Vinyals, Fortunato and Jaitly 2015, arXiv:1506.03134; Paulus, Xiong and Socher 2017,
// arXiv:1705.04304, 2.3).
//   p(u_r = 1) = sigmoid(z_r)
//   p(y) = p(u_r = 1) sum_{s: x_s = y} alpha_rs + p(u_r = 0) softmax(W x_r + b)_y
// Source and target have one vocabulary, so that a source word is a number of the output.
//
// Letters: R rows, K width, V vocabulary, S source positions of all sentences.

#include <cstdint>
#include <span>

#include "regard/autograd/sequences.h"
#include "regard/tensor/tensor.h"

namespace regard::autograd {

struct PointerInputs {
  Tensor x;      ///< [R, K]
  Tensor W, b;   ///< [V, K], [V]
  Tensor z;      ///< [R, 1]
  Tensor alpha;  ///< [R, longest S] where each row points, adding up to 1
};

/// What the rows point at.
struct PointedWords {
  std::span<const int32_t> words;  ///< [S] the sources' words
  const Ragged& sources;
  std::span<const int32_t> sentence_of;  ///< [R]
};

/// The sum over the rows, times scale, of
///   - (1 - e) log p(y_r) - e / V sum_v log softmax(W x_r + b)_v
/// Whether a word was copied is not observed: its probability is the sum over both ways. Label smoothing e
/// spreads over what is generated: spread over p it would reward words that the source has, and so the
/// switch. In chunks of rows, like output_loss. Returns [1]; gradients for x, W, b, z and alpha. Throws
/// ShapeError. Reference: pointer_log_probabilities.
Tensor pointer_loss(const PointerInputs& in, const PointedWords& pointed, std::span<const int32_t> y,
                    double smoothing, double scale);

/// log p [R, V], not differentiated.
Tensor pointer_log_probabilities(const PointerInputs& in, const PointedWords& pointed);

}  // namespace regard::autograd
