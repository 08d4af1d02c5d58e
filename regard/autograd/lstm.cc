#include <type_traits>

#include "regard/autograd/operations.h"
#include "regard/autograd/recurrence.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/sequences.h"

namespace regard::autograd {
namespace {

/// A state is [h | c].
template <class T>
struct Lstm {
  static constexpr int64_t kGates = 4;  // i f g o
  static constexpr int64_t kBiased = 4;
  static constexpr int64_t kStates = 2;
  static constexpr int64_t kKept = 4;  // i f g o
  static constexpr bool kDirect = false;
  static constexpr bool kSingle = std::is_same_v<T, float>;

  static void forward(const ForwardRow<T>& row, int64_t N) {
    using Row = std::conditional_t<kSingle, simd::LstmForward, simd::LstmForwardF64>;
    simd::lstm_forward(Row{row.x, nullptr, row.gh, row.previous + N, row.kept, row.state + N, row.state}, N);
  }
  static void backward(const BackwardRow<T>& row, int64_t N) {
    using Row = std::conditional_t<kSingle, simd::LstmBackward, simd::LstmBackwardF64>;
    simd::lstm_backward(Row{row.kept, row.previous + N, row.state + N, row.d_state, row.d_state + N,
                            row.carry, row.carry + N, row.dx, row.dgh},
                        N);
  }
};

}  // namespace

const Operation kLstmSequence("lstm_sequence", [] {
  return recurrence_samples(4, 2, [](const RecurrenceInputs& in, const Ragged& sentences, bool reverse) {
    return lstm_sequence(in, sentences, reverse);
  });
});

Tensor lstm_sequence(const RecurrenceInputs& in, const Ragged& sentences, bool reverse) {
  return recurrence<Lstm>(kLstmSequence, in, sentences, reverse);
}

LstmState lstm_step(const Tensor& x, const LstmState& previous, const Tensor& U, const Tensor& b) {
  const int64_t N = U.dim(1);
  const Tensor a = add(x, linear(previous.h, U, b));              // [R, 4N]
  const Tensor i = sigmoid(columns(a, 0, N));                     // [R, N]
  const Tensor f = sigmoid(columns(a, N, 2 * N));                 // [R, N]
  const Tensor g = tanh(columns(a, 2 * N, 3 * N));                // [R, N]
  const Tensor o = sigmoid(columns(a, 3 * N, 4 * N));             // [R, N]
  const Tensor c = add(multiply(f, previous.c), multiply(i, g));  // [R, N]
  const Tensor h = multiply(o, tanh(c));                          // [R, N]
  return {h, c};
}

}  // namespace regard::autograd
