#pragma once
// Fused operations over whole sequences. Rows of a ragged batch stand sentence after sentence: row offsets[b]
// + t is position t of sentence b. Padding does not exist. Inside, steps run over the sentences that are
// still active.

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/tape.h"
#include "regard/tensor/tensor.h"

namespace regard::autograd {

/// Where sentences begin in a matrix of rows.
struct Ragged {
  std::vector<int64_t> offsets{0};  // [B + 1]

  int64_t count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t total() const { return offsets.back(); }
  int64_t length(int64_t b) const {
    return offsets[static_cast<size_t>(b) + 1] - offsets[static_cast<size_t>(b)];
  }
  int64_t begin(int64_t b) const { return offsets[static_cast<size_t>(b)]; }
  /// Where sentence b is at its step k (from 0): with `reverse` it is read from its end.
  int64_t position(int64_t b, int64_t k, bool reverse) const {
    return begin(b) + (reverse ? length(b) - 1 - k : k);
  }
  int64_t longest() const;
  void push_back(int64_t length) { offsets.push_back(offsets.back() + length); }
};

/// What the fused recurrences below read. A cell of G gates has G blocks of N numbers in x, U and b; its
/// state has S blocks, h first.
struct RecurrenceInputs {
  Tensor x;                        ///< [D, G N] input projections (their bias included) of the distinct words
  std::span<const int32_t> index;  ///< [total] row of x that belongs to each position
  Tensor U;                        ///< [G N, N]
  Tensor b;                        ///< [G N]
  Tensor initial = {};             ///< [B, S N] states before the first step; undefined: zero
};

// A recurrence returns the states after every step, [total, S N]; with `reverse` each sentence is read from
// its end, and row i still belongs to position i. One product with U for all sentences that are still active,
// time O(total G N^2); gates are saved for backward only under a tape. Every row's bits are those of its
// sentence alone. Throws ShapeError. Safe from several threads. Gradients for x, U, b and initial.

/// A GRU that resets after the product (G = 3: r z n, S = 1):
///   r = sigmoid(x_r + b_r + U_r h)   z = sigmoid(x_z + b_z + U_z h)   n = tanh(x_n + r (U_n h + b_n))
///   h' = (1 - z) n + z h
/// Cho et al. 2014, arXiv:1406.1078, in the form of cuDNN. Reference: gru_step over the same rows.
Tensor gru_sequence(const RecurrenceInputs& in, const Ragged& sentences, bool reverse);
/// The same from zero states.
inline Tensor gru_sequence(const Tensor& x, std::span<const int32_t> index, const Tensor& U, const Tensor& b,
                           const Ragged& sentences, bool reverse) {
  return gru_sequence({x, index, U, b}, sentences, reverse);
}

/// One step of the same cell: x [R, 3N] (bias included), h [R, N]; returns [R, N]. An unfused composition.
Tensor gru_step(const Tensor& x, const Tensor& h, const Tensor& U, const Tensor& b);

/// A long short-term memory (G = 4: i f g o, S = 2: a state is [h | c]), with a = x + U h + b:
///   i = sigmoid(a_i)   f = sigmoid(a_f)   g = tanh(a_g)   o = sigmoid(a_o)
///   c' = f c + i g     h' = o tanh(c')
/// Hochreiter and Schmidhuber 1997, Neural Computation 9(8); forget gate: Gers, Schmidhuber and Cummins 2000,
/// Neural Computation 12(10); no peepholes. Reference: lstm_step over the same rows.
Tensor lstm_sequence(const RecurrenceInputs& in, const Ragged& sentences, bool reverse);

struct LstmState {
  Tensor h, c;  // [R, N]
};
/// One step of the same cell: x [R, 4N] (bias included). An unfused composition.
LstmState lstm_step(const Tensor& x, const LstmState& previous, const Tensor& U, const Tensor& b);

enum class Activation { tanh, relu };

/// A simple recurrence (G = 1, S = 1): h' = tanh(x + U h + b).  Elman 1990, Cognitive Science 14(2). With
/// relu for tanh: Le, Jaitly and Hinton 2015, arXiv:1504.00941.  Reference: elman_step over the same rows.
Tensor elman_sequence(const RecurrenceInputs& in, const Ragged& sentences, bool reverse,
                      Activation activation = Activation::tanh);

/// One step of the same cell: x [R, N] (bias included), h [R, N]; returns [R, N]. An unfused composition.
Tensor elman_step(const Tensor& x, const Tensor& h, const Tensor& U, const Tensor& b,
                  Activation activation = Activation::tanh);

/// What the teacher-forced decoder below reads.
struct AttentionDecoderInputs {
  Tensor s0;      ///< [B, N] initial states
  Tensor keys;    ///< [S, A] U_a h_j (+ bias)
  Tensor values;  ///< [S, E] h_j
  Tensor W_a;     ///< [A, N]
  Tensor v;       ///< [A]
  Tensor y;       ///< [D, 3N] projections W E y (+ bias) of the distinct previous words
  Tensor C;       ///< [3N, E]
  Tensor U;       ///< [3N, N]
  Tensor b;       ///< [3N]
};

/// The recurrence of an attention decoder, fused over all steps of all sentences:
///   c_i = sum_j alpha_ij h_j,  alpha_i = softmax_j(v' tanh(W_a s_{i-1} + U_a h_j)),  s_i = GRU(y_{i-1}, c_i,
///   s_{i-1})
/// index [total targets] picks y_{i-1}'s row. Returns [s_i | c_i]: [total targets, N + E].
/// Reference: additive_attention (score_attention.h) and gru_step, step by step.
Tensor attention_decoder(const AttentionDecoderInputs& inputs, std::span<const int32_t> index,
                         const Ragged& sources, const Ragged& targets);

/// The sum of every sentence's rows.  x [total, N]; returns [B, N], 0 for an empty sentence.
Tensor sum_rows(const Tensor& x, const Ragged& sentences);

/// The output layer and its loss in one: scale * sum_r CE(W x_r + b, target_r) with label smoothing, in
/// chunks of rows, so that no probability per vocabulary entry of the whole batch exists.  x [R, K], W [V,
/// K], b [V]; returns [1].
Tensor output_loss(const Tensor& x, const Tensor& W, const Tensor& b, std::span<const int32_t> targets,
                   double smoothing, double scale);

}  // namespace regard::autograd
