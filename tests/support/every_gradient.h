#pragma once
// Every parameter of a model against numeric differentiation.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "regard/autograd/tape.h"
#include "regard/models/model.h"
#include "tests/support/leaf_gradient.h"

namespace regard::tests {

/// The gradient of the loss at each parameter's element with the largest, which is not 0. The model is in
/// f64.
inline void expect_every_gradient(const models::Model& model, const models::SentencePairs& pairs,
                                  const models::LossOptions& options) {
  const auto loss = [&] { return model.loss(pairs, options).data<double>()[0]; };
  autograd::Tape tape;
  for (const auto& p : model.parameters()) tape.watch(p.value);
  {
    const autograd::Tape::Recording recording(tape);
    tape.backward(model.loss(pairs, options));
  }
  for (const auto& p : model.parameters()) {
    const Tensor gradient = leaf_gradient(tape, p.value);
    int64_t largest = 0;
    for (int64_t i = 0; i < gradient.size(); ++i)
      if (std::abs(gradient.data<double>()[i]) > std::abs(gradient.data<double>()[largest])) largest = i;
    const double analytic = gradient.data<double>()[largest];
    EXPECT_GT(std::abs(analytic), 1e-9) << p.name << " receives no gradient";
    double& x = p.value.data<double>()[largest];
    const double kept = x, step = 1e-5;
    x = kept + step;
    const double above = loss();
    x = kept - step;
    const double below = loss();
    x = kept;
    EXPECT_NEAR(analytic, (above - below) / (2 * step), 1e-6 * std::max(1.0, std::abs(analytic))) << p.name;
  }
}

}  // namespace regard::tests
