#include "regard/autograd/intra_attention.h"

#include <array>
#include <limits>
#include <vector>

#include "regard/attention/attention.h"
#include "regard/attention/intra.h"
#include "regard/attention/source_rows.h"
#include "regard/autograd/attended.h"
#include "regard/autograd/contributions.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/gemm/gemm.h"

namespace regard::autograd {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

void require_sequences(const Tensor& query, const Tensor& keys, const Tensor& values, const Ragged& sources,
                       const Ragged& targets) {
  if (query.rows() != targets.total() || keys.rows() != sources.total() || values.rows() != sources.total() ||
      query.dim(-1) != keys.dim(-1) || sources.count() != targets.count())
    throw ShapeError("[intra_temporal_attention] query " + shape_text(query.shape()) + ", keys " +
                     shape_text(keys.shape()) + ", values " + shape_text(values.shape()) + " for " +
                     std::to_string(targets.total()) + " target and " + std::to_string(sources.total()) +
                     " source positions of " + std::to_string(targets.count()) + " and " +
                     std::to_string(sources.count()) + " sentences");
}

template <class T>
MatrixView<T> one_row(const MatrixView<T>& x, int64_t i) {
  return x.row_range(i, i + 1);
}

/// A call's operands and all that backward needs of it.
template <class T>
struct TemporalTrace {
  Tensor query, keys, values;
  Ragged sources, targets;
  Tensor scores, sums;  // e_t and L_t  [T, longest S]

  TemporalTrace(const Tensor& q, const Tensor& k, const Tensor& h, const Ragged& from, const Ragged& to)
      : query(q),
        keys(k),
        values(h),
        sources(from),
        targets(to),
        scores(Tensor::zeros({to.total(), from.longest()}, q.dtype())),
        sums(Tensor::full({to.total(), from.longest()}, kNothing, q.dtype())) {}

  auto rows_of(const Tensor& x, int64_t b) const {
    return x.as_matrix<T>().row_range(targets.begin(b), targets.begin(b) + targets.length(b));
  }
  auto positions_of(const Tensor& x, int64_t b) const {
    return x.as_matrix<T>().row_range(sources.begin(b), sources.begin(b) + sources.length(b));
  }
  /// Of one row, with sentence b's place among the sources.
  attention::IntraOperands<T> operands(int64_t i, bool first, std::span<const int64_t> place) const {
    attention::IntraOperands<T> o{one_row(scores.as_matrix<T>(), i), {}, values.as_matrix<T>(), place};
    if (!first) o.before = one_row(sums.as_matrix<T>(), i - 1);
    return o;
  }
  std::array<int64_t, 2> place_of(int64_t b) const {
    return {sources.begin(b), sources.begin(b) + sources.length(b)};
  }

  void forward(const Joined<T>& y) const {
    for (int64_t b = 0; b < targets.count(); ++b) {
      gemm::multiply(rows_of(query, b), positions_of(keys, b).transposed(),
                     rows_of(scores, b).column_range(0, sources.length(b)));  // e_ts = q_t . k_s
      const auto place = place_of(b);
      for (int64_t t = 0; t < targets.length(b); ++t) {
        const int64_t i = targets.begin(b) + t;
        attention::intra_forward(operands(i, t == 0, place), one_row(y.weights(), i), one_row(y.context(), i),
                                 one_row(sums.as_matrix<T>(), i));
      }
    }
  }

  /// Returns d_scores [T, longest S]; adds to d_values.
  Tensor backward(const Joined<T>& y, const Joined<T>& d, const Tensor& d_values) const {
    const Tensor d_scores = zeros_like(scores);
    for (int64_t b = 0; b < targets.count(); ++b) {
      const Tensor carry = Tensor::zeros({1, sources.longest()}, scores.dtype());  // d L_t, from the last row
      const auto d_sums = carry.as_matrix<T>();
      const auto place = place_of(b);
      for (int64_t t = targets.length(b) - 1; t >= 0; --t) {
        const int64_t i = targets.begin(b) + t;
        attention::intra_backward(operands(i, t == 0, place), one_row(y.weights(), i),
                                  attention::IntraGradients<T>{
                                      one_row(d.context(), i), one_row(d.weights(), i), d_sums,
                                      one_row(d_scores.as_matrix<T>(), i), d_sums, d_values.as_matrix<T>()});
      }
    }
    return d_scores;
  }

