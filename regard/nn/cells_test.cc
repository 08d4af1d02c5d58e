// The cells against the independent float64 script tests/golden/cells.py, and what they promise.

#include "regard/nn/cells.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "regard/autograd/operations.h"
#include "regard/autograd/tape.h"
#include "regard/base/file.h"
#include "regard/base/random.h"
#include "regard/nn/unrolled.h"
#include "tests/support/leaf_gradient.h"

namespace regard::nn {
namespace {

using autograd::add;
using autograd::linear;
using autograd::multiply;
using autograd::Ragged;
using autograd::Tape;

std::vector<int32_t> range(int64_t n) {
  std::vector<int32_t> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(static_cast<int32_t>(i));
  return all;
}

Tensor random(Shape shape, uint64_t stream, DType dtype, double deviation = 0.5) {
  Tensor x = Tensor::empty(std::move(shape), DType::f64);
  RandomStream numbers(17, stream);
  for (double& v : x.values<double>()) v = deviation * numbers.normal();
  return x.to(dtype);
}

Cell random_cell(CellKind kind, int64_t N, DType dtype, double deviation = 0.5) {
  const int64_t g = gates(kind);
  return {kind, random({g * N, N}, 1, dtype, deviation),
          has_state_bias(kind) ? random({g * N}, 2, dtype) : Tensor()};
}

CellState random_state(CellKind kind, int64_t R, int64_t N, DType dtype) {
  return {random({R, N}, 3, dtype), has_memory(kind) ? random({R, N}, 4, dtype) : Tensor()};
}

template <class T>
void expect_near(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  for (int64_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a.data<T>()[i], b.data<T>()[i], tolerance) << what << ", element " << i;
}

// --- golden values

/// The two uses of the script's docstring, and what they give, in its order.
struct GoldenRun {
  std::vector<Tensor> parameters, outputs;
  Tensor loss;
};

GoldenRun golden_run(CellKind kind, bool reverse, const boost::json::object& file,
                     const boost::json::array& parameters, Tape& tape) {
  GoldenRun it;
  for (const auto& entry : parameters) {
    Tensor x = Tensor::empty(boost::json::value_to<Shape>(entry.at("shape")), DType::f64);
    double i = 0;
    for (double& v : x.values<double>())
      v = 0.8 * std::sin(1 + 0.7 * i++ + 1.3 * static_cast<double>(it.parameters.size()));
    tape.watch(x);
    it.parameters.push_back(x);
  }
  size_t next = 0;
  const auto take = [&](bool present = true) { return present ? it.parameters[next++] : Tensor(); };
  const bool biased = has_state_bias(kind);
  const Tensor x = take();
  const Tensor U1 = take(), b1 = take(biased), V = take(), U2 = take(), b2 = take(biased);
  Ragged sentences;
  for (const auto& length : file.at("lengths").as_array()) sentences.push_back(length.as_int64());
  const auto index = boost::json::value_to<std::vector<int32_t>>(file.at("index"));

  const Tape::Recording recording(tape);
  const Sequence first = run({kind, U1, b1}, x, index, sentences, reverse);
  const Sequence second =
      run({kind, U2, b2}, linear(first.h, V), range(sentences.total()), sentences, reverse, first.last);
  it.outputs = {first.h, second.h, first.last.h, second.last.h};
  if (has_memory(kind)) it.outputs.insert(it.outputs.end(), {first.last.c, second.last.c});
  for (size_t q = 0; q < it.outputs.size(); ++q) {
    Tensor weights = Tensor::empty(it.outputs[q].shape(), DType::f64);
    double i = 0;
    for (double& w : weights.values<double>()) w = std::cos(0.3 + 0.9 * i++ + 1.7 * static_cast<double>(q));
    const Tensor part = autograd::sum(multiply(it.outputs[q], weights));
    it.loss = it.loss.defined() ? add(it.loss, part) : part;
  }
  tape.backward(it.loss);
  return it;
}

void expect_golden(const GoldenRun& it, const Tape& tape, const boost::json::object& expected) {
  EXPECT_NEAR(it.loss.data<double>()[0], expected.at("loss").as_double(), 1e-11);
  const auto& outputs = expected.at("outputs").as_array();
  ASSERT_EQ(outputs.size(), it.outputs.size());
  for (size_t q = 0; q < outputs.size(); ++q) {
    const auto values = boost::json::value_to<std::vector<double>>(outputs[q].at("values"));
    expect_near<double>(it.outputs[q], Tensor::from<double>(it.outputs[q].shape(), std::span(values)), 1e-11,
                        std::string(outputs[q].at("name").as_string()));
  }
  const auto& parameters = expected.at("parameters").as_array();
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto& g = parameters[p].at("gradient").as_object();
    double squares = 0, dot = 0, i = 1;
    for (const double x : leaf_gradient(tape, it.parameters[p]).values<double>()) {
      squares += x * x;
      dot += x * std::sin(i++);
    }
    EXPECT_GT(squares, 0) << parameters[p].at("name") << " receives no gradient";
    EXPECT_NEAR(std::sqrt(squares), g.at("norm").as_double(), 1e-11) << parameters[p].at("name");
    EXPECT_NEAR(dot, g.at("dot").as_double(), 1e-11) << parameters[p].at("name");
  }
}

TEST(CellsGolden, StatesLossAndEveryGradient) {
  const auto file =
      boost::json::parse(read_file(std::string(REGARD_SOURCE_DIR) + "/tests/golden/cells.json")).as_object();
  ASSERT_EQ(file.at("kinds").as_object().size(), cell_kinds().size());
  for (const CellKind kind : cell_kinds())
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(std::string(cell_name(kind)) + (reverse ? ", reverse" : ", forward"));
      const auto& expected =
          file.at("kinds").at(cell_name(kind)).at(reverse ? "reverse" : "forward").as_object();
      Tape tape;
      const GoldenRun it = golden_run(kind, reverse, file, expected.at("parameters").as_array(), tape);
      expect_golden(it, tape, expected);
    }
}

