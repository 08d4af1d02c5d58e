#include "regard/autograd/operations.h"
#include "regard/autograd/recurrence.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/sequences.h"

namespace regard::autograd {
namespace {

template <class T>
struct Elman {
  static constexpr int64_t kGates = 1;
  static constexpr int64_t kBiased = 1;
  static constexpr int64_t kStates = 1;
  static constexpr int64_t kKept = 0;  // the state is all that tanh's derivative needs
  static constexpr bool kDirect = false;

  static void forward(const ForwardRow<T>& row, int64_t N) {
    simd::add(row.x, row.gh, row.state, N);
    simd::tanh(row.state, row.state, N);
  }
  static void backward(const BackwardRow<T>& row, int64_t N) {
    simd::add(row.d_state, row.carry, row.dgh, N);
    simd::tanh_backward(row.state, row.dgh, row.dgh, N);
    simd::add(row.dx, row.dgh, row.dx, N);
  }
};

}  // namespace

const Operation kElmanSequence("elman_sequence", [] {
  return recurrence_samples(1, 1, [](const RecurrenceInputs& in, const Ragged& sentences, bool reverse) {
    return elman_sequence(in, sentences, reverse);
  });
});

Tensor elman_sequence(const RecurrenceInputs& in, const Ragged& sentences, bool reverse) {
  return recurrence<Elman>(kElmanSequence, in, sentences, reverse);
}

Tensor elman_step(const Tensor& x, const Tensor& h, const Tensor& U, const Tensor& b) {
  return tanh(add(x, linear(h, U, b)));  // [R, N]
}

}  // namespace regard::autograd
