#include "regard/autograd/lstmn.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "regard/attention/additive.h"
#include "regard/autograd/contributions.h"
#include "regard/autograd/operations.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/schedule.h"
#include "regard/autograd/score_attention.h"

namespace regard::autograd {
namespace {

/// The tapes before a step, for the kernel: sentence b's rows that are written are source 2b, those that are
/// not yet are source 2b + 1, which no row looks at.
class WrittenTapes {
 public:
  WrittenTapes(const Ragged& sentences, const Schedule& schedule)
      : sentences_(sentences), offsets_(static_cast<size_t>(2 * sentences.count() + 1)) {
    for (const int32_t sentence : schedule.order()) sources_.push_back(2 * sentence);
    offsets_.back() = sentences.total();
  }
  void set_step(int64_t k) {
    for (int64_t b = 0; b < sentences_.count(); ++b) {
      offsets_[static_cast<size_t>(2 * b)] = sentences_.begin(b);
      offsets_[static_cast<size_t>(2 * b + 1)] = sentences_.begin(b) + std::min(k, sentences_.length(b));
    }
  }
  std::span<const int64_t> offsets() const { return offsets_; }
  /// Of the first `active` sentences in the schedule's order.
  std::span<const int32_t> sources(int64_t active) const {
    return std::span(sources_).first(static_cast<size_t>(active));
  }

 private:
  const Ragged& sentences_;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> sources_;
};

/// What backward needs of a batch.
template <class T>
struct LstmnTrace {
  Tensor x, q, U, W_h, W_s, v;
  std::vector<int32_t> index;
  Ragged sentences;
  Schedule schedule;
  bool reverse;
  int64_t N, A;
  // Sentence after sentence, as they are read.
  Tensor tape;  // [total, 2N]  h_t | c_t
  Tensor keys;  // [total, A]   W_h h_t
  // Time-major.
  Tensor before;   // [total, N]   h~_{t-1}
  Tensor queries;  // [total, A]   W_x x_t + W_s h~_{t-1}
  Tensor weights;  // [total, longest]  s
  Tensor read;     // [total, 2N]  h~_t | c~_t
  Tensor gates;    // [total, 4N]

