#include "regard/nn/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "regard/autograd/score_attention.h"

namespace regard::nn {

using autograd::HeadOptions;
using autograd::Ragged;

namespace {

/// Rows sorted by sentence, and where each went.
struct BySentence {
  std::vector<int32_t> order, place;
  Ragged queries;

  BySentence(std::span<const int32_t> sentence_of, int64_t sentences)
      : order(sentence_of.size()), place(order.size()) {
    std::vector<int64_t> count(static_cast<size_t>(sentences));
    for (const int32_t sentence : sentence_of) ++count.at(static_cast<size_t>(sentence));
    for (const int64_t n : count) queries.push_back(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return sentence_of[static_cast<size_t>(a)] < sentence_of[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
};

}  // namespace

Tensor grown(const Tensor& cache, const Tensor& row_of_each) {
  const int64_t R = cache.dim(0), t = cache.dim(1), W = row_of_each.dim(1);
  const Tensor next = Tensor::empty({R, t + 1, W}, row_of_each.dtype());
  const auto size = static_cast<size_t>(W * dtype_size(row_of_each.dtype()));
  const auto old_size = static_cast<size_t>(t) * size;
  auto* to = static_cast<char*>(next.bytes());
  const auto *from = static_cast<const char*>(cache.bytes()),
             *row = static_cast<const char*>(row_of_each.bytes());
  for (int64_t r = 0; r < R; ++r, to += old_size + size, from += old_size, row += size) {
    std::memcpy(to, from, old_size);
    std::memcpy(to + old_size, row, size);
  }
  return next;
}

void SelfAttention::visit(const ParameterVisitor& visitor, const std::string& name,
                          const SelfAttentionSizes& sizes) {
  sizes_ = sizes;
  const int64_t D = sizes.D;
  qkv_.visit(visitor, name + ".qkv", D, 3 * D, 3);
  if (sizes.positions == PositionKind::relative)
    visitor(name + ".relative", relative_keys_, {2 * kRelativeDistances + 1, D / sizes.heads},
            Initial::glorot(D, D));
  out_.visit(visitor, name + ".out", D, D);
}

HeadOptions SelfAttention::options(const Tensor& bias) const {
  return {.heads = sizes_.heads,
          .causal = sizes_.causal,
          .window = sizes_.form == AttentionForm::window ? sizes_.window : 0,
          .block = sizes_.form == AttentionForm::block_sparse ? sizes_.block : 0,
          .alibi = sizes_.positions == PositionKind::alibi,
          .relative_keys = relative_keys_,
          .relative_bias = bias};
}

Tensor SelfAttention::project(const Tensor& x, std::span<const int32_t> positions) const {
  const Tensor qkv = qkv_(x);  // [R, 3D]
  if (sizes_.positions != PositionKind::rotary) return qkv;
  return autograd::rotary(qkv, positions, sizes_.D / sizes_.heads, 2 * sizes_.D);  // [R, 3D]
}

Tensor SelfAttention::operator()(const Tensor& x, const Ragged& sentences, const Tensor& bias,
                                 const autograd::WeightDropout& dropout, Tensor* weights,
                                 Tensor* cache) const {
  HeadOptions with_dropout = options(bias);
  with_dropout.dropout = dropout;
  const Tensor qkv = project(x, positions_of(sentences));  // [T, 3D]
  if (sizes_.form == AttentionForm::linear)
    return out_(autograd::linear_self_attention(qkv, sentences, sizes_.heads, sizes_.causal));
  if (cache) *cache = autograd::columns(qkv, sizes_.D, 3 * sizes_.D);
  return out_(autograd::self_attention(qkv, sentences, with_dropout, weights));  // [T, D]
}

Tensor SelfAttention::empty_cache(int64_t R) const {
  const int64_t D = sizes_.D, d = D / sizes_.heads;
  if (sizes_.form == AttentionForm::linear)
    return Tensor::zeros({R, sizes_.heads, d * (d + 1)}, out_.W.dtype());
  return Tensor::empty({R, 0, 2 * D}, out_.W.dtype());
}

CachedStep SelfAttention::step(const Tensor& x, const Tensor& cache, int64_t position,
                               const Tensor& bias) const {
  const int64_t D = sizes_.D;
  const std::vector<int32_t> positions(static_cast<size_t>(x.rows()), static_cast<int32_t>(position));
  const Tensor qkv = project(x, positions);  // [R, 3D]
  if (sizes_.form == AttentionForm::linear) {
    const autograd::LinearStep next = autograd::linear_attention_step(qkv, cache, sizes_.heads);
    return {out_(next.value), next.state};
  }
  const Tensor q = autograd::columns(qkv, 0, D);                            // [R, D]
  const Tensor keys = grown(cache, autograd::columns(qkv, D, 3 * D));       // [R, t + 1, 2D]
  return {out_(autograd::cached_attention(q, keys, options(bias))), keys};  // [R, D]
}

void CrossAttention::visit(const ParameterVisitor& visitor, const std::string& name, int64_t D,
                           int64_t heads) {
  heads_ = heads;
  q_.visit(visitor, name + ".q", D, D);
  kv_.visit(visitor, name + ".kv", D, 2 * D, 2);
  out_.visit(visitor, name + ".out", D, D);
}

Tensor CrossAttention::operator()(const Tensor& x, const Tensor& kv, const Ragged& targets,
                                  const Ragged& sources, const autograd::WeightDropout& dropout) const {
  return out_(autograd::cross_attention(q_(x), kv, targets, sources, {.heads = heads_, .dropout = dropout}));
}

Tensor CrossAttention::weights(const Tensor& x, const Tensor& kv, const Ragged& sources,
                               std::span<const int32_t> sentence_of) const {
  const int64_t D = x.dim(-1), d = D / heads_;
  const auto scaled = [](const Tensor& y, double factor) {
    return autograd::multiply(y, Tensor::full(y.shape(), factor, y.dtype()));
  };
  const Tensor q = scaled(q_(x), 1 / std::sqrt(static_cast<double>(d)));  // [T, D]
  Tensor sum;
  for (int64_t h = 0; h < heads_; ++h) {
    const Tensor qh = autograd::columns(q, h * d, (h + 1) * d);           // [T, d]
    const Tensor kh = autograd::columns(kv, h * d, (h + 1) * d);          // [S, d]
    const Tensor vh = autograd::columns(kv, D + h * d, D + (h + 1) * d);  // [S, d]
    const Tensor alpha = autograd::dot_attention(qh, kh, vh, sources, sentence_of).weights;
    sum = h == 0 ? alpha : autograd::add(sum, alpha);  // [T, longest S]
  }
  return scaled(sum, 1 / static_cast<double>(heads_));
}

AttendedRows CrossAttention::step(const Tensor& x, const Tensor& kv, const Ragged& sources,
                                  std::span<const int32_t> sentence_of, bool want_alpha) const {
  const BySentence by_sentence(sentence_of, sources.count());
  Tensor alpha;
  const Tensor q = autograd::rows(q_(x), by_sentence.order);  // [R, D]
  const Tensor c = autograd::cross_attention(q, kv, by_sentence.queries, sources, {.heads = heads_},
                                             want_alpha ? &alpha : nullptr);
  if (want_alpha) alpha = autograd::rows(alpha, by_sentence.place);  // [R, longest S]
  return {out_(autograd::rows(c, by_sentence.place)), alpha};        // [R, D]
}

}  // namespace regard::nn
