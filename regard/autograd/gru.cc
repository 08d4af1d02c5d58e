#include "regard/autograd/gru_rows.h"
#include "regard/autograd/operations.h"
#include "regard/autograd/recurrence.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/sequences.h"

namespace regard::autograd {
namespace {

template <class T>
struct Gru {
  static constexpr int64_t kGates = 3;   // r z n
  static constexpr int64_t kBiased = 2;  // b_n passes through the reset gate
  static constexpr int64_t kStates = 1;
  static constexpr int64_t kKept = 4;  // r z n q
  static constexpr bool kDirect = true;

  static void forward(const ForwardRow<T>& row, int64_t N) {
    gru_row_forward<T>({row.x, nullptr, row.gh, row.b + 2 * N, row.previous, row.kept, row.state}, N);
  }
  static void backward(const BackwardRow<T>& row, int64_t N) {
    gru_row_backward<T>({row.kept, row.previous, row.d_state, row.carry, nullptr, row.dx, row.dgh}, N);
  }
};

}  // namespace

const Operation kGruSequence("gru_sequence", [] {
  return recurrence_samples(3, 1, [](const RecurrenceInputs& in, const Ragged& sentences, bool reverse) {
    return gru_sequence(in, sentences, reverse);
  });
});

Tensor gru_sequence(const RecurrenceInputs& in, const Ragged& sentences, bool reverse) {
  return recurrence<Gru>(kGruSequence, in, sentences, reverse);
}

Tensor gru_step(const Tensor& x, const Tensor& h, const Tensor& U, const Tensor& b) {
  const int64_t N = U.dim(1);
  const Tensor g = linear(h, U, b);                                            // [R, 3N]
  const Tensor rz = sigmoid(add(columns(x, 0, 2 * N), columns(g, 0, 2 * N)));  // [R, 2N]
  const Tensor q = multiply(columns(rz, 0, N), columns(g, 2 * N, 3 * N));      // [R, N]
  const Tensor n = tanh(add(columns(x, 2 * N, 3 * N), q));                     // [R, N]
  return mix(columns(rz, N, 2 * N), n, h);                                     // [R, N]
}

}  // namespace regard::autograd
