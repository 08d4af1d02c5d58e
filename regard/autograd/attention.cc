#include <cstring>
#include <numeric>

#include "regard/attention/additive.h"
#include "regard/autograd/contributions.h"
#include "regard/autograd/gru_rows.h"
#include "regard/autograd/operations.h"
#include "regard/autograd/recurrence.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/schedule.h"
#include "regard/autograd/sequences.h"
#include "regard/gemm/gemm.h"

namespace regard::autograd {
namespace {

const Ragged kSources{{0, 2, 5, 6}};
const Ragged kTargets{{0, 1, 4, 6}};
const std::vector<int32_t> kIndex{0, 1, 2, 3, 1, 0};

template <class T>
attention::AdditiveOperands<T> operands(MatrixView<const T> query, const Tensor& keys, const Tensor& values,
                                        const Tensor& v, const Ragged& sources,
                                        std::span<const int32_t> sentence_of) {
  return {query, keys.as_matrix<T>(), values.as_matrix<T>(), v.data<T>(), sources.offsets, sentence_of};
}

/// What the decoder keeps for backward: time-major rows.
template <class T>
struct DecoderTrace {
  AttentionDecoderInputs in;
  Schedule schedule;
  std::vector<int32_t> index;
  Ragged sources, targets;
  Tensor previous;  // [total, N]        s_{i-1}
  Tensor queries;   // [total, A + 3N]   W_a s_{i-1} | U s_{i-1}
  Tensor contexts;  // [total, E]        c_i
  Tensor weights;   // [total, longest S]
  Tensor gates;     // [total, 4N]
  int64_t N, A, E;
};

template <class T>
void decoder_forward(const DecoderTrace<T>& t, const Tensor& result) {
  const AttentionDecoderInputs& in = t.in;
  const int64_t N = t.N, A = t.A, E = t.E;
  const Tensor yb = with_bias<T>(in.y, in.b, 2 * N);
  const MatrixView<const T> side_by_side[] = {in.W_a.as_matrix<T>().transposed(),
                                              in.U.as_matrix<T>().transposed()};
  gemm::Packed<T> state_weights;
  state_weights.pack(side_by_side);
  const gemm::Packed<T> context_weights(in.C.as_matrix<T>().transposed());
  const Tensor gi = Tensor::empty({t.targets.count(), 3 * N}, in.s0.dtype());
  const auto previous = t.previous.template as_matrix<T>(), queries = t.queries.template as_matrix<T>();
  const auto contexts = t.contexts.template as_matrix<T>(), weights = t.weights.template as_matrix<T>();
  const auto gates = t.gates.template as_matrix<T>(), out = result.as_matrix<T>();
  const int64_t starters = t.schedule.steps() ? t.schedule.active(0) : 0;
  for (int64_t rank = 0; rank < starters; ++rank)
    std::copy_n(in.s0.as_matrix<T>().row(t.schedule.sentence(rank)), N, previous.row(rank));
  for (int64_t k = 0; k < t.schedule.steps(); ++k) {
    const int64_t first = t.schedule.first(k), end = t.schedule.first(k + 1), active = end - first;
    const auto q = queries.row_range(first, end);
    gemm::multiply(previous.row_range(first, end), state_weights, q);
    attention::additive_forward(operands<T>(q.column_range(0, A), in.keys, in.values, in.v, t.sources,
                                            t.schedule.order().first(static_cast<size_t>(active))),
                                weights.row_range(first, end), contexts.row_range(first, end));
    gemm::multiply(contexts.row_range(first, end), context_weights, gi.as_matrix<T>().row_range(0, active));
    for (int64_t rank = 0; rank < active; ++rank) {
      const int64_t row = t.targets.begin(t.schedule.sentence(rank)) + k;
      gru_row_forward<T>({yb.data<T>() + t.index[static_cast<size_t>(row)] * 3 * N,
                          gi.data<T>() + rank * 3 * N, q.row(rank) + A, in.b.data<T>() + 2 * N,
                          previous.row(first + rank), gates.row(first + rank), out.row(row)},
                         N);
      std::copy_n(contexts.row(first + rank), E, out.row(row) + N);
      if (k + 1 < t.schedule.steps() && rank < t.schedule.active(k + 1))
        std::copy_n(out.row(row), N, previous.row(t.schedule.first(k + 1) + rank));
    }
  }
}

struct DecoderNodes {
  std::shared_ptr<Node> s0, keys, values, W_a, v, y, C, U, b;
};

/// Time-major gradients of the decoder's products.
template <class T>
struct DecoderGradients {
  Tensor carry, d_contexts, d_gates, d_queries, d_keys, d_v, d_y;
};

template <class T>
DecoderGradients<T> decoder_backward_steps(const DecoderTrace<T>& t, const Tensor& d_result) {
  const AttentionDecoderInputs& in = t.in;
  const int64_t N = t.N, A = t.A, E = t.E, total = t.targets.total();
  const DType type = in.s0.dtype();
  DecoderGradients<T> g{Tensor::zeros({t.targets.count(), N}, type),
                        Tensor::empty({total, E}, type),
                        Tensor::empty({total, 3 * N}, type),
                        Tensor::empty({total, A + 3 * N}, type),
                        Tensor::zeros(in.keys.shape(), type),
                        Tensor::zeros({A}, type),
                        Tensor::zeros(in.y.shape(), type)};
  const Tensor stacked = Tensor::empty({A + 3 * N, N}, type);
  std::copy_n(in.W_a.data<T>(), A * N, stacked.data<T>());
  std::copy_n(in.U.data<T>(), 3 * N * N, stacked.data<T>() + A * N);
  const gemm::Packed<T> state_weights(stacked.as_matrix<T>()), context_weights(in.C.as_matrix<T>());
  const auto d = d_result.as_matrix<T>(), dc = g.d_contexts.template as_matrix<T>();
  const auto dg = g.d_gates.template as_matrix<T>(), dq = g.d_queries.template as_matrix<T>();
  const auto carry = g.carry.template as_matrix<T>(), previous = t.previous.template as_matrix<T>();
  for (int64_t k = t.schedule.steps() - 1; k >= 0; --k) {
    const int64_t first = t.schedule.first(k), end = t.schedule.first(k + 1), active = end - first;
    for (int64_t rank = 0; rank < active; ++rank) {
      const int64_t row = t.targets.begin(t.schedule.sentence(rank)) + k;
      gru_row_backward<T>(
          {t.gates.template as_matrix<T>().row(first + rank), previous.row(first + rank), d.row(row),
           carry.row(rank), dg.row(first + rank),
           g.d_y.template data<T>() + t.index[static_cast<size_t>(row)] * 3 * N, dq.row(first + rank) + A},
          N);
      std::copy_n(d.row(row) + N, E, dc.row(first + rank));
    }
    gemm::multiply(dg.row_range(first, end), context_weights, dc.row_range(first, end), {.accumulate = true});
    const auto query = t.queries.template as_matrix<T>().row_range(first, end).column_range(0, A);
    attention::additive_backward(operands<T>(query, in.keys, in.values, in.v, t.sources,
                                             t.schedule.order().first(static_cast<size_t>(active))),
                                 t.weights.template as_matrix<T>().row_range(first, end),
                                 attention::AdditiveGradients<T>{dc.row_range(first, end),
                                                                 {},
                                                                 dq.row_range(first, end).column_range(0, A),
                                                                 g.d_keys.template as_matrix<T>(),
                                                                 {},
                                                                 g.d_v.template data<T>()});
    gemm::multiply(dq.row_range(first, end), state_weights, carry.row_range(0, active), {.accumulate = true});
  }
  return g;
}

/// d values = alpha' dC for every sentence, all its steps at once.
template <class T>
void add_value_gradients(const DecoderTrace<T>& t, const Tensor& d_contexts, const Tensor& d_values,
                         bool more) {
  const auto dc = d_contexts.as_matrix<T>(), weights = t.weights.template as_matrix<T>();
  if (!more) std::memset(d_values.bytes(), 0, static_cast<size_t>(d_values.byte_size()));
  const int64_t longest = t.targets.longest(), S = t.weights.dim(1);
  const Tensor alpha = Tensor::empty({longest, S}, d_values.dtype()),
               dC = Tensor::empty({longest, t.E}, d_values.dtype());
  for (int64_t rank = 0; rank < t.targets.count(); ++rank) {
    const int32_t b = t.schedule.sentence(rank);
    const int64_t T_b = t.targets.length(b), S_b = t.sources.length(b);
    for (int64_t k = 0; k < T_b; ++k) {
      std::copy_n(weights.row(t.schedule.first(k) + rank), S_b, alpha.data<T>() + k * S);
      std::copy_n(dc.row(t.schedule.first(k) + rank), t.E, dC.data<T>() + k * t.E);
    }
    gemm::multiply(alpha.as_matrix<T>().row_range(0, T_b).column_range(0, S_b).transposed(),
                   dC.as_matrix<T>().row_range(0, T_b),
                   d_values.as_matrix<T>().row_range(t.sources.begin(b), t.sources.begin(b) + S_b),
                   {.accumulate = true});
  }
}

template <class T>
void decoder_backward(const DecoderTrace<T>& t, const DecoderNodes& nodes, const Tensor& d_result) {
  const int64_t A = t.A;
  const DecoderGradients<T> g = decoder_backward_steps<T>(t, d_result);
  const auto dq = g.d_queries.template as_matrix<T>(), dg = g.d_gates.template as_matrix<T>();
  const auto previous = t.previous.template as_matrix<T>();
  const auto state_part = dq.column_range(A, dq.columns);
  add_product<T>(nodes.W_a, dq.column_range(0, A).transposed(), previous);
  add_product<T>(nodes.U, state_part.transposed(), previous);
  add_product<T>(nodes.C, dg.transposed(), t.contexts.template as_matrix<T>());
  add_row_sum<T>(nodes.b, state_part);
  if (nodes.values)
    nodes.values->contribute(
        [&](const Tensor& d_values, bool more) { add_value_gradients<T>(t, g.d_contexts, d_values, more); });
  add_to<T>(nodes.keys, g.d_keys);
  add_to<T>(nodes.v, g.d_v);
  add_to<T>(nodes.y, g.d_y);
  if (nodes.s0) {
    const Tensor ds0 = Tensor::zeros(t.in.s0.shape(), t.in.s0.dtype());
    for (int64_t rank = 0; rank < t.targets.count(); ++rank)
      std::copy_n(g.carry.template data<T>() + rank * t.N, t.N,
                  ds0.as_matrix<T>().row(t.schedule.sentence(rank)));
    add_to<T>(nodes.s0, ds0);
  }
}

}  // namespace

const Operation kAttentionDecoder("attention_decoder", [] {
  return std::vector{sample(
      "three sentences", {{3, 2}, {6, 3}, {6, 5}, {3, 2}, {3}, {4, 6}, {6, 5}, {6, 2}, {6}}, [](auto in) {
        return attention_decoder({in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8]}, kIndex,
                                 kSources, kTargets);
      })};
});

