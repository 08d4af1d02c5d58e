#include "regard/autograd/output_rows.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/sequences.h"

namespace regard::autograd {

const Operation kOutputLoss("output_loss", [] {
  return std::vector{sample("smoothing 0.1", {{4, 3}, {5, 3}, {5}}, [](auto in) {
    return output_loss(in[0], in[1], in[2], std::vector<int32_t>{0, 4, 2, 2}, 0.1, 0.5);
  })};
});

Tensor output_loss(const Tensor& x, const Tensor& W, const Tensor& b, std::span<const int32_t> targets,
                   double smoothing, double scale) {
  const int64_t R = x.rows(), K = x.dim(-1), V = W.dim(0);
  if (W.dim(1) != K || b.size() != V || static_cast<int64_t>(targets.size()) != R)
    throw ShapeError("[output_loss] x " + shape_text(x.shape()) + ", W " + shape_text(W.shape()) + ", b " +
                     shape_text(b.shape()) + ", " + std::to_string(targets.size()) + " targets");
  for (int32_t y : targets)
    if (y < 0 || y >= V)
      throw ShapeError("[output_loss] target " + std::to_string(y) + " of " + std::to_string(V));
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto nx = input(x), nW = input(W), nb = input(b);
    const OutputRows rows = output_rows<T>(x, W, b, nx || nW || nb, [&](int64_t r, T* logits, T* db) {
      return simd::cross_entropy(logits, V, targets[static_cast<size_t>(r)], smoothing, static_cast<T>(scale),
                                 db);
    });
    Tensor result = Tensor::full({1}, rows.loss * scale, x.dtype());
    if (!nx && !nW && !nb) return result;
    return record(kOutputLoss, result, [=](const Tensor& d) {
      const double factor = static_cast<double>(d.data<T>()[0]);
      contribute_scaled(nx, rows.dx, factor);
      contribute_scaled(nW, rows.dW, factor);
      contribute_scaled(nb, rows.db, factor);
    });
  });
}

}  // namespace regard::autograd
