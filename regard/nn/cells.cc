#include "regard/nn/cells.h"

#include <array>
#include <string>
#include <vector>

#include "regard/autograd/operations.h"
#include "regard/nn/unrolled.h"

namespace regard::nn {

using autograd::Activation;
using autograd::add;
using autograd::columns;
using autograd::concat_columns;
using autograd::linear;
using autograd::mix;
using autograd::multiply;
using autograd::Ragged;
using autograd::row_range;
using autograd::rows;
using autograd::sigmoid;
using autograd::tanh;

namespace {

constexpr std::array kKinds{CellKind::elman, CellKind::elman_relu, CellKind::lstm,
                            CellKind::gru,   CellKind::gru_2014,   CellKind::gru_2015};

void require_operands(const Cell& cell, const Tensor& x) {
  const int64_t g = gates(cell.kind), N = cell.U.rank() == 2 ? cell.U.dim(1) : 0;
  const bool U_fits = cell.U.rank() == 2 && cell.U.dim(0) == g * N;
  const bool b_fits = has_state_bias(cell.kind) ? cell.b_hh.size() == g * N : !cell.b_hh.defined();
  if (U_fits && b_fits && x.rank() >= 1 && x.dim(-1) == g * N) return;
  const std::string gN = std::to_string(g) + "N";
  throw ShapeError("[" + std::string(cell_name(cell.kind)) + "] x " + shape_text(x.shape()) + ", U " +
                   shape_text(cell.U.shape()) + ", b_hh " + shape_text(cell.b_hh.shape()) +
                   ", expected [R, " + gN + "], [" + gN + ", N], " +
                   (has_state_bias(cell.kind) ? "[" + gN + "]" : "none"));
}

Activation activation(CellKind kind) {
  return kind == CellKind::elman_relu ? Activation::relu : Activation::tanh;
}

/// [h | c], or h where there is no c; undefined if h is.
Tensor joined(CellKind kind, const CellState& state) {
  return has_memory(kind) && state.h.defined() ? concat_columns(std::vector{state.h, state.c}) : state.h;
}

CellState parted(CellKind kind, const Tensor& state) {
  if (!has_memory(kind)) return {state, {}};
  const int64_t N = state.dim(-1) / 2;
  return {columns(state, 0, N), columns(state, N, 2 * N)};
}

/// The gated unit as its papers have it: the reset gate acts before the product.
struct ResetBefore {
  CellKind kind;
  Tensor U_rz, U_n;  // [2N, N], [N, N]

  explicit ResetBefore(const Cell& cell)
      : kind(cell.kind),
        U_rz(row_range(cell.U, 0, 2 * cell.U.dim(1))),
        U_n(row_range(cell.U, 2 * cell.U.dim(1), 3 * cell.U.dim(1))) {}

