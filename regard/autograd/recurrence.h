#pragma once
// What the fused recurrences share: the loops over the steps of a ragged batch, forward and backward, for any
// cell. A cell is a class template over the element type with
//
//   kGates   how many blocks of N its x, U and b have
//   kBiased  how many of b's blocks are added to x as they are; the cell takes care of the others
//   kStates  how many blocks of N its state has, h first
//   kKept    how many blocks of N backward needs of a step beside the states
//   kDirect  whether dh passes to the step before also past the product, as what `backward` leaves in carry
//   forward(ForwardRow, N), backward(BackwardRow, N)
//
// The product U h is the loops' task: one for all active sentences. Rows are time-major inside, so that the
// gradient of U is one product over all steps.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "regard/autograd/contributions.h"
#include "regard/autograd/schedule.h"
#include "regard/autograd/sequences.h"
#include "regard/autograd/tape.h"

namespace regard::autograd {

/// One step of one sentence. With G, S, K the counts of blocks above:
template <class T>
struct ForwardRow {
  const T* x;         // [G N]  biased
  const T* gh;        // [G N]  U h
  const T* b;         // [G N]
  const T* previous;  // [S N]  the state before
  T* kept;            // [K N], null: no backward follows
  T* state;           // [S N]  receives the state after
};

/// Its backward. The gradient of the state is the sum of `d_state` and `carry`, which receives what reaches
/// the state before it (but for the part of h that passes through U).
template <class T>
struct BackwardRow {
  const T* kept;
  const T* previous;
  const T* state;
  const T* d_state;  // [S N]
  T* carry;          // [S N]
  T* dx;             // [G N]  added to
  T* dgh;            // [G N]
};

/// x with the first `columns` of b added to every row.
template <class T>
Tensor with_bias(const Tensor& x, const Tensor& b, int64_t columns) {
  Tensor y = x.copy();
  const auto rows = y.as_matrix<T>();
  for (int64_t r = 0; r < y.rows(); ++r) simd::add(rows.row(r), b.data<T>(), rows.row(r), columns);
  return y;
}

/// What backward needs of a sequence.
template <class T>
struct RecurrenceTrace {
  Schedule schedule;
  Ragged sentences;
  std::vector<int32_t> index;
  bool reverse;
  Tensor U;
  bool from_zero;   // no initial states were given
  int64_t words;    // rows of x
  Tensor previous;  // [total, S N]  states before each step, time-major
  Tensor kept;      // [total, K N]  time-major; undefined: no backward follows
  Tensor states;    // [total, S N]  states after each step, as the sentences stand