// --- run equals its steps

/// run() as `step`, sentence by sentence.
Sequence stepwise(const Cell& cell, const Tensor& x, std::span<const int32_t> index, const Ragged& sentences,
                  bool reverse, const CellState& initial) {
  std::vector<Tensor> h(static_cast<size_t>(sentences.total())), last_h, last_c;
  for (int64_t b = 0; b < sentences.count(); ++b) {
    const std::vector<int32_t> row{static_cast<int32_t>(b)};
    CellState state{autograd::rows(initial.h, row),
                    initial.c.defined() ? autograd::rows(initial.c, row) : Tensor()};
    for (int64_t k = 0; k < sentences.length(b); ++k) {
      const auto position = static_cast<size_t>(sentences.position(b, k, reverse));
      state = step(cell, autograd::rows(x, std::vector{index[position]}), state);
      h[position] = state.h;
    }
    last_h.push_back(state.h);
    last_c.push_back(state.c);
  }
  return {autograd::concat_rows(h),
          {autograd::concat_rows(last_h), initial.c.defined() ? autograd::concat_rows(last_c) : Tensor()}};
}

/// A scalar of everything that a sequence gives.
Tensor weighted(const Sequence& s) {
  const auto part = [](const Tensor& t, uint64_t stream) {
    return autograd::sum(multiply(t, random(t.shape(), stream, t.dtype())));
  };
  const Tensor total = add(part(s.h, 7), part(s.last.h, 8));
  return s.last.c.defined() ? add(total, part(s.last.c, 9)) : total;
}

TEST(Cells, RunEqualsItsStepsAndSoDoGradients) {
  const Ragged sentences{{0, 2, 2, 7, 8}};
  const std::vector<int32_t> index{0, 1, 2, 1, 0, 3, 3, 1};
  for (const CellKind kind : cell_kinds())
    for (const bool reverse : {false, true}) {
      const std::string name(cell_name(kind));
      const int64_t N = 4;
      const Cell cell = random_cell(kind, N, DType::f64);
      const Tensor x = random({4, gates(kind) * N}, 5, DType::f64);
      const CellState initial = random_state(kind, sentences.count(), N, DType::f64);
      std::vector<Tensor> leaves{x, cell.U, initial.h};
      if (cell.b_hh.defined()) leaves.push_back(cell.b_hh);
      if (initial.c.defined()) leaves.push_back(initial.c);
      const auto both = [&](auto compute, Tape& tape) {
        for (const Tensor& leaf : leaves) tape.watch(leaf);
        const Tape::Recording recording(tape);
        const Sequence result = compute();
        tape.backward(weighted(result));
        return result;
      };
      Tape tape, tape_of_steps;
      const Sequence whole = both([&] { return run(cell, x, index, sentences, reverse, initial); }, tape);
      const Sequence steps =
          both([&] { return stepwise(cell, x, index, sentences, reverse, initial); }, tape_of_steps);
      expect_near<double>(whole.h, steps.h, 1e-12, name + ", h");
      expect_near<double>(whole.last.h, steps.last.h, 1e-12, name + ", last h");
      if (has_memory(kind)) expect_near<double>(whole.last.c, steps.last.c, 1e-12, name + ", last c");
      for (size_t i = 0; i < leaves.size(); ++i)
        expect_near<double>(leaf_gradient(tape, leaves[i]), leaf_gradient(tape_of_steps, leaves[i]), 1e-12,
                            name + ", gradient of leaf " + std::to_string(i));
    }
}