  /// d_query written, d_keys added to.
  void backward_of_scores(const Tensor& d_scores, const Tensor& d_query, const Tensor& d_keys) const {
    for (int64_t b = 0; b < targets.count(); ++b) {
      const auto d = rows_of(d_scores, b).column_range(0, sources.length(b));
      gemm::multiply(d, positions_of(keys, b), rows_of(d_query, b));
      gemm::multiply(d.transposed(), rows_of(query, b), positions_of(d_keys, b), {.accumulate = true});
    }
  }
};

}  // namespace

const Operation kIntraTemporalAttention("intra_temporal_attention", [] {
  return std::vector{sample("three sentences", {{6, 3}, {7, 3}, {7, 4}}, [](auto in) {
    return joined(intra_temporal_attention(in[0], in[1], in[2], {{0, 2, 6, 7}}, {{0, 1, 5, 6}}));
  })};
});

Attended intra_temporal_attention(const Tensor& query, const Tensor& keys, const Tensor& values,
                                  const Ragged& sources, const Ragged& targets) {
  require_sequences(query, keys, values, sources, targets);
  return dispatch(query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Joined<T> y(query.rows(), values.dim(-1), sources, query.dtype());
    const TemporalTrace<T> trace(query, keys, values, sources, targets);
    trace.forward(y);
    const auto nq = input(query), nk = input(keys), nh = input(values);
    if (!nq && !nk && !nh) return parted(y.tensor, y.E);
    const auto backward = [=](const Tensor& dy) {
      const Tensor d_query = zeros_like(query), d_keys = sum_of(nk, keys);
      const Tensor d_scores = trace.backward(y, Joined<T>(dy, y.E), sum_of(nh, values));
      trace.backward_of_scores(d_scores, d_query, d_keys);
      add_to<T>(nq, d_query);
    };
    return parted(record(kIntraTemporalAttention, y.tensor, backward), y.E);
  });
}

TemporalStep intra_temporal_step(const Tensor& query, const Tensor& keys, const Tensor& values,
                                 const Tensor& sums, const Ragged& sources,
                                 std::span<const int32_t> sentence_of) {
  const int64_t R = query.rows();
  if (query.dim(-1) != keys.dim(-1) || keys.rows() != sources.total() ||
      sums.shape() != Shape{R, sources.longest()} || static_cast<int64_t>(sentence_of.size()) != R)
    throw ShapeError("[intra_temporal_step] query " + shape_text(query.shape()) + ", keys " +
                     shape_text(keys.shape()) + ", sums " + shape_text(sums.shape()) + ", expected [R, K], " +
                     "[S, K], [R, " + std::to_string(sources.longest()) + "]");
  return dispatch(query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Tensor scores = Tensor::zeros(sums.shape(), query.dtype()),
                 after = Tensor::full(sums.shape(), kNothing, query.dtype());
    const MatrixView<const T> q = query.as_matrix<T>(), k = keys.as_matrix<T>();
    for (int64_t r = 0; r < R; ++r) {
      const int64_t b = sentence_of[static_cast<size_t>(r)];
      attention::products(q.row(r), {k.row(sources.begin(b)), sources.length(b), k.columns, k.row_stride},
                          scores.as_matrix<T>().row(r));
    }
    TemporalStep result{{Tensor::zeros({R, values.dim(-1)}, query.dtype()), zeros_like(sums)}, after};
    attention::intra_forward(attention::IntraOperands<T>{scores.as_matrix<T>(), sums.as_matrix<T>(),
                                                         values.as_matrix<T>(), sources.offsets, sentence_of},
                             result.attended.weights.as_matrix<T>(), result.attended.context.as_matrix<T>(),
                             after.as_matrix<T>());
    return result;
  });
}

