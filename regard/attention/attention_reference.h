#pragma once
// Exact attention of one head, written as its formulas, in f64: what the tiled kernels are compared with, the
// f64 path of attention.h, and the place to learn what each option is.
//
// Letters as in attention.h. Everything about query i stands in one row of numbers over the keys, so memory
// is [S] a row and time is T S (D + E).

#include <vector>

#include "regard/attention/problem.h"

namespace regard::attention::reference {

/// Whether query i may attend to key j.
bool allowed(const Head<double>& head, int64_t i, int64_t j);

/// s_ij for all j: scaled, capped, biased; -infinity where not allowed, and there k_j is not read.
std::vector<double> scores(const Head<double>& head, int64_t i);

/// p_j = exp(s_j) / sum, sum = sum_j exp(s_j) + exp(sink), and l = log(sum). All are computed from s_j - m, m
/// the largest score.
struct Softmax {
  std::vector<double> p;
  double l;
};
Softmax softmax(const Head<double>& head, const std::vector<double>& s);

/// The same p_j from a known l: exp(s_j - l), 0 where s_j is -infinity.
std::vector<double> weights(const std::vector<double>& s, double l);

/// Results of one head; views without data are left out.
struct Results {
  MatrixView<double> out;          ///< [T, E]
  MatrixView<double> log_sum_exp;  ///< [T, 1]
  MatrixView<double> weights;      ///< [T, S]
  MatrixView<double> scores;       ///< [T, S]
  MatrixView<double> column_sums;  ///< [S, 1], added to
};
void forward(const Head<double>& head, const Results& results);

/// Gradients of one head. d_q is written, the others are added to; those without data are left out.
struct Gradients {
  MatrixView<const double> out, log_sum_exp;      ///< the forward's
  MatrixView<const double> d_out, d_log_sum_exp;  ///< in
  MatrixView<double> d_q, d_k, d_v, d_bias;       ///< [T, D], [S, D], [S, E], [T, S]
  double* d_sink = nullptr;
};
void backward(const Head<double>& head, const Gradients& gradients);

}  // namespace regard::attention::reference
