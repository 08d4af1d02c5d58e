#pragma once
// The two attentions of Paulus, Xiong and Socher 2017, arXiv:1705.04304, 2.1 and 2.2, over whole
// teacher-forced sequences and step by step. Scores are products: the caller projects the query, q_t = W'
// h_t, which makes them the paper's bilinear ones.
//
// Letters: T target rows of all sentences, R rows of one step, S source positions, K width of queries, E of
// values. All throw ShapeError, are safe from several threads and give a sentence the same bits alone and in
// any batch. Sequence and steps agree within rounding.

#include "regard/autograd/score_attention.h"

namespace regard::autograd {

/// Intra-temporal attention: what earlier rows of the sentence attended to counts less.
///   e_ts = q_t . k_s     e'_ts = exp(e_ts) in a sentence's first row, then exp(e_ts) / sum_{u<t} exp(e_us)
///   alpha_ts = e'_ts / sum_s e'_ts          c_t = sum_s alpha_ts h_s
/// query [T, K], keys [S, K], values [S, E]; target sentence b looks at source b. See
/// regard/attention/intra.h. Reference: intra_temporal_step over the same rows. O(sum_b T_b S_b (K + E)).
Attended intra_temporal_attention(const Tensor& query, const Tensor& keys, const Tensor& values,
                                  const Ragged& sources, const Ragged& targets);

struct TemporalStep {
  Attended attended;
  Tensor sums;  ///< [R, longest S] L_ts = log sum_{u<=t} exp(e_us), for the next step
};
/// One step of it, not differentiated. Row r looks at sentence sentence_of[r].  query [R, K], sums [R,
/// longest S] of the steps before, -infinity where there were none.
TemporalStep intra_temporal_step(const Tensor& query, const Tensor& keys, const Tensor& values,
                                 const Tensor& sums, const Ragged& sources,
                                 std::span<const int32_t> sentence_of);

/// Intra-decoder attention: a row looks at its sentence's earlier states.
///   c_t = sum_{u<t} softmax_{u<t}(q_t . h_u) h_u,  c = 0 in a sentence's first row
/// query and h [T, N]; returns [T, N]. O(sum_b T_b^2 N). Reference: intra_decoder_step.
Tensor intra_decoder_attention(const Tensor& query, const Tensor& h, const Ragged& sentences);

/// One step of it, not differentiated.  query [R, N], earlier [R, t, N] states, t may be 0; returns [R, N].
Tensor intra_decoder_step(const Tensor& query, const Tensor& earlier);

}  // namespace regard::autograd
