#pragma once
// Parameters by name, and how they begin.

#include <cmath>
#include <string>
#include <vector>

#include "regard/base/random.h"
#include "regard/tensor/tensor.h"

namespace regard::nn {

/// One trained tensor. The list of a model's parameters serves optimiser, files and tests; its order is part
/// of the format.
struct Parameter {
  std::string name;
  Tensor value;
};

/// Uniform in [-bound, bound] from (seed, stream): independent of the order in which parameters are made.
inline Tensor uniform(Shape shape, double bound, uint64_t seed, uint64_t stream) {
  Tensor t = Tensor::empty(std::move(shape));
  RandomStream random(seed, stream);
  for (float& x : t.values<float>()) x = static_cast<float>(bound * (2 * random.uniform() - 1));
  return t;
}

/// Normal with the given deviation, likewise.
inline Tensor normal(Shape shape, double deviation, uint64_t seed, uint64_t stream) {
  Tensor t = Tensor::empty(std::move(shape));
  RandomStream random(seed, stream);
  for (float& x : t.values<float>()) x = static_cast<float>(deviation * random.normal());
  return t;
}

}  // namespace regard::nn