Tensor attention_decoder(const AttentionDecoderInputs& in, std::span<const int32_t> index,
                         const Ragged& sources, const Ragged& targets) {
  const int64_t N = in.s0.dim(1), A = in.W_a.dim(0), E = in.values.dim(1), total = targets.total();
  if (static_cast<int64_t>(index.size()) != total || sources.count() != targets.count())
    throw ShapeError("[attention_decoder] " + std::to_string(index.size()) + " indices for " +
                     std::to_string(total) + " target positions, " + std::to_string(sources.count()) +
                     " sources for " + std::to_string(targets.count()) + " targets");
  return dispatch(in.s0.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const DType type = in.s0.dtype();
    auto trace =
        std::make_shared<DecoderTrace<T>>(DecoderTrace<T>{in,
                                                          Schedule(targets),
                                                          {index.begin(), index.end()},
                                                          sources,
                                                          targets,
                                                          Tensor::empty({total, N}, type),
                                                          Tensor::empty({total, A + 3 * N}, type),
                                                          Tensor::empty({total, E}, type),
                                                          Tensor::empty({total, sources.longest()}, type),
                                                          Tensor::empty({total, 4 * N}, type),
                                                          N,
                                                          A,
                                                          E});
    Tensor result = Tensor::empty({total, N + E}, type);
    decoder_forward<T>(*trace, result);
    const DecoderNodes nodes{input(in.s0), input(in.keys), input(in.values), input(in.W_a), input(in.v),
                             input(in.y),  input(in.C),    input(in.U),      input(in.b)};
    if (!nodes.s0 && !nodes.U && !nodes.keys && !nodes.y && !nodes.C && !nodes.values && !nodes.W_a &&
        !nodes.v && !nodes.b)
      return result;
    return record(kAttentionDecoder, result,
                  [trace, nodes](const Tensor& d) { decoder_backward<T>(*trace, nodes, d); });
  });
}

}  // namespace regard::autograd
