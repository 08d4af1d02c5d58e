#include "regard/autograd/score_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "regard/attention/additive.h"
#include "regard/attention/local.h"
#include "regard/attention/scores.h"
#include "regard/autograd/attended.h"
#include "regard/autograd/contributions.h"
#include "regard/autograd/operations.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"

namespace regard::autograd {
namespace {

using NodePointer = std::shared_ptr<Node>;
using RowSentences = std::vector<int32_t>;

const Ragged kSources{{0, 2, 6, 7}};
const RowSentences kRowSentences{0, 1, 2, 1, 1};

RowSentences kept(std::span<const int32_t> sentence_of) { return {sentence_of.begin(), sentence_of.end()}; }

}  // namespace

const Operation kAdditiveAttention("additive_attention", [] {
  return std::vector{sample("rows 0 1 2 1 1", {{5, 3}, {7, 3}, {7, 4}, {3}}, [](auto in) {
    return joined(additive_attention(in[0], in[1], in[2], in[3], kSources, kRowSentences));
  })};
});

Attended additive_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& v,
                            const Ragged& sources, std::span<const int32_t> sentence_of) {
  return dispatch(query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto operands = [=](const Ragged& from, std::span<const int32_t> rows) {
      return attention::AdditiveOperands<T>{query.as_matrix<T>(), keys.as_matrix<T>(), values.as_matrix<T>(),
                                            v.data<T>(),          from.offsets,        rows};
    };
    const Joined<T> y(query.rows(), values.dim(-1), sources, query.dtype());
    attention::additive_forward(operands(sources, sentence_of), y.weights(), y.context());
    const NodePointer nq = input(query), nk = input(keys), nh = input(values), nv = input(v);
    if (!nq && !nk && !nh && !nv) return parted(y.tensor, y.E);
    const auto backward = [=, rows = kept(sentence_of)](const Tensor& dy) {
      const Joined<T> d(dy, y.E);
      const Tensor dq = zeros_like(query), dk = sum_of(nk, keys), dh = sum_of(nh, values), dv = sum_of(nv, v);
      attention::additive_backward(
          operands(sources, rows), y.weights(),
          attention::AdditiveGradients<T>{d.context(), d.weights(), dq.as_matrix<T>(), dk.as_matrix<T>(),
                                          dh.as_matrix<T>(), dv.data<T>()});
      add_to<T>(nq, dq);
    };
    return parted(record(kAdditiveAttention, y.tensor, backward), y.E);
  });
}

const Operation kDotAttention("dot_attention", [] {
  return std::vector{sample("rows 0 1 2 1 1", {{5, 3}, {7, 3}, {7, 4}}, [](auto in) {
    return joined(dot_attention(in[0], in[1], in[2], kSources, kRowSentences));
  })};
});

Attended dot_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Ragged& sources,
                       std::span<const int32_t> sentence_of) {
  return dispatch(query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto operands = [=](const Ragged& from, std::span<const int32_t> rows) {
      return attention::DotOperands<T>{query.as_matrix<T>(), keys.as_matrix<T>(), values.as_matrix<T>(),
                                       from.offsets, rows};
    };
    const Joined<T> y(query.rows(), values.dim(-1), sources, query.dtype());
    attention::dot_forward(operands(sources, sentence_of), y.weights(), y.context());
    const NodePointer nq = input(query), nk = input(keys), nh = input(values);
    if (!nq && !nk && !nh) return parted(y.tensor, y.E);
    const auto backward = [=, rows = kept(sentence_of)](const Tensor& dy) {
      const Joined<T> d(dy, y.E);
      const Tensor dq = zeros_like(query), dk = sum_of(nk, keys), dh = sum_of(nh, values);
      attention::dot_backward(
          operands(sources, rows), y.weights(),
          attention::DotGradients<T>{
              {d.context(), d.weights(), dh.as_matrix<T>()}, dq.as_matrix<T>(), dk.as_matrix<T>()});
      add_to<T>(nq, dq);
    };
    return parted(record(kDotAttention, y.tensor, backward), y.E);
  });
}

