#include "regard/autograd/operations.h"
#include "regard/autograd/recurrence.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/sequences.h"

namespace regard::autograd {
namespace {

/// The two differ in the function and its derivative alone.
template <class T>
struct ElmanBase {
  static constexpr int64_t kGates = 1;
  static constexpr int64_t kBiased = 1;
  static constexpr int64_t kStates = 1;
  static constexpr int64_t kKept = 0;  // the state is all that the derivative needs
  static constexpr bool kDirect = false;
};

template <class T>
struct Elman : ElmanBase<T> {
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

template <class T>
struct ElmanRelu : ElmanBase<T> {
  static void forward(const ForwardRow<T>& row, int64_t N) {
    simd::add(row.x, row.gh, row.state, N);
    simd::relu(row.state, row.state, N);
  }
  static void backward(const BackwardRow<T>& row, int64_t N) {
    simd::add(row.d_state, row.carry, row.dgh, N);
    simd::relu_backward(row.state, row.dgh, row.dgh, N);
    simd::add(row.dx, row.dgh, row.dx, N);
  }
};

}  // namespace

const Operation kElmanSequence("elman_sequence", [] {
  std::vector<Operation::Sample> all;
  for (const Activation activation : {Activation::tanh, Activation::relu}) {
    auto samples =
        recurrence_samples(1, 1, [=](const RecurrenceInputs& in, const Ragged& sentences, bool reverse) {
          return elman_sequence(in, sentences, reverse, activation);
        });
    for (auto& sample : samples) {
      sample.name += activation == Activation::tanh ? ", tanh" : ", relu";
      all.push_back(std::move(sample));
    }
  }
  return all;
});

Tensor elman_sequence(const RecurrenceInputs& in, const Ragged& sentences, bool reverse,
                      Activation activation) {
  return activation == Activation::tanh ? recurrence<Elman>(kElmanSequence, in, sentences, reverse)
                                        : recurrence<ElmanRelu>(kElmanSequence, in, sentences, reverse);
}

Tensor elman_step(const Tensor& x, const Tensor& h, const Tensor& U, const Tensor& b, Activation activation) {
  const Tensor a = add(x, linear(h, U, b));                   // [R, N]
  return activation == Activation::tanh ? tanh(a) : relu(a);  // [R, N]
}

}  // namespace regard::autograd
