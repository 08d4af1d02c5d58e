#pragma once
// Sample inputs for the gradient registry.

#include <functional>
#include <initializer_list>
#include <string>

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

}  // namespace regard::autograd
