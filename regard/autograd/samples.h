#pragma once
// Sample inputs for the gradient registry.

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "regard/autograd/sequences.h"
#include "regard/autograd/tape.h"
#include "regard/base/random.h"

namespace regard::autograd {

/// Inputs of the given shapes, f64, normal, from a fixed seed.
inline Operation::Sample sample(std::string name, std::initializer_list<Shape> shapes,
                                std::function<Tensor(std::span<const Tensor>)> compute) {
  Operation::Sample s{std::move(name), {}, std::move(compute)};
  RandomStream random(11, shapes.size());
  for (const Shape& shape : shapes) {
    Tensor x = Tensor::empty(shape, DType::f64);
    for (double& v : x.values<double>()) v = 0.7 * random.normal();
    s.inputs.push_back(std::move(x));
  }
  return s;
}

/// Samples of a fused recurrence with G gates and S blocks of state, N = 3: ragged sentences, one of them
/// empty, in both directions, from zero and from given states.
inline std::vector<Operation::Sample> recurrence_samples(
    int64_t G, int64_t S,
    const std::function<Tensor(const RecurrenceInputs&, const Ragged&, bool reverse)>& compute) {
  const int64_t N = 3;
  const std::vector<int32_t> index{0, 1, 2, 1, 0, 3};
  const Ragged sentences{{0, 1, 4, 4, 6}};
  std::vector<Operation::Sample> samples;
  for (const bool reverse : {false, true}) {
    const std::string direction = reverse ? "reverse" : "forward";
    samples.push_back(sample(direction, {{4, G * N}, {G * N, N}, {G * N}}, [=](std::span<const Tensor> in) {
      return compute({in[0], index, in[1], in[2]}, sentences, reverse);
    }));
    samples.push_back(sample(direction + ", from given states", {{4, G * N}, {G * N, N}, {G * N}, {4, S * N}},
                             [=](std::span<const Tensor> in) {
                               return compute({in[0], index, in[1], in[2], in[3]}, sentences, reverse);
                             }));
  }
  return samples;
}

}  // namespace regard::autograd