const Operation kLocationAttention("location_attention", [] {
  const auto compute = [](auto in) {
    return joined(location_attention(in[0], in[1], in[2], kSources, kRowSentences));
  };
  return std::vector{sample("as many positions as the longest source", {{5, 3}, {4, 3}, {7, 4}}, compute),
                     sample("fewer positions", {{5, 3}, {3, 3}, {7, 4}}, compute),
                     sample("more positions", {{5, 3}, {6, 3}, {7, 4}}, compute)};
});

Attended location_attention(const Tensor& state, const Tensor& W, const Tensor& values, const Ragged& sources,
                            std::span<const int32_t> sentence_of) {
  return dispatch(state.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto operands = [=](const Ragged& from, std::span<const int32_t> rows) {
      return attention::LocationOperands<T>{state.as_matrix<T>(), W.as_matrix<T>(), values.as_matrix<T>(),
                                            from.offsets, rows};
    };
    const Joined<T> y(state.rows(), values.dim(-1), sources, state.dtype());
    attention::location_forward(operands(sources, sentence_of), y.weights(), y.context());
    const NodePointer ns = input(state), nW = input(W), nh = input(values);
    if (!ns && !nW && !nh) return parted(y.tensor, y.E);
    const auto backward = [=, rows = kept(sentence_of)](const Tensor& dy) {
      const Joined<T> d(dy, y.E);
      const Tensor ds = zeros_like(state), dW = sum_of(nW, W), dh = sum_of(nh, values);
      const Tensor de = Tensor::zeros({state.rows(), sources.longest()}, state.dtype());
      attention::location_backward(
          operands(sources, rows), y.weights(),
          attention::LocationGradients<T>{{d.context(), d.weights(), dh.as_matrix<T>()},
                                          ds.as_matrix<T>(),
                                          dW.as_matrix<T>(),
                                          de.as_matrix<T>()});
      add_to<T>(ns, ds);
    };
    return parted(record(kLocationAttention, y.tensor, backward), y.E);
  });
}

const Operation kLocalAttention("local_attention", [] {
  const auto monotonic = [](auto in) {  // the last window lies behind its source
    const Tensor t = Tensor::from<double>({5, 1}, {0, 1, 0, 3, 6});
    return joined(local_attention(in[0], in[1], in[2], t, {1, false}, kSources, kRowSentences));
  };
  const auto predicted = [](auto in) {
    const Tensor middle = Tensor::from<double>({5, 1}, {0.4, 1.3, 0.2, 2.3, 3.4});
    return joined(
        local_attention(in[0], in[1], in[2], add(in[3], middle), {2, true}, kSources, kRowSentences));
  };
  return std::vector{sample("monotonic", {{5, 3}, {7, 3}, {7, 4}}, monotonic),
                     sample("predicted", {{5, 3}, {7, 3}, {7, 4}, {5, 1}}, predicted)};
});

Attended local_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& centres,
                         const LocalOptions& options, const Ragged& sources,
                         std::span<const int32_t> sentence_of) {
  return dispatch(query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto operands = [=](const Ragged& from, std::span<const int32_t> rows) {
      return attention::LocalOperands<T>{query.as_matrix<T>(),  keys.as_matrix<T>(), {},
                                         values.as_matrix<T>(), centres.values<T>(), options.half_width,
                                         options.gaussian,      from.offsets,        rows};
    };
    const Joined<T> y(query.rows(), values.dim(-1), sources, query.dtype());
    const Tensor softmax = Tensor::empty({query.rows(), 2 * options.half_width + 1}, query.dtype());
    attention::local_forward(operands(sources, sentence_of), softmax.as_matrix<T>(), y.weights(),
                             y.context());
    const NodePointer nq = input(query), nk = input(keys), nh = input(values), np = input(centres);
    if (!nq && !nk && !nh && !np) return parted(y.tensor, y.E);
    const auto backward = [=, rows = kept(sentence_of)](const Tensor& dy) {
      const Joined<T> d(dy, y.E);
      const Tensor dq = zeros_like(query), dk = sum_of(nk, keys), dh = sum_of(nh, values),
                   dp = zeros_like(centres);
      attention::local_backward(operands(sources, rows), softmax.as_matrix<T>(),
                                attention::LocalGradients<T>{d.context(),
                                                             d.weights(),
                                                             dq.as_matrix<T>(),
                                                             dk.as_matrix<T>(),
                                                             {},
                                                             dh.as_matrix<T>(),
                                                             dp.values<T>()});
      add_to<T>(nq, dq);
      add_to<T>(np, dp);
    };
    return parted(record(kLocalAttention, y.tensor, backward), y.E);
  });
}