namespace {

/// x [T, N] as one item and one head.
template <class T>
View4<T> one_head(const Tensor& x) {
  const int64_t N = x.dim(-1);
  return {x.data<std::remove_const_t<T>>(), {1, 1, x.rows(), N}, {0, 0, N, 1}};
}

/// A row attends to the rows before it: keys up to i - 1.
template <class T>
attention::AttentionOptions<T> earlier_rows(const Ragged& sentences, std::span<const int64_t> offsets) {
  attention::AttentionOptions<T> o;
  o.scale = 1;
  o.causal = true;
  o.alignment = attention::Alignment::explicit_offsets;
  o.offsets = offsets;
  o.query_starts = o.key_starts = sentences.offsets;
  return o;
}

}  // namespace

const Operation kIntraDecoderAttention("intra_decoder_attention", [] {
  return std::vector{sample("sentences of 4, 0, 1 and 2", {{7, 3}, {7, 3}}, [](auto in) {
    return intra_decoder_attention(in[0], in[1], {{0, 4, 4, 5, 7}});
  })};
});

Tensor intra_decoder_attention(const Tensor& query, const Tensor& h, const Ragged& sentences) {
  if (query.shape() != h.shape() || h.rows() != sentences.total())
    throw ShapeError("[intra_decoder_attention] query " + shape_text(query.shape()) + ", h " +
                     shape_text(h.shape()) + " for " + std::to_string(sentences.total()) + " positions");
  return dispatch(h.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Tensor y = Tensor::empty(h.shape(), h.dtype()), lse = Tensor::empty({1, 1, h.rows()}, h.dtype());
    const std::vector<int64_t> offsets(static_cast<size_t>(sentences.count()), -1);
    const auto L = dense(lse.data<T>(), std::array{int64_t{1}, int64_t{1}, h.rows()});
    attention::attention_forward(one_head<const T>(query), one_head<const T>(h), one_head<const T>(h),
                                 {.out = one_head<T>(y), .log_sum_exp = L},
                                 earlier_rows<T>(sentences, offsets));
    const auto nq = input(query), nh = input(h);
    if (!nq && !nh) return y;
    return record(kIntraDecoderAttention, y, [=](const Tensor& d) {
      const Tensor dq = Tensor::empty(h.shape(), h.dtype()), dk = Tensor::empty(h.shape(), h.dtype()),
                   dv = Tensor::empty(h.shape(), h.dtype());
      attention::AttentionGradients<T> g;
      g.d_out = one_head<const T>(d);
      g.d_q = one_head<T>(dq);
      g.d_k = one_head<T>(dk);
      g.d_v = one_head<T>(dv);
      attention::attention_backward(
          one_head<const T>(query), one_head<const T>(h), one_head<const T>(h), one_head<const T>(y),
          dense<const T>(lse.data<T>(), std::array{int64_t{1}, int64_t{1}, h.rows()}), g,
          earlier_rows<T>(sentences, offsets));
      add_to<T>(nq, dq);
      add_to<T>(nh, dk);
      add_to<T>(nh, dv);
    });
  });
}

Tensor intra_decoder_step(const Tensor& query, const Tensor& earlier) {
  const int64_t R = query.rows(), N = query.dim(-1);
  if (earlier.rank() != 3 || earlier.dim(0) != R || earlier.dim(2) != N)
    throw ShapeError("[intra_decoder_step] query " + shape_text(query.shape()) + ", earlier " +
                     shape_text(earlier.shape()) + ", expected [R, N] and [R, t, N]");
  return dispatch(query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t t = earlier.dim(1);
    const Tensor y = Tensor::empty({R, N}, query.dtype());
    const View4<const T> q{query.data<T>(), {R, 1, 1, N}, {N, 0, 0, 1}},
        h{earlier.data<T>(), {R, 1, t, N}, {t * N, 0, N, 1}};
    attention::AttentionOptions<T> options;
    options.scale = 1;
    attention::attention_forward(q, h, h, {.out = View4<T>{y.data<T>(), {R, 1, 1, N}, {N, 0, 0, 1}}},
                                 options);
    return y;
  });
}

}  // namespace regard::autograd