  /// The row of the tape that the sentence of this rank writes in step k.
  int64_t row(int64_t rank, int64_t k) const { return sentences.begin(schedule.sentence(rank)) + k; }
  /// Its row of x and q.
  int64_t word(int64_t rank, int64_t k) const {
    return index[static_cast<size_t>(sentences.position(schedule.sentence(rank), k, reverse))];
  }
  attention::AdditiveOperands<T> operands(const WrittenTapes& tapes, int64_t first, int64_t end) const {
    return {queries.as_matrix<T>().row_range(first, end),
            keys.as_matrix<T>(),
            tape.as_matrix<T>(),
            v.data<T>(),
            tapes.offsets(),
            tapes.sources(end - first)};
  }
};

template <class T>
void lstm_row_forward(const T* x, T* gates, const T* c_before, T* state, int64_t N) {
  using Row = std::conditional_t<std::is_same_v<T, float>, simd::LstmForward, simd::LstmForwardF64>;
  simd::lstm_forward(Row{x, nullptr, gates, c_before, gates, state + N, state}, N);
}

template <class T>
void lstmn_forward(const LstmnTrace<T>& t) {
  const int64_t N = t.N, A = t.A;
  const gemm::Packed<T> U(t.U.template as_matrix<T>().transposed());
  const gemm::Packed<T> W_h(t.W_h.template as_matrix<T>().transposed());
  const gemm::Packed<T> W_s(t.W_s.template as_matrix<T>().transposed());
  const auto tape = t.tape.template as_matrix<T>(), keys = t.keys.template as_matrix<T>();
  const auto before = t.before.template as_matrix<T>(), queries = t.queries.template as_matrix<T>();
  const auto read = t.read.template as_matrix<T>(), gates = t.gates.template as_matrix<T>();
  const int64_t starters = t.schedule.steps() ? t.schedule.active(0) : 0;
  const Tensor h_rows = Tensor::empty({starters, N}, t.x.dtype());
  const Tensor key_rows = Tensor::empty({starters, A}, t.x.dtype());
  const auto h = h_rows.as_matrix<T>(), key = key_rows.as_matrix<T>();
  WrittenTapes tapes(t.sentences, t.schedule);
  for (int64_t rank = 0; rank < starters; ++rank) std::fill_n(before.row(rank), N, T{0});
  for (int64_t k = 0; k < t.schedule.steps(); ++k) {
    const int64_t first = t.schedule.first(k), end = t.schedule.first(k + 1), active = end - first;
    gemm::multiply(before.row_range(first, end), W_s, queries.row_range(first, end));
    for (int64_t rank = 0; rank < active; ++rank)
      simd::add(queries.row(first + rank), t.q.template as_matrix<T>().row(t.word(rank, k)),
                queries.row(first + rank), A);
    tapes.set_step(k);
    attention::additive_forward(t.operands(tapes, first, end),
                                t.weights.template as_matrix<T>().row_range(first, end),
                                read.row_range(first, end));  // h~_t | c~_t
    gemm::multiply(read.row_range(first, end).column_range(0, N), U, gates.row_range(first, end));
    for (int64_t rank = 0; rank < active; ++rank) {
      T* const state = tape.row(t.row(rank, k));
      lstm_row_forward(t.x.template as_matrix<T>().row(t.word(rank, k)), gates.row(first + rank),
                       read.row(first + rank) + N, state, N);
      std::copy_n(state, N, h.row(rank));
    }
    gemm::multiply(h.row_range(0, active), W_h, key.row_range(0, active));
    const int64_t going_on = k + 1 < t.schedule.steps() ? t.schedule.active(k + 1) : 0;
    for (int64_t rank = 0; rank < going_on; ++rank) {
      std::copy_n(key.row(rank), A, keys.row(t.row(rank, k)));
      std::copy_n(read.row(first + rank), N, before.row(end + rank));
    }
  }
}

/// Rows of the tape as they stand in the sentences, or back.
Tensor turned(const Tensor& rows, const Ragged& sentences, bool reverse) {
  if (!reverse) return rows;
  Tensor result = Tensor::empty(rows.shape(), rows.dtype());
  const auto width = static_cast<size_t>(rows.dim(1) * dtype_size(rows.dtype()));
  for (int64_t b = 0; b < sentences.count(); ++b)
    for (int64_t k = 0; k < sentences.length(b); ++k)
      std::memcpy(
          static_cast<char*>(result.bytes()) + static_cast<size_t>(sentences.position(b, k, true)) * width,
          static_cast<const char*>(rows.bytes()) + static_cast<size_t>(sentences.begin(b) + k) * width,
          width);
  return result;
}

struct LstmnNodes {
  std::shared_ptr<Node> x, q, U, W_h, W_s, v;
  bool any() const { return x || q || U || W_h || W_s || v; }
};

/// Gradients of all steps.
template <class T>
struct LstmnGradients {
  Tensor d_tape, d_keys;              // as t.tape, t.keys
  Tensor d_read, d_queries, d_gates;  // time-major
  Tensor dx, dv;
};

template <class T>
void lstm_row_backward(const LstmnTrace<T>& t, const LstmnGradients<T>& g, int64_t rank, int64_t k,
                       const T* dh_by_key) {
  using Row = std::conditional_t<std::is_same_v<T, float>, simd::LstmBackward, simd::LstmBackwardF64>;
  const int64_t N = t.N, at = t.schedule.first(k) + rank, row = t.row(rank, k);
  T* const dc_before = g.d_read.template as_matrix<T>().row(at) + N;
  const T* const d_state = g.d_tape.template as_matrix<T>().row(row);
  std::fill_n(dc_before, N, T{0});
  simd::lstm_backward(
      Row{t.gates.template as_matrix<T>().row(at), t.read.template as_matrix<T>().row(at) + N,
          t.tape.template as_matrix<T>().row(row) + N, d_state, d_state + N, dh_by_key, dc_before,
          g.dx.template as_matrix<T>().row(t.word(rank, k)), g.d_gates.template as_matrix<T>().row(at)},
      N);
}

/// Differentiates lstmn_forward's steps in falling order. When a step's turn comes, all later ones have added
/// what they want of its row of the tape and of its key.
template <class T>
void lstmn_backward_steps(const LstmnTrace<T>& t, const LstmnGradients<T>& g) {
  const int64_t N = t.N, A = t.A;
  const gemm::Packed<T> U(t.U.template as_matrix<T>()), W_h(t.W_h.template as_matrix<T>()),
      W_s(t.W_s.template as_matrix<T>());
  const auto d_keys = g.d_keys.template as_matrix<T>(), d_read = g.d_read.template as_matrix<T>();
  const auto d_queries = g.d_queries.template as_matrix<T>(), d_gates = g.d_gates.template as_matrix<T>();
  const int64_t starters = t.schedule.steps() ? t.schedule.active(0) : 0;
  const Tensor key_rows = Tensor::empty({starters, A}, t.x.dtype());
  const Tensor h_rows = Tensor::empty({starters, N}, t.x.dtype());
  const Tensor carried = Tensor::empty({starters, N}, t.x.dtype());  // d h~_{t-1} of the step behind
  const auto d_key = key_rows.as_matrix<T>(), dh = h_rows.as_matrix<T>(), carry = carried.as_matrix<T>();
  WrittenTapes tapes(t.sentences, t.schedule);
  for (int64_t k = t.schedule.steps() - 1; k >= 0; --k) {
    const int64_t first = t.schedule.first(k), end = t.schedule.first(k + 1), active = end - first;
    for (int64_t rank = 0; rank < active; ++rank) std::copy_n(d_keys.row(t.row(rank, k)), A, d_key.row(rank));
    gemm::multiply(d_key.row_range(0, active), W_h, dh.row_range(0, active));  // key = W_h h_t
    for (int64_t rank = 0; rank < active; ++rank) lstm_row_backward(t, g, rank, k, dh.row(rank));
    gemm::multiply(d_gates.row_range(first, end), U, d_read.row_range(first, end).column_range(0, N));
    const int64_t went_on = k + 1 < t.schedule.steps() ? t.schedule.active(k + 1) : 0;
    for (int64_t rank = 0; rank < went_on; ++rank)
      simd::add(d_read.row(first + rank), carry.row(rank), d_read.row(first + rank), N);
    tapes.set_step(k);
    attention::additive_backward(t.operands(tapes, first, end),
                                 t.weights.template as_matrix<T>().row_range(first, end),
                                 attention::AdditiveGradients<T>{d_read.row_range(first, end),
                                                                 {},
                                                                 d_queries.row_range(first, end),
                                                                 d_keys,
                                                                 g.d_tape.template as_matrix<T>(),
                                                                 g.dv.template data<T>()});
    gemm::multiply(d_queries.row_range(first, end), W_s, carry.row_range(0, active));
  }
}

template <class T>
void lstmn_backward(const LstmnTrace<T>& t, const LstmnNodes& nodes, const Tensor& d_states) {
  const DType type = t.x.dtype();
  const int64_t total = t.sentences.total();
  const Tensor d_tape = turned(d_states, t.sentences, t.reverse);
  const LstmnGradients<T> g{t.reverse ? d_tape : d_tape.copy(),
                            Tensor::zeros({total, t.A}, type),
                            Tensor::empty({total, 2 * t.N}, type),
                            Tensor::empty({total, t.A}, type),
                            Tensor::empty({total, 4 * t.N}, type),
                            Tensor::zeros(t.x.shape(), type),
                            Tensor::zeros({t.A}, type)};
  lstmn_backward_steps(t, g);
  const auto d_queries = g.d_queries.template as_matrix<T>();
  if (nodes.q) {
    const Tensor dq = Tensor::zeros(t.q.shape(), type);
    for (int64_t k = 0; k < t.schedule.steps(); ++k)
      for (int64_t rank = 0; rank < t.schedule.active(k); ++rank) {
        T* const to = dq.as_matrix<T>().row(t.word(rank, k));
        simd::add(to, d_queries.row(t.schedule.first(k) + rank), to, t.A);
      }
    add_to<T>(nodes.q, dq);
  }
  add_to<T>(nodes.x, g.dx);
  add_to<T>(nodes.v, g.dv);
  add_product<T>(nodes.U, g.d_gates.template as_matrix<T>().transposed(),
                 t.read.template as_matrix<T>().column_range(0, t.N));
  add_product<T>(nodes.W_s, d_queries.transposed(), t.before.template as_matrix<T>());
  add_product<T>(nodes.W_h, g.d_keys.template as_matrix<T>().transposed(),
                 t.tape.template as_matrix<T>().column_range(0, t.N));
}

void require_lstmn(const LstmnInputs& in, const Ragged& sentences) {
  const int64_t N = in.U.rank() == 2 ? in.U.dim(1) : 0, A = in.v.size();
  const Shape to_scores{A, N};
  if (in.U.rank() != 2 || in.U.dim(0) != 4 * N || in.x.rank() != 2 || in.x.dim(1) != 4 * N ||
      in.q.rank() != 2 || in.q.dim(1) != A || in.q.dim(0) != in.x.dim(0) || in.W_h.shape() != to_scores ||
      in.W_s.shape() != to_scores)
    throw ShapeError("[lstmn_sequence] x " + shape_text(in.x.shape()) + ", q " + shape_text(in.q.shape()) +
                     ", U " + shape_text(in.U.shape()) + ", W_h " + shape_text(in.W_h.shape()) + ", W_s " +
                     shape_text(in.W_s.shape()) + ", v " + shape_text(in.v.shape()) +
                     ", expected [D, 4N], [D, A], [4N, N], [A, N], [A, N], [A]");
  if (static_cast<int64_t>(in.index.size()) != sentences.total())
    throw ShapeError("[lstmn_sequence] index [" + std::to_string(in.index.size()) + "], expected [" +
                     std::to_string(sentences.total()) + "]");
  for (const int32_t row : in.index)
    if (row < 0 || row >= in.x.rows())
      throw ShapeError("[lstmn_sequence] index " + std::to_string(row) + ", expected a row of x " +
                       shape_text(in.x.shape()));
}

}  // namespace

const Operation kLstmnSequence("lstmn_sequence", [] {
  const std::vector<int32_t> index{0, 1, 2, 1, 0, 3, 2};
  const Ragged sentences{{0, 1, 5, 5, 7}};
  std::vector<Operation::Sample> samples;
  for (const bool reverse : {false, true})
    samples.push_back(
        sample(reverse ? "reverse" : "forward", {{4, 12}, {4, 2}, {12, 3}, {2, 3}, {2, 3}, {2}},
               [=](std::span<const Tensor> in) {
                 return lstmn_sequence({in[0], in[1], index, in[2], in[3], in[4], in[5]}, sentences, reverse);
               }));
  return samples;
});

Tensor lstmn_sequence(const LstmnInputs& in, const Ragged& sentences, bool reverse) {
  require_lstmn(in, sentences);
  return dispatch(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t N = in.U.dim(1), A = in.v.size(), total = sentences.total();
    const DType type = in.x.dtype();
    const auto trace = std::make_shared<LstmnTrace<T>>(LstmnTrace<T>{
        in.x, in.q, in.U, in.W_h, in.W_s, in.v, std::vector<int32_t>(in.index.begin(), in.index.end()),
        sentences, Schedule(sentences), reverse, N, A, Tensor::empty({total, 2 * N}, type),
        Tensor::empty({total, A}, type), Tensor::empty({total, N}, type), Tensor::empty({total, A}, type),
        Tensor::empty({total, sentences.longest()}, type), Tensor::empty({total, 2 * N}, type),
        Tensor::empty({total, 4 * N}, type)});
    lstmn_forward(*trace);
    Tensor states = turned(trace->tape, sentences, reverse);
    const LstmnNodes nodes{input(in.x), input(in.q), input(in.U), input(in.W_h), input(in.W_s), input(in.v)};
    if (!nodes.any()) return states;
    return record(kLstmnSequence, states,
                  [trace, nodes](const Tensor& d) { lstmn_backward(*trace, nodes, d); });
  });
}

LstmnStep lstmn_step(const Tensor& x, const Tensor& q, const Tensor& summary, const LstmnTape& tape,
                     const Tensor& U, const Tensor& W_h, const Tensor& W_s, const Tensor& v) {
  const int64_t N = U.dim(1);
  const Tensor query = add(q, linear(summary, W_s));  // W_x x_t + W_s h~_{t-1}  [R, A]
  const Attended read =
      additive_attention(query, tape.keys, tape.states, v, tape.positions, {});  // h~_t | c~_t  [R, 2N]
  const Tensor h_read = columns(read.context, 0, N);                             // h~_t  [R, N]
  const Tensor c_read = columns(read.context, N, 2 * N);                         // c~_t  [R, N]
  const LstmState next = lstm_step(x, {h_read, c_read}, U, {});                  // h_t, c_t  [R, N]
  return {concat_columns(std::vector{next.h, next.c}), linear(next.h, W_h), h_read, read.weights};
}

}  // namespace regard::autograd