const Operation kLocalCentres("local_centres", [] {
  return std::vector{sample("rows 0 1 2 1 1", {{5, 3}, {2, 3}, {2}}, [](auto in) {
    return local_centres(in[0], in[1], in[2], kSources, kRowSentences);
  })};
});

Tensor local_centres(const Tensor& state, const Tensor& W, const Tensor& v, const Ragged& sources,
                     std::span<const int32_t> sentence_of) {
  if (v.size() != W.dim(0))
    throw ShapeError("[local_centres] v " + shape_text(v.shape()) + " and W " + shape_text(W.shape()) +
                     " do not fit");
  return dispatch(state.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto operands = [=](const Ragged& from, std::span<const int32_t> rows) {
      return attention::CentreOperands<T>{state.as_matrix<T>(), W.as_matrix<T>(), v.data<T>(), from.offsets,
                                          rows};
    };
    const int64_t R = state.rows(), A = W.dim(0);
    const Tensor p = Tensor::empty({R, 1}, state.dtype()), hidden = Tensor::empty({R, A}, state.dtype());
    attention::centres_forward(operands(sources, sentence_of), hidden.as_matrix<T>(), p.values<T>());
    const NodePointer ns = input(state), nW = input(W), nv = input(v);
    if (!ns && !nW && !nv) return p;
    return record(kLocalCentres, p, [=, rows = kept(sentence_of)](const Tensor& dp) {
      const Tensor ds = zeros_like(state), dW = sum_of(nW, W), dv = sum_of(nv, v), dz = zeros_like(hidden);
      attention::centres_backward(
          operands(sources, rows), hidden.as_matrix<T>(), p.values<T>(),
          attention::CentreGradients<T>{dp.values<T>(), ds.as_matrix<T>(), dW.as_matrix<T>(), dv.data<T>(),
                                        dz.as_matrix<T>()});
      add_to<T>(ns, ds);
    });
  });
}

const Operation kGuidedLoss("guided_loss", [] {
  return std::vector{sample("three of six", {{2, 3}}, [](auto in) {
    const std::vector<GuidedWeight> guided{{0, 2, 1}, {1, 0, 0.25}, {1, 1, 0.75}};
    return guided_loss(sigmoid(in[0]), guided, 0.5);
  })};
});

Tensor guided_loss(const Tensor& weights, std::span<const GuidedWeight> guided, double scale) {
  for (const GuidedWeight& g : guided)
    if (g.row < 0 || g.row >= weights.rows() || g.column < 0 || g.column >= weights.dim(-1))
      throw ShapeError("[guided_loss] element " + std::to_string(g.row) + ", " + std::to_string(g.column) +
                       " of weights " + shape_text(weights.shape()));
  return dispatch(weights.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto tiny = static_cast<double>(std::numeric_limits<T>::min());
    const auto weight = [=](const GuidedWeight& g) {
      return static_cast<double>(weights.as_matrix<T>()(g.row, g.column));
    };
    double total = 0;
    for (const GuidedWeight& g : guided)
      if (weight(g) >= tiny) total -= g.share * std::log(weight(g));
    const Tensor y = Tensor::full({1}, scale * total, weights.dtype());
    const NodePointer nw = input(weights);
    if (!nw) return y;
    const auto backward = [=, elements =
                                  std::vector<GuidedWeight>(guided.begin(), guided.end())](const Tensor& dy) {
      const auto d = sum_of(nw, weights).as_matrix<T>();
      const double dL = scale * static_cast<double>(dy.data<T>()[0]);
      for (const GuidedWeight& g : elements)
        if (weight(g) >= tiny) d(g.row, g.column) -= static_cast<T>(dL * g.share / weight(g));
    };
    return record(kGuidedLoss, y, backward);
  });
}

}  // namespace regard::autograd
