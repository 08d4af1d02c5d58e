#pragma once
// The long short-term memory-network: an LSTM that attends to its own past. Cheng, Dong and Lapata 2016,
// "Long short-term memory-networks for machine reading", arXiv:1601.06733, section 3.1. In place of the last
// state a step reads from tapes of all earlier ones, one weighting for both (equations 4 to 9):
//
//   a_i    = v' tanh(W_h h_i + W_x x_t + W_s h~_{t-1})     i = 1, ..., t-1
//   s      = softmax(a)
//   h~_t   = sum_i s_i h_i      c~_t = sum_i s_i c_i       both 0 at t = 1
//   i f g o = sigmoid, sigmoid, tanh, sigmoid(W x_t + b + U h~_t)
//   c_t    = f c~_t + i g       h_t  = o tanh(c_t)
//
// Letters: D distinct words, R rows, N state, A attention.

#include <cstdint>
#include <span>

#include "regard/autograd/sequences.h"
#include "regard/autograd/tape.h"

namespace regard::autograd {

/// What depends on the word alone is projected by the caller, once a distinct word.
struct LstmnInputs {
  Tensor x;                        ///< [D, 4N]  W x + b, blocks i f g o
  Tensor q;                        ///< [D, A]   W_x x
  std::span<const int32_t> index;  ///< [total]  row of x and q that belongs to each position
  Tensor U;                        ///< [4N, N]
  Tensor W_h, W_s;                 ///< [A, N]
  Tensor v;                        ///< [A]
};

/// The states of a ragged batch after every step, [total, 2N] = [h | c]; with `reverse` each sentence is read
/// from its end, and row i still belongs to position i. Products for all sentences that are still active, and
/// the scores in one pass over a sentence's tape (regard/attention/additive.h). A sentence's rows have the
/// same bits alone and in any batch. O(total N^2 + sum of squared lengths (A + N)); keeps the weights of all
/// steps, total times the longest length. Gradients for all tensors. Throws ShapeError. Safe from several
/// threads. Reference: lstmn_step over the same rows.
Tensor lstmn_sequence(const LstmnInputs& in, const Ragged& sentences, bool reverse);

/// What R sentences have read so far: rows of [h | c] and of keys W_h h, sentence after sentence.
struct LstmnTape {
  Tensor states;     ///< [sum of lengths, 2N]
  Tensor keys;       ///< [sum of lengths, A]
  Ragged positions;  ///< R lengths
};

struct LstmnStep {
  Tensor state;    ///< [R, 2N]  h_t | c_t
  Tensor key;      ///< [R, A]   W_h h_t
  Tensor summary;  ///< [R, N]   h~_t
  Tensor weights;  ///< [R, longest tape]  s
};

/// One step, an unfused composition: x [R, 4N], q [R, A], summary = h~_{t-1} [R, N].
LstmnStep lstmn_step(const Tensor& x, const Tensor& q, const Tensor& summary, const LstmnTape& tape,
                     const Tensor& U, const Tensor& W_h, const Tensor& W_s, const Tensor& v);

}  // namespace regard::autograd
