#pragma once
// A recurrence written out step by step over a ragged batch: what has no fused operation, and the reference
// of what has one.

#include <cstdint>
#include <functional>
#include <span>

#include "regard/autograd/sequences.h"
#include "regard/tensor/tensor.h"

namespace regard::nn {

/// The sentences that have a step k, longest first; of equal length, in the batch's order. Those of the next
/// step are a prefix of them.
struct ActiveRows {
  int64_t k;                           ///< from 0
  std::span<const int32_t> sentences;  ///< [R]
  std::span<const int32_t> positions;  ///< [R] rows of the sentences' step k in matrices that stand sentence
                                       ///< after sentence
};

/// The step of R active sentences: from the states before it [R, W] to those after it [R, W].
using UnrolledStep = std::function<Tensor(const ActiveRows& active, const Tensor& previous)>;

/// state_k = step(state_{k-1}) for every sentence, all active ones at once. What a step returns is at the
/// same time its output and what the next one starts from: an LSTM's is [h | c], that of an attention
/// decoder [s | context].
///   initial  [B, W]      states before the first step
///   returns  [total, W]  states after every step, in the sentences' order
/// With `reverse` each sentence is read from its end; row i still belongs to position i.
/// Differentiable through rows and concat_rows. Beside the steps O(total W) copies. A sentence's rows depend
/// on nothing but its own where `step` treats rows alike. `step` is called on this thread, in the order of k.
/// Throws ShapeError if `initial` or what `step` returns has another shape.
Tensor unroll(const autograd::Ragged& sentences, bool reverse, const Tensor& initial,
              const UnrolledStep& step);

/// Every sentence's state after its last step in reading direction: [B, W] of `states` [total, W]. An empty
/// sentence stays at its row of `initial` [B, W] (undefined: zero).
Tensor last_states(const Tensor& states, const autograd::Ragged& sentences, bool reverse,
                   const Tensor& initial = {});

}  // namespace regard::nn