  Tensor step(const Tensor& x, const Tensor& h) const {
    const int64_t N = U_n.dim(1);
    const Tensor rz = sigmoid(add(columns(x, 0, 2 * N), linear(h, U_rz)));                  // r, z [R, 2N]
    const Tensor r = columns(rz, 0, N), z = columns(rz, N, 2 * N);                          // [R, N]
    const Tensor h_new = tanh(add(columns(x, 2 * N, 3 * N), linear(multiply(r, h), U_n)));  // h~   [R, N]
    return kind == CellKind::gru_2014 ? mix(z, h_new, h)                                    // z h + (1-z) h~
                                      : mix(z, h, h_new);                                   // (1-z) h + z h~
  }
};

Tensor run_reset_before(const Cell& cell, const Tensor& x, std::span<const int32_t> index,
                        const Ragged& sentences, bool reverse, const Tensor& initial) {
  if (static_cast<int64_t>(index.size()) != sentences.total())
    throw ShapeError("[" + std::string(cell_name(cell.kind)) + "] index [" + std::to_string(index.size()) +
                     "], expected [" + std::to_string(sentences.total()) + "]");
  const ResetBefore unit(cell);
  const Tensor h0 =
      initial.defined() ? initial : Tensor::zeros({sentences.count(), cell.U.dim(1)}, x.dtype());
  return unroll(sentences, reverse, h0, [&](const ActiveRows& active, const Tensor& h) {
    std::vector<int32_t> words;
    for (const int32_t position : active.positions) words.push_back(index[static_cast<size_t>(position)]);
    return unit.step(rows(x, words), h);
  });
}

}  // namespace

std::span<const CellKind> cell_kinds() { return kKinds; }

std::string_view cell_name(CellKind kind) {
  switch (kind) {
    case CellKind::elman:
      return "elman";
    case CellKind::elman_relu:
      return "elman-relu";
    case CellKind::lstm:
      return "lstm";
    case CellKind::gru:
      return "gru";
    case CellKind::gru_2014:
      return "gru-2014";
    case CellKind::gru_2015:
      return "gru-2015";
  }
  throw Error(ErrorKind::internal, "unknown kind of cell");
}

CellKind cell_from_name(std::string_view name) {
  std::string names;
  for (const CellKind kind : kKinds) {
    if (cell_name(kind) == name) return kind;
    names += (names.empty() ? "" : ", ") + std::string(cell_name(kind));
  }
  throw UsageError("unknown cell \"" + std::string(name) + "\", expected one of " + names);
}

int64_t gates(CellKind kind) {
  if (kind == CellKind::elman || kind == CellKind::elman_relu) return 1;
  return kind == CellKind::lstm ? 4 : 3;
}
bool has_memory(CellKind kind) { return kind == CellKind::lstm; }
bool has_state_bias(CellKind kind) { return kind != CellKind::gru_2014 && kind != CellKind::gru_2015; }

CellState zero_state(CellKind kind, int64_t R, int64_t N, DType dtype) {
  return {Tensor::zeros({R, N}, dtype), has_memory(kind) ? Tensor::zeros({R, N}, dtype) : Tensor()};
}

CellState step(const Cell& cell, const Tensor& x, const CellState& previous) {
  require_operands(cell, x);
  switch (cell.kind) {
    case CellKind::elman:
    case CellKind::elman_relu:
      return {autograd::elman_step(x, previous.h, cell.U, cell.b_hh, activation(cell.kind)), {}};
    case CellKind::lstm: {
      const autograd::LstmState next = autograd::lstm_step(x, {previous.h, previous.c}, cell.U, cell.b_hh);
      return {next.h, next.c};
    }
    case CellKind::gru:
      return {autograd::gru_step(x, previous.h, cell.U, cell.b_hh), {}};
    case CellKind::gru_2014:
    case CellKind::gru_2015:
      return {ResetBefore(cell).step(x, previous.h), {}};
  }
  throw Error(ErrorKind::internal, "unknown kind of cell");
}

Sequence run(const Cell& cell, const Tensor& x, std::span<const int32_t> index, const Ragged& sentences,
             bool reverse, const CellState& initial) {
  require_operands(cell, x);
  const Tensor before = joined(cell.kind, initial);  // [B, N], of an LSTM [B, 2N]
  const autograd::RecurrenceInputs inputs{x, index, cell.U, cell.b_hh, before};
  const auto states = [&]() -> Tensor {  // [total, N], of an LSTM [total, 2N]
    switch (cell.kind) {
      case CellKind::elman:
      case CellKind::elman_relu:
        return autograd::elman_sequence(inputs, sentences, reverse, activation(cell.kind));
      case CellKind::lstm:
        return autograd::lstm_sequence(inputs, sentences, reverse);
      case CellKind::gru:
        return autograd::gru_sequence(inputs, sentences, reverse);
      case CellKind::gru_2014:
      case CellKind::gru_2015:
        return run_reset_before(cell, x, index, sentences, reverse, before);
    }
    throw Error(ErrorKind::internal, "unknown kind of cell");
  }();
  const Tensor last = last_states(states, sentences, reverse, before);
  return {parted(cell.kind, states).h, parted(cell.kind, last)};
}

}  // namespace regard::nn
