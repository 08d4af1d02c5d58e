#include <cstring>

#include "regard/autograd/contributions.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"

namespace regard::autograd {

const Operation kSumRows("sum_rows", [] {
  return std::vector{sample("ragged, one empty", {{6, 3}}, [](auto in) {
    return sum_rows(in[0], {{0, 1, 4, 4, 6}});
  })};
});

Tensor sum_rows(const Tensor& x, const Ragged& sentences) {
  if (x.rows() != sentences.total())
    throw ShapeError("[sum_rows] x " + shape_text(x.shape()) + " for " + std::to_string(sentences.total()) +
                     " positions");
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t N = x.dim(-1);
    const Tensor sums = Tensor::zeros({sentences.count(), N}, x.dtype());
    for (int64_t b = 0; b < sentences.count(); ++b)
      simd::add_column_sums(x.data<T>() + sentences.begin(b) * N, sentences.length(b), N,
                            sums.as_matrix<T>().row(b), N);
    const auto nx = input(x);
    if (!nx) return sums;
    return record(kSumRows, sums, [nx, sentences, N](const Tensor& d) {
      const Tensor dx = Tensor::empty({sentences.total(), N}, d.dtype());
      for (int64_t b = 0; b < sentences.count(); ++b)
        for (int64_t i = sentences.begin(b); i < sentences.begin(b) + sentences.length(b); ++i)
          std::memcpy(dx.as_matrix<T>().row(i), d.as_matrix<T>().row(b), static_cast<size_t>(N) * sizeof(T));
      add_to<T>(nx, dx);
    });
  });
}

}  // namespace regard::autograd