TEST(Cells, FirstStepByHand) {
  const Tensor b = Tensor::zeros({4}, DType::f64), h = Tensor::from<double>({1, 1}, {3.0});
  const auto U = [](int64_t g) { return Tensor::zeros({g, 1}, DType::f64); };
  const auto x = [](std::initializer_list<double> v) {
    return Tensor::from<double>({1, static_cast<int64_t>(v.size())}, v);
  };
  const auto bias = [](int64_t g) { return Tensor::zeros({g}, DType::f64); };
  const double t = std::tanh(1.0), quarter = 1 / (1 + std::exp(std::log(3.0)));  // z = 1/4
  const auto value = [](const CellState& s) { return s.h.data<double>()[0]; };
  EXPECT_NEAR(value(step({CellKind::elman, U(1), bias(1)}, x({1}), {h, {}})), t, 1e-15);
  const double z = -std::log(3.0);
  EXPECT_NEAR(value(step({CellKind::gru, U(3), bias(3)}, x({0, z, 1}), {h, {}})),
              (1 - quarter) * t + quarter * 3, 1e-14);
  EXPECT_NEAR(value(step({CellKind::gru_2014, U(3), {}}, x({0, z, 1}), {h, {}})),
              quarter * 3 + (1 - quarter) * t, 1e-14);
  EXPECT_NEAR(value(step({CellKind::gru_2015, U(3), {}}, x({0, z, 1}), {h, {}})),
              (1 - quarter) * 3 + quarter * t, 1e-14);
  const CellState lstm = step({CellKind::lstm, U(4), b}, x({0, z, 1, 0}), {h, h});
  EXPECT_NEAR(lstm.c.data<double>()[0], quarter * 3 + t / 2, 1e-14);
  EXPECT_NEAR(value(lstm), std::tanh(quarter * 3 + t / 2) / 2, 1e-14);
}

// --- promises

/// Forward states and the gradients of x and U of one sentence (or batch), f32.
struct Bits {
  Tensor h, last, dx, dU;
};
Bits bits(const Cell& cell, const Tensor& x, const Ragged& sentences, bool reverse) {
  Tape tape;
  tape.watch(x);
  tape.watch(cell.U);
  const Tape::Recording recording(tape);
  const Sequence s = run(cell, x, range(x.rows()), sentences, reverse);
  tape.backward(autograd::sum(multiply(s.h, s.h)));
  return {s.h, s.last.h, leaf_gradient(tape, x), leaf_gradient(tape, cell.U)};
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::equal(a.values<float>().begin(), a.values<float>().end(), b.values<float>().begin());
}

TEST(Cells, ASentenceHasTheSameBitsAloneAndInABatch) {
  const Ragged batch{{0, 5, 5, 6, 18, 25, 25}};
  for (const CellKind kind : cell_kinds())
    for (const bool reverse : {false, true}) {
      const int64_t N = 19;
      const Cell cell = random_cell(kind, N, DType::f32);
      const Tensor x = random({batch.total(), gates(kind) * N}, 5, DType::f32);
      const Bits together = bits(cell, x, batch, reverse);
      for (int64_t b = 0; b < batch.count(); ++b) {
        const int64_t begin = batch.begin(b), end = begin + batch.length(b);
        if (begin == end) continue;
        const Bits alone = bits(cell, x.row_range(begin, end), Ragged{{0, end - begin}}, reverse);
        EXPECT_TRUE(same_bits(alone.h, together.h.row_range(begin, end))) << cell_name(kind) << b;
        EXPECT_TRUE(same_bits(alone.last, together.last.row_range(b, b + 1))) << cell_name(kind) << b;
        EXPECT_TRUE(same_bits(alone.dx, together.dx.row_range(begin, end))) << cell_name(kind) << b;
      }
    }
}

TEST(Cells, RecordingDoesNotChangeTheBits) {
  const Ragged batch{{0, 3, 7}};
  for (const CellKind kind : cell_kinds()) {
    const Cell cell = random_cell(kind, 5, DType::f32);
    const Tensor x = random({7, gates(kind) * 5}, 5, DType::f32);
    EXPECT_TRUE(same_bits(bits(cell, x, batch, false).h, run(cell, x, range(7), batch, false).h))
        << cell_name(kind);
  }
}

TEST(CellsThread, SharedWeightsGiveEveryThreadTheSameBits) {
  const Ragged batch{{0, 5, 5, 6, 18}};
  for (const CellKind kind : cell_kinds()) {
    const Cell cell = random_cell(kind, 16, DType::f32);
    const Tensor x = random({batch.total(), gates(kind) * 16}, 5, DType::f32);
    const Bits expected = bits(cell, x, batch, true);
    std::vector<Bits> results(4);
    std::vector<std::thread> threads;
    for (Bits& result : results) threads.emplace_back([&] { result = bits(cell, x, batch, true); });
    for (std::thread& thread : threads) thread.join();
    for (const Bits& result : results) {
      EXPECT_TRUE(same_bits(result.h, expected.h)) << cell_name(kind);
      EXPECT_TRUE(same_bits(result.dx, expected.dx)) << cell_name(kind);
      EXPECT_TRUE(same_bits(result.dU, expected.dU)) << cell_name(kind);
    }
  }
}