  int64_t position(int64_t rank, int64_t k) const {
    return sentences.position(schedule.sentence(rank), k, reverse);
  }
  int64_t word(int64_t position) const { return index[static_cast<size_t>(position)]; }
};

struct RecurrenceNodes {
  std::shared_ptr<Node> x, U, b, initial;
  bool any() const { return x || U || b || initial; }
};

template <template <class> class Cell, class T>
void recurrence_forward(const RecurrenceTrace<T>& t, const RecurrenceInputs& in) {
  const int64_t N = in.U.dim(1), width = Cell<T>::kStates * N;
  const gemm::Packed<T> packed_U(in.U.as_matrix<T>().transposed());
  const Tensor x = with_bias<T>(in.x, in.b, Cell<T>::kBiased * N);
  const Tensor U_h = Tensor::zeros({t.sentences.count(), Cell<T>::kGates * N}, x.dtype());
  const auto mx = x.as_matrix<T>(), gh = U_h.as_matrix<T>();
  const auto previous = t.previous.template as_matrix<T>(), states = t.states.template as_matrix<T>();
  const int64_t starters = t.schedule.steps() ? t.schedule.active(0) : 0;
  for (int64_t rank = 0; rank < starters; ++rank) {
    if (t.from_zero)
      std::fill_n(previous.row(rank), width, T{0});
    else
      std::copy_n(in.initial.as_matrix<T>().row(t.schedule.sentence(rank)), width, previous.row(rank));
  }
  for (int64_t k = 0; k < t.schedule.steps(); ++k) {
    const int64_t first = t.schedule.first(k), end = t.schedule.first(k + 1), active = end - first;
    if (k > 0 || !t.from_zero)
      gemm::multiply(previous.row_range(first, end).column_range(0, N), packed_U, gh.row_range(0, active));
    const int64_t going_on = k + 1 < t.schedule.steps() ? t.schedule.active(k + 1) : 0;
    for (int64_t rank = 0; rank < active; ++rank) {
      const int64_t position = t.position(rank, k);
      T* const kept = t.kept.defined() ? t.kept.template as_matrix<T>().row(first + rank) : nullptr;
      T* const state = states.row(position);
      Cell<T>::forward(
          {mx.row(t.word(position)), gh.row(rank), in.b.data<T>(), previous.row(first + rank), kept, state},
          N);
      if (rank < going_on) std::copy_n(state, width, previous.row(end + rank));
    }
  }
}

/// Differentiates recurrence_forward, the steps in falling order.
template <template <class> class Cell, class T>
void recurrence_backward(const RecurrenceTrace<T>& t, const RecurrenceNodes& nodes, const Tensor& d_states) {
  const int64_t N = t.U.dim(1), width = Cell<T>::kStates * N, G = Cell<T>::kGates;
  const DType type = t.U.dtype();
  const gemm::Packed<T> packed_U(t.U.template as_matrix<T>());
  const Tensor carried = Tensor::zeros({t.sentences.count(), width}, type);
  const Tensor dx = Tensor::zeros({t.words, G * N}, type);
  const Tensor d_products = Tensor::empty({t.sentences.total(), G * N}, type);
  const auto d = d_states.as_matrix<T>(), states = t.states.template as_matrix<T>();
  const auto previous = t.previous.template as_matrix<T>(), kept = t.kept.template as_matrix<T>();
  const auto carry = carried.as_matrix<T>(), dgh = d_products.as_matrix<T>();
  for (int64_t k = t.schedule.steps() - 1; k >= 0; --k) {
    const int64_t first = t.schedule.first(k), end = t.schedule.first(k + 1), active = end - first;
    for (int64_t rank = 0; rank < active; ++rank) {
      const int64_t position = t.position(rank, k);
      Cell<T>::backward(
          {kept.row(first + rank), previous.row(first + rank), states.row(position), d.row(position),
           carry.row(rank), dx.as_matrix<T>().row(t.word(position)), dgh.row(first + rank)},
          N);
    }
    if (k > 0 || nodes.initial)
      gemm::multiply(dgh.row_range(first, end), packed_U, carry.row_range(0, active).column_range(0, N),
                     {.accumulate = Cell<T>::kDirect});
  }
  add_to<T>(nodes.x, dx);
  add_product<T>(nodes.U, dgh.transposed(), previous.column_range(0, N));
  add_row_sum<T>(nodes.b, dgh);
  if (nodes.initial) {
    const Tensor d_initial = Tensor::empty({t.sentences.count(), width}, type);
    for (int64_t rank = 0; rank < t.sentences.count(); ++rank)
      std::copy_n(carry.row(rank), width, d_initial.as_matrix<T>().row(t.schedule.sentence(rank)));
    add_to<T>(nodes.initial, d_initial);
  }
}

/// Throws ShapeError, naming the operation, unless the operands fit a cell of G gates and S blocks of state.
void require_recurrence(const char* operation, const RecurrenceInputs& in, const Ragged& sentences, int64_t G,
                        int64_t S);

/// The states after every step of every sentence, [total, S N], recorded as `operation`.
template <template <class> class Cell>
Tensor recurrence(const Operation& operation, const RecurrenceInputs& in, const Ragged& sentences,
                  bool reverse) {
  require_recurrence(operation.name(), in, sentences, Cell<float>::kGates, Cell<float>::kStates);
  return dispatch(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t N = in.U.dim(1), total = sentences.total();
    const DType type = in.x.dtype();
    const RecurrenceNodes nodes{input(in.x), input(in.U), input(in.b), input(in.initial)};
    const auto trace = std::make_shared<RecurrenceTrace<T>>(RecurrenceTrace<T>{
        Schedule(sentences), sentences, std::vector<int32_t>(in.index.begin(), in.index.end()), reverse, in.U,
        !in.initial.defined(), in.x.rows(), Tensor::empty({total, Cell<T>::kStates * N}, type),
        nodes.any() ? Tensor::empty({total, Cell<T>::kKept * N}, type) : Tensor(),
        Tensor::empty({total, Cell<T>::kStates * N}, type)});
    recurrence_forward<Cell, T>(*trace, in);
    if (!nodes.any()) return trace->states;
    return record(operation, trace->states,
                  [trace, nodes](const Tensor& d) { recurrence_backward<Cell, T>(*trace, nodes, d); });
  });
}

}  // namespace regard::autograd
