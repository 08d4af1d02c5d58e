// The fused recurrences against their unfused steps, and what they promise. Their gradients:
// registry_test.cc.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "regard/autograd/operations.h"
#include "regard/autograd/sequences.h"
#include "regard/base/random.h"

namespace regard::autograd {
namespace {

const std::vector<int32_t> kIndex{0, 1, 2, 3, 1, 0};
const Ragged kSentences{{0, 3, 4, 4, 6}};

/// One fused operation and the step that it stands for, on rows of whole states.
struct Recurrence {
  std::string name;
  int64_t gates, states;
  std::function<Tensor(const RecurrenceInputs&, const Ragged&, bool)> sequence;
  std::function<Tensor(const Tensor& x, const Tensor& state, const Tensor& U, const Tensor& b)> step;
};

const std::vector<Recurrence>& recurrences() {
  static const std::vector<Recurrence> all{
      {"elman", 1, 1,
       [](const auto& in, const auto& s, bool reverse) { return elman_sequence(in, s, reverse); },
       [](const auto& x, const auto& h, const auto& U, const auto& b) { return elman_step(x, h, U, b); }},
      {"elman, relu", 1, 1,
       [](const auto& in, const auto& s, bool reverse) {
         return elman_sequence(in, s, reverse, Activation::relu);
       },
       [](const auto& x, const auto& h, const auto& U, const auto& b) {
         return elman_step(x, h, U, b, Activation::relu);
       }},
      {"gru", 3, 1, [](const auto& in, const auto& s, bool reverse) { return gru_sequence(in, s, reverse); },
       gru_step},
      {"lstm", 4, 2, lstm_sequence,
       [](const Tensor& x, const Tensor& state, const Tensor& U, const Tensor& b) {
         const int64_t N = U.dim(1);
         const LstmState next = lstm_step(x, {columns(state, 0, N), columns(state, N, 2 * N)}, U, b);
         return concat_columns(std::vector{next.h, next.c});
       }}};
  return all;
}

Tensor random(Shape shape, uint64_t stream, DType dtype) {
  Tensor x = Tensor::empty(std::move(shape), DType::f64);
  RandomStream numbers(5, stream);
  for (double& v : x.values<double>()) v = 0.5 * numbers.normal();
  return x.to(dtype);
}

struct Operands {
  Tensor x, U, b, initial;
};
Operands random_operands(const Recurrence& r, int64_t N, DType dtype) {
  return {random({4, r.gates * N}, 1, dtype), random({r.gates * N, N}, 2, dtype),
          random({r.gates * N}, 3, dtype), random({kSentences.count(), r.states * N}, 4, dtype)};
}

template <class T>
void expect_steps(const Recurrence& r, int64_t N, bool from_zero, bool reverse, double tolerance) {
  const Operands in = random_operands(r, N, dtype_of<T>());
  const Tensor initial = from_zero ? Tensor::zeros(in.initial.shape(), dtype_of<T>()) : in.initial;
  const Tensor fused =
      r.sequence({in.x, kIndex, in.U, in.b, from_zero ? Tensor() : initial}, kSentences, reverse);
  for (int64_t b = 0; b < kSentences.count(); ++b) {
    Tensor state = initial.row_range(b, b + 1);
    for (int64_t k = 0; k < kSentences.length(b); ++k) {
      const int64_t row = kSentences.position(b, k, reverse);
      state = r.step(rows(in.x, std::vector{kIndex[static_cast<size_t>(row)]}), state, in.U, in.b);
      for (int64_t n = 0; n < state.size(); ++n) {
        const T expected = state.data<T>()[n];
        ASSERT_NEAR(fused.as_matrix<T>()(row, n), expected, tolerance * (1 + std::abs(expected)))
            << r.name << ", row " << row << ", column " << n << (reverse ? ", reverse" : "");
      }
    }
  }
}

TEST(Recurrence, EqualsItsSteps) {
  for (const Recurrence& r : recurrences())
    for (const bool from_zero : {true, false})
      for (const bool reverse : {false, true}) {
        expect_steps<double>(r, 3, from_zero, reverse, 1e-14);
        expect_steps<float>(r, 37, from_zero, reverse, 1e-5);
      }
}

TEST(Recurrence, ZeroStatesGivenOrNotAreTheSameBits) {
  for (const Recurrence& r : recurrences()) {
    const Operands in = random_operands(r, 21, DType::f32);
    const Tensor zero = Tensor::zeros(in.initial.shape());
    const Tensor a = r.sequence({in.x, kIndex, in.U, in.b}, kSentences, false);
    const Tensor b = r.sequence({in.x, kIndex, in.U, in.b, zero}, kSentences, false);
    EXPECT_TRUE(std::equal(a.values<float>().begin(), a.values<float>().end(), b.values<float>().begin()))
        << r.name;
  }
}

TEST(Recurrence, OperandsThatDoNotFitAreNamed) {
  for (const Recurrence& r : recurrences()) {
    const Operands in = random_operands(r, 3, DType::f64);
    const auto fails = [&](const RecurrenceInputs& inputs) {
      EXPECT_THROW(r.sequence(inputs, kSentences, false), ShapeError) << r.name;
    };
    fails({random({4, r.gates * 3 + 1}, 1, DType::f64), kIndex, in.U, in.b});
    fails({in.x, kIndex, random({r.gates * 3 + 1, 3}, 2, DType::f64), in.b});
    fails({in.x, kIndex, in.U, {}});
    fails({in.x, std::vector<int32_t>{0, 1}, in.U, in.b});
    fails({in.x, std::vector<int32_t>{0, 1, 2, 4, 1, 0}, in.U, in.b});
    fails({in.x, std::vector<int32_t>{0, 1, 2, -1, 1, 0}, in.U, in.b});
    fails({in.x, kIndex, in.U, in.b, random({3, r.states * 3}, 4, DType::f64)});
  }
}

}  // namespace
}  // namespace regard::autograd
