#include "regard/models/decomposable.h"

#include <cmath>

#include "regard/autograd/score_attention.h"

namespace regard::models {

using autograd::concat_columns;
using autograd::Ragged;

namespace {

constexpr int64_t kDistances = 10;  // to each side that have a bias of their own; those beyond share one

/// Dropout's layers.
enum : uint64_t { kIntra = 0, kAttend = 4, kCompare = 8, kAggregate = 12, kSecondSentence = 32 };

}  // namespace

void TwoLayers::visit(const ParameterVisitor& visitor, const std::string& name, int64_t K, int64_t N) {
  first.visit(visitor, name + ".first", K, N);
  second.visit(visitor, name + ".second", N, N);
}

Tensor TwoLayers::operator()(const Tensor& x, const Dropout& dropout, uint64_t layer,
                             const Ragged& sentences) const {
  const Tensor h = autograd::relu(first(dropout(x, layer, sentences)));  // [R, N]
  return autograd::relu(second(dropout(h, layer + 1, sentences)));       // [R, N]
}

void Decomposable::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  const int64_t N = c.width, D = c.intra_sentence ? 2 * N : N;
  visitor("embedding", E_, {c.source_vocabulary, c.embedding}, nn::Initial::normal(1));
  project_.visit(visitor, "project", c.embedding, N);
  if (c.intra_sentence) {
    F_intra_.visit(visitor, "intra", N, N);
    visitor("intra.distance", d_, {2 * kDistances + 1, 1}, nn::Initial::constant(0));
  }
  F_.visit(visitor, "attend", D, N);
  G_.visit(visitor, "compare", 2 * D, N);
  H_.visit(visitor, "aggregate", 2 * N, N);
  out_.visit(visitor, "output", N, c.target_vocabulary);
}

Decomposable::Side Decomposable::read(std::span<const std::span<const int32_t>> sentences,
                                      const Dropout& dropout, uint64_t layer) const {
  Side side;
  Distinct words;
  for (const auto& sentence : sentences) {
    side.rows.push_back(static_cast<int64_t>(sentence.size()));
    for (const int32_t word : sentence) words.push_back(word);
  }
  const Tensor a = project_(autograd::rows(E_, words.ids()));  // W E a_i, once a distinct word
  side.words = autograd::rows(a, words.index());               // a_i  [S, N]
  if (!config().intra_sentence) return side;
  const double undone = std::sqrt(static_cast<double>(config().width));  // of self_attention's 1 / sqrt(N)
  const Tensor f = F_intra_(side.words, dropout, layer + kIntra, side.rows);           // [S, N]
  const Tensor q = autograd::multiply(f, Tensor::full(f.shape(), undone, f.dtype()));  // [S, N]
  // a'_i = sum_j softmax_j(F(a_i)' F(a_j) + d_{i-j}) a_j                                       [S, N]
  const Tensor own = autograd::self_attention(concat_columns(std::vector{q, f, side.words}), side.rows,
                                              {.heads = 1, .distance_bias = d_});
  side.words = concat_columns(std::vector{side.words, own});  // [a_i, a'_i]  [S, 2N]
  return side;
}

Decomposable::Aggregated Decomposable::aggregate(const SentencePairs& pairs,
                                                 const LossOptions& options) const {
  const Dropout dropout(config().dropout, pairs, options);
  const Side a = read(pairs.sources, dropout, 0), b = read(pairs.targets, dropout, kSecondSentence);
  // Attend: e_ij = F(a_i)' F(b_j), the aligned words beta_i = sum_j softmax_j(e_ij) b_j, alpha_j likewise.
  const Tensor Fa = F_(a.words, dropout, kAttend, a.rows);                                     // [S, N]
  const Tensor Fb = F_(b.words, dropout, kSecondSentence + kAttend, b.rows);                   // [T, N]
  const auto beta = autograd::dot_attention(Fa, Fb, b.words, b.rows, sentence_rows(a.rows));   // [S, D]
  const auto alpha = autograd::dot_attention(Fb, Fa, a.words, a.rows, sentence_rows(b.rows));  // [T, D]
  // Compare: v_1i = G([a_i, beta_i]), v_2j = G([b_j, alpha_j]).
  const Tensor v1 = G_(concat_columns(std::vector{a.words, beta.context}), dropout, kCompare, a.rows);
  const Tensor v2 =
      G_(concat_columns(std::vector{b.words, alpha.context}), dropout, kSecondSentence + kCompare, b.rows);
  // Aggregate: y = H([sum_i v_1i, sum_j v_2j]).
  const Tensor v =
      concat_columns(std::vector{autograd::sum_rows(v1, a.rows), autograd::sum_rows(v2, b.rows)});  // [B, 2N]
  Ragged one_each;
  for (int64_t p = 0; p < v.rows(); ++p) one_each.push_back(1);
  return {H_(v, dropout, kAggregate, one_each), beta.weights, a.rows, b.rows};
}

Tensor Decomposable::loss(const SentencePairs& pairs, const LossOptions& options) const {
  const Tensor h = aggregate(pairs, options).h;  // [B, N]
  return autograd::output_loss(h, out_.W, out_.b, pairs.labels, options.smoothing, options.scale);
}

Classified Decomposable::classify(const SentencePairs& pairs, bool with_attention) const {
  const Aggregated found = aggregate(pairs, {});
  Classified result{out_(found.h), {}};  // [B, classes]
  for (int64_t p = 0; with_attention && p < found.premises.count(); ++p) {
    const int64_t begin = found.premises.begin(p), end = begin + found.premises.length(p);
    const Tensor rows = autograd::row_range(found.alpha, begin, end);
    result.alpha.push_back(autograd::columns(rows, 0, found.hypotheses.length(p)));  // [S, T]
  }
  return result;
}

}  // namespace regard::models