TEST(Cells, AThousandStepsStayFinite) {
  const Ragged batch{{0, 1000, 1003}};
  for (const CellKind kind : cell_kinds())
    for (const float size : {1.f, 1e4f}) {  // the second saturates every gate
      // Weights beyond what keeps a linear recurrence bounded; nothing else bounds relu's.
      const Cell cell = random_cell(kind, 8, DType::f32, kind == CellKind::elman_relu ? 0.1 : 1.0);
      const Tensor x = random({batch.total(), gates(kind) * 8}, 5, DType::f32, size);
      const Bits it = bits(cell, x, batch, false);
      for (const Tensor& t : {it.h, it.last, it.dx, it.dU})
        for (const float v : t.values<float>()) ASSERT_TRUE(std::isfinite(v)) << cell_name(kind) << size;
    }
}

TEST(Cells, NoSentencesAndOnlyEmptyOnes) {
  for (const CellKind kind : cell_kinds()) {
    const Cell cell = random_cell(kind, 3, DType::f64);
    const Tensor x = random({2, gates(kind) * 3}, 5, DType::f64);
    EXPECT_EQ(run(cell, x, {}, Ragged{}, false).h.shape(), (Shape{0, 3}));
    EXPECT_EQ(run(cell, x, {}, Ragged{}, false).last.h.shape(), (Shape{0, 3}));
    const CellState initial = random_state(kind, 2, 3, DType::f64);
    const Sequence s = run(cell, x, {}, Ragged{{0, 0, 0}}, true, initial);
    EXPECT_EQ(s.h.shape(), (Shape{0, 3}));
    expect_near<double>(s.last.h, initial.h, 0, "an empty sentence stays where it began");
    if (has_memory(kind)) expect_near<double>(s.last.c, initial.c, 0, "and so does its c");
    expect_near<double>(run(cell, x, {}, Ragged{{0, 0, 0}}, true).last.h,
                        zero_state(kind, 2, 3, DType::f64).h, 0, "or at zero");
  }
}

TEST(Cells, Names) {
  for (const CellKind kind : cell_kinds()) EXPECT_EQ(cell_from_name(cell_name(kind)), kind);
  EXPECT_EQ(cell_from_name("gru-2015"), CellKind::gru_2015);
  try {
    cell_from_name("GRU");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(),
                 "unknown cell \"GRU\", expected one of elman, elman-relu, lstm, gru, gru-2014, gru-2015");
  }
}

TEST(Cells, OperandsThatDoNotFitAreNamed) {
  const Ragged one{{0, 1}};
  for (const CellKind kind : cell_kinds()) {
    const Cell cell = random_cell(kind, 3, DType::f64);
    const int64_t g = gates(kind);
    const Tensor x = random({2, g * 3}, 5, DType::f64);
    const std::vector<int32_t> index{1};
    const CellState zero = zero_state(kind, 1, 3, DType::f64);
    EXPECT_NO_THROW(run(cell, x, index, one, false, zero));
    EXPECT_THROW(run(cell, x, std::vector<int32_t>{2}, one, false), ShapeError) << "no such row";
    EXPECT_THROW(run(cell, x, std::vector<int32_t>{-1}, one, false), ShapeError) << "no such row";
    EXPECT_THROW(run(cell, x, std::vector<int32_t>{0, 1}, one, false), ShapeError) << "index too long";
    EXPECT_THROW(run(cell, random({2, g * 3 + 1}, 5, DType::f64), index, one, false), ShapeError);
    EXPECT_THROW(run(cell, x, index, one, false, zero_state(kind, 2, 3, DType::f64)), ShapeError);
    EXPECT_THROW(run(cell, x, index, one, false, zero_state(kind, 1, 4, DType::f64)), ShapeError);
    const Cell wrong{kind, cell.U, has_state_bias(kind) ? Tensor() : random({g * 3}, 2, DType::f64)};
    EXPECT_THROW(run(wrong, x, index, one, false), ShapeError);
    EXPECT_THROW(step(wrong, x.row_range(0, 1), zero), ShapeError);
    EXPECT_THROW(step({kind, random({g * 3, 4}, 1, DType::f64), cell.b_hh}, x.row_range(0, 1), zero),
                 ShapeError);
  }
}

}  // namespace
}  // namespace regard::nn
