#pragma once
// Parameters by name, and how they begin.

#include <cmath>
#include <functional>
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

/// How a parameter begins. Its numbers depend on (seed, stream) alone, not on the order in which parameters
/// are made.
class Initial {
 public:
  /// Uniform in [-bound, bound].
  static Initial uniform(double bound) { return {Kind::uniform, bound}; }
  /// Uniform in [-1/sqrt(n), 1/sqrt(n)]: a layer of n inputs.
  static Initial fan_in(int64_t n) { return uniform(1 / std::sqrt(static_cast<double>(n))); }
  /// Uniform with variance 2 / (inputs + outputs).  Glorot and Bengio 2010, equation 16.
  static Initial glorot(int64_t inputs, int64_t outputs) {
    return uniform(std::sqrt(6 / static_cast<double>(inputs + outputs)));
  }
  static Initial normal(double deviation) { return {Kind::normal, deviation}; }
  static Initial constant(double value) { return {Kind::constant, value}; }

  Tensor draw(const Shape& shape, uint64_t seed, uint64_t stream) const {
    if (kind_ == Kind::constant) return Tensor::full(shape, value_);
    Tensor t = Tensor::empty(shape);
    RandomStream random(seed, stream);
    for (float& x : t.values<float>())
      x = static_cast<float>(value_ * (kind_ == Kind::uniform ? 2 * random.uniform() - 1 : random.normal()));
    return t;
  }

 private:
  enum class Kind { uniform, normal, constant };
  Initial(Kind kind, double value) : kind_(kind), value_(value) {}
  Kind kind_;
  double value_;
};

/// Called with every parameter: name, tensor, shape, and how it begins.
using ParameterVisitor =
    std::function<void(const std::string& name, Tensor& tensor, const Shape& shape, const Initial&)>;

}  // namespace regard::nn
