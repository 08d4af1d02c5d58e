#include "regard/attention/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace regard::attention::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double dot(const MatrixView<const double>& a, int64_t i, const MatrixView<const double>& b, int64_t j) {
  double sum = 0;
  for (int64_t d = 0; d < a.columns; ++d) sum += a(i, d) * b(j, d);
  return sum;
}

/// s = softcap tanh(scale q_i . k_j / softcap), before bias and masks.
double capped_score(const Head<double>& head, int64_t i, int64_t j) {
  const double s = head.scale * dot(head.q, i, head.k, j);
  return head.softcap > 0 ? head.softcap * std::tanh(s / head.softcap) : s;
}

/// ds after / ds before the softcap.
double cap_derivative(const Head<double>& head, int64_t i, int64_t j) {
  if (head.softcap == 0) return 1;
  const double t = std::tanh(head.scale * dot(head.q, i, head.k, j) / head.softcap);
  return 1 - t * t;
}

/// Whether the list of blocks holds the one of (i, j).
bool listed(const BlockSparse& blocks, int64_t i, int64_t j) {
  const auto row = static_cast<size_t>(i / blocks.query_block);
  const auto list = blocks.key_blocks.begin();
  return std::binary_search(list + blocks.row_starts[row], list + blocks.row_starts[row + 1],
                            j / blocks.key_block);
}

}  // namespace

bool allowed(const Head<double>& head, int64_t i, int64_t j) {
  const int64_t distance = j - (i + head.band.offset);
  const bool in_band = j < head.band.keys && -head.band.left <= distance && distance <= head.band.right;
  return in_band && (!head.blocks || listed(*head.blocks, i, j)) && (!head.mask.data || head.mask(i, j)) &&
         (!head.bias.data || head.bias(i, j) != -kInfinity);
}

std::vector<double> scores(const Head<double>& head, int64_t i) {
  std::vector<double> s(static_cast<size_t>(head.k.rows), -kInfinity);
  for (int64_t j = 0; j < head.k.rows; ++j) {
    if (!allowed(head, i, j)) continue;
    double& x = s[static_cast<size_t>(j)];
    x = capped_score(head, i, j);
    if (head.bias.data) x += head.bias(i, j);
    if (head.slope != 0) x -= head.slope * static_cast<double>(std::abs(i + head.band.offset - j));
  }
  return s;
}

Softmax softmax(const Head<double>& head, const std::vector<double>& s) {
  double m = head.has_sink ? head.sink : -kInfinity;
  for (const double x : s) m = std::max(m, x);
  std::vector<double> p = weights(s, m);
  double sum = head.has_sink && head.sink != -kInfinity ? std::exp(head.sink - m) : 0;
  for (const double x : p) sum += x;
  if (sum == 0) return {std::move(p), -kInfinity};
  for (double& x : p) x = x == 0 ? 0 : x / sum;
  return {std::move(p), m + std::log(sum)};
}

std::vector<double> weights(const std::vector<double>& s, double l) {
  std::vector<double> p(s.size());
  for (size_t j = 0; j < s.size(); ++j) p[j] = s[j] == -kInfinity ? 0 : std::exp(s[j] - l);
  return p;
}

void forward(const Head<double>& head, const Results& results) {
  for (int64_t i = 0; i < head.q.rows; ++i) {
    const std::vector<double> s = scores(head, i);
    const auto [p, l] = softmax(head, s);
    for (int64_t e = 0; e < head.v.columns; ++e) results.out(i, e) = 0;
    for (int64_t j = 0; j < head.k.rows; ++j) {
      const auto at = static_cast<size_t>(j);
      if (results.scores.data) results.scores(i, j) = s[at];
      if (results.weights.data) results.weights(i, j) = p[at];
      if (results.column_sums.data) results.column_sums(j, 0) += p[at];
      const double kept = p[at] * head.dropout(i, j);
      if (s[at] == -kInfinity) continue;  // whatever v_j is
      for (int64_t e = 0; e < head.v.columns; ++e) results.out(i, e) += kept * head.v(j, e);
    }
    if (results.log_sum_exp.data) results.log_sum_exp(i, 0) = l;
  }
}

void backward(const Head<double>& head, const Gradients& g) {
  for (int64_t i = 0; i < head.q.rows; ++i) {
    const double l = g.log_sum_exp(i, 0);
    const std::vector<double> s = scores(head, i);
    const std::vector<double> p = weights(s, l);
    for (int64_t d = 0; d < head.q.columns; ++d) g.d_q(i, d) = 0;
    if (l == -kInfinity) continue;             // an empty row
    double delta = dot(g.d_out, i, g.out, i);  // sum_j p_j dp_j: what the softmax's sum takes back
    if (g.d_log_sum_exp.data) delta -= g.d_log_sum_exp(i, 0);  // dl / ds_j = p_j
    if (g.d_sink && head.sink != -kInfinity) *g.d_sink -= std::exp(head.sink - l) * delta;
    for (int64_t j = 0; j < head.k.rows; ++j) {
      const auto at = static_cast<size_t>(j);
      if (s[at] == -kInfinity) continue;
      const double keep = head.dropout(i, j);
      const double dp = keep * dot(g.d_out, i, head.v, j);  // o_i = sum_j p_j keep_j v_j
      for (int64_t e = 0; e < head.v.columns; ++e) g.d_v(j, e) += p[at] * keep * g.d_out(i, e);
      const double ds = p[at] * (dp - delta);  // p = softmax(s)
      if (g.d_bias.data) g.d_bias(i, j) += ds;
      const double dqk = ds * cap_derivative(head, i, j) * head.scale;  // s_ij = scale q_i . k_j
      for (int64_t d = 0; d < head.q.columns; ++d) {
        g.d_q(i, d) += dqk * head.k(j, d);
        g.d_k(j, d) += dqk * head.q(i, d);
      }
    }
  }
}

}  // namespace regard::attention::reference
