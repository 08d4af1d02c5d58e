#include <cstring>

#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/sequences.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/rows.h"

namespace regard::autograd {
namespace {

constexpr int64_t kChunk = 512;  // rows of logits that exist at a time

void contribute_scaled(const std::shared_ptr<Node>& node, const Tensor& stored, double factor) {
  if (!node) return;
  node->contribute([&](const Tensor& g, bool more) {
    dispatch(g.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if (!more && factor == 1)
        std::memcpy(g.bytes(), stored.bytes(), static_cast<size_t>(g.byte_size()));
      else if (!more)
        simd::scale(static_cast<T>(factor), stored.data<T>(), g.data<T>(), g.size());
      else
        simd::axpy(static_cast<T>(factor), stored.data<T>(), g.data<T>(), g.size());
    });
  });
}

}  // namespace

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
    const bool wanted = nx || nW || nb;
    const Tensor dx = wanted ? Tensor::empty({R, K}, x.dtype()) : Tensor();
    const Tensor dW = wanted ? Tensor::empty({V, K}, x.dtype()) : Tensor();
    const Tensor db = Tensor::zeros({V}, x.dtype());
    const gemm::Packed<T> packed(W.as_matrix<T>().transposed());
    gemm::Packed<T> packed_back;
    if (wanted) packed_back.pack(W.as_matrix<T>());
    const int64_t stride =
        (V + 31) / 32 * 32 + 16;  // an odd number of cache lines: rows fall into different sets
    const Tensor logits = Tensor::empty({std::min(R, kChunk), stride}, x.dtype());
    double loss = 0;
    for (int64_t begin = 0; begin < R; begin += kChunk) {
      const int64_t end = std::min(R, begin + kChunk);
      const auto rows = x.as_matrix<T>().row_range(begin, end);
      const auto l = logits.as_matrix<T>().row_range(0, end - begin).column_range(0, V);
      gemm::multiply(rows, packed, l, {.bias = b.data<T>()});
      for (int64_t r = begin; r < end; ++r)
        loss += simd::cross_entropy(l.row(r - begin), V, targets[static_cast<size_t>(r)], smoothing,
                                    static_cast<T>(scale), db.data<T>());
      if (!wanted) continue;
      gemm::multiply(l, packed_back, dx.as_matrix<T>().row_range(begin, end));
      gemm::multiply(l.transposed(), rows, dW.as_matrix<T>(), {.accumulate = begin > 0});
    }
    Tensor result = Tensor::full({1}, loss * scale, x.dtype());
    if (!wanted) return result;
    return record(kOutputLoss, result, [=](const Tensor& d) {
      const double factor = static_cast<double>(d.data<T>()[0]);
      contribute_scaled(nx, dx, factor);
      contribute_scaled(nW, dW, factor);
      contribute_scaled(nb, db, factor);
    });
  });
}

}  // namespace regard::autograd
