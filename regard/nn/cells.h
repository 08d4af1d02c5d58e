#pragma once
// Recurrent cells: one step that reads like the paper, and whole ragged batches. The input's projection
// x = W y + b_ih is the caller's task, for all steps at once: it does not depend on the state.
//
//   elman       h' = tanh(x + U h + b)
//               Elman 1990, "Finding structure in time", Cognitive Science 14(2).
//   elman-relu  h' = max(x + U h + b, 0)
//               Le, Jaitly and Hinton 2015, arXiv:1504.00941.
//   lstm        i, f, o = sigmoid(x + U h + b)   g = tanh(x + U h + b)   c' = f c + i g   h' = o tanh(c')
//               Hochreiter and Schmidhuber 1997, "Long short-term memory", Neural Computation 9(8); forget
//               gate: Gers, Schmidhuber and Cummins 2000, "Learning to forget", Neural Computation 12(10).
//   gru         r, z = sigmoid(x + U h + b)   n = tanh(x_n + r (U_n h + b_n))   h' = (1 - z) n + z h
//               Cho et al. 2014, arXiv:1406.1078, in cuDNN's form: reset after the product.
//   gru-2014    r, z = sigmoid(x + U h)   h~ = tanh(x_n + U_n (r h))   h' = z h + (1 - z) h~
//               Cho et al. 2014, arXiv:1406.1078, section 2.3.
//   gru-2015    r, z = sigmoid(x + U h)   h~ = tanh(x_n + U_n (r h))   h' = (1 - z) h + z h~
//               Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, appendix A.1.1.
//
// Blocks of N rows in x, U and b_hh: i f g o in an LSTM, r z n in a GRU. All but the last two have fused
// operations over sequences (regard/autograd/sequences.h); those two run as compositions.
// All functions are safe from several threads.

#include <cstdint>
#include <span>
#include <string_view>

#include "regard/autograd/sequences.h"
#include "regard/tensor/tensor.h"

namespace regard::nn {

enum class CellKind { elman, elman_relu, lstm, gru, gru_2014, gru_2015 };

/// All kinds, in the order above.
std::span<const CellKind> cell_kinds();
/// "elman", "elman-relu", "lstm", "gru", "gru-2014", "gru-2015".
std::string_view cell_name(CellKind kind);
/// The kind of that name. Throws UsageError, listing the names.
CellKind cell_from_name(std::string_view name);

/// g: how many blocks of N rows x, U and b_hh have.
int64_t gates(CellKind kind);
/// Whether the state has a c beside h.
bool has_memory(CellKind kind);
/// Whether the product with the state has a bias of its own, b_hh.
bool has_state_bias(CellKind kind);

struct CellState {
  Tensor h;  ///< [R, N]
  Tensor c;  ///< [R, N], of an LSTM only
};

/// h = 0, and c = 0 where the kind has one.
CellState zero_state(CellKind kind, int64_t R, int64_t N, DType dtype = DType::f32);

struct Cell {
  CellKind kind;
  Tensor U;     ///< [gN, N]
  Tensor b_hh;  ///< [gN]; undefined for gru-2014 and gru-2015
};

/// One step of R rows, x [R, gN]. Throws ShapeError if the operands do not fit the kind.
CellState step(const Cell& cell, const Tensor& x, const CellState& previous);

/// What a cell makes of a ragged batch.
struct Sequence {
  Tensor h;        ///< [total, N] h after every step; row i belongs to position i, in either direction
  CellState last;  ///< [B, N] every sentence's state after its last step in reading direction
};

/// Every sentence of a ragged batch, with `reverse` from its end. Row index[i] of x [D, gN] belongs to
/// position i. Starts from `initial` [B, N] (undefined: zero), which is also where an empty sentence ends. A
/// sentence's rows have the same bits alone and in any batch. Throws ShapeError. O(total g N^2).
Sequence run(const Cell& cell, const Tensor& x, std::span<const int32_t> index,
             const autograd::Ragged& sentences, bool reverse, const CellState& initial = {});

}  // namespace regard::nn
