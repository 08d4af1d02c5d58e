#include "regard/autograd/layers.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "regard/autograd/contributions.h"
#include "regard/autograd/operations.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/simd/layer_rows.h"

namespace regard::autograd {
namespace {

simd::DropoutRow dropout_row(const RowDropout& dropout, int64_t r) {
  return {dropout.keys[static_cast<size_t>(r)], static_cast<uint32_t>(dropout.rate * 0x1p32),
          1 / (1 - dropout.rate)};
}

/// Zero if nothing stands there yet.
template <class T>
T* accumulator(const Tensor& g, bool more) {
  if (!more) std::memset(g.bytes(), 0, static_cast<size_t>(g.byte_size()));
  return g.data<T>();
}

}  // namespace

const Operation kLayerNorm("layer_norm", [] {
  return std::vector{
      sample("rows of 5", {{3, 5}, {5}, {5}}, [](auto in) { return layer_norm(in[0], in[1], in[2]); })};
});

template <class T>
void layer_norm_backward(const Tensor& x, const Tensor& gain, std::span<const simd::RowMoments<T>> moments,
                         const std::shared_ptr<Node>& nx, const std::shared_ptr<Node>& ngain,
                         const std::shared_ptr<Node>& nbias, const Tensor& dy) {
  const int64_t N = x.dim(-1);
  const Tensor dgain = Tensor::zeros({N}, x.dtype()), dbias = Tensor::zeros({N}, x.dtype());
  const auto rows = x.as_matrix<T>(), d = dy.as_matrix<T>();
  const auto write = [&](const Tensor& dx) {
    const auto to = dx.as_matrix<T>();
    for (int64_t r = 0; r < rows.rows; ++r)
      simd::layer_norm_backward(rows.row(r), moments[static_cast<size_t>(r)], gain.data<T>(), d.row(r),
                                to.row(r), dgain.data<T>(), dbias.data<T>(), N);
  };
  if (nx && !nx->gradient.defined()) {
    nx->contribute([&](const Tensor& dx, bool) { write(dx); });
  } else {
    const Tensor dx = Tensor::empty(x.shape(), x.dtype());
    write(dx);
    add_to<T>(nx, dx);
  }
  add_to<T>(ngain, dgain);
  add_to<T>(nbias, dbias);
}

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
  const int64_t N = x.dim(-1);
  if (gain.shape() != Shape{N} || bias.shape() != Shape{N})
    throw ShapeError("[layer_norm] x " + shape_text(x.shape()) + ", gain " + shape_text(gain.shape()) +
                     ", bias " + shape_text(bias.shape()) + ", expected [R, N], [N], [N]");
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Tensor y = Tensor::empty(x.shape(), x.dtype());
    const auto rows = x.as_matrix<T>(), to = y.as_matrix<T>();
    std::vector<simd::RowMoments<T>> moments(static_cast<size_t>(rows.rows));
    for (int64_t r = 0; r < rows.rows; ++r)
      moments[static_cast<size_t>(r)] =
          simd::layer_norm(rows.row(r), gain.data<T>(), bias.data<T>(), epsilon, to.row(r), N);
    const auto nx = input(x), ngain = input(gain), nbias = input(bias);
    if (!nx && !ngain && !nbias) return y;
    return record(kLayerNorm, y, [=, moments = std::move(moments)](const Tensor& dy) {
      layer_norm_backward<T>(x, gain, moments, nx, ngain, nbias, dy);
    });
  });
}

const Operation kAddDropout("add_dropout", [] {
  return std::vector{sample("p = 0.3", {{3, 5}, {3, 5}}, [](auto in) {
    return add_dropout(in[0], in[1], {0.3, {7, 8, 9}});
  })};
});

Tensor add_dropout(const Tensor& a, const Tensor& x, const RowDropout& dropout) {
  if (dropout.rate == 0) return add(a, x);
  if (a.shape() != x.shape() || static_cast<int64_t>(dropout.keys.size()) != x.rows())
    throw ShapeError("[add_dropout] a " + shape_text(a.shape()) + ", x " + shape_text(x.shape()) + ", " +
                     std::to_string(dropout.keys.size()) + " keys");
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Tensor y = Tensor::empty(x.shape(), x.dtype());
    const auto from = x.as_matrix<T>(), first = a.as_matrix<T>(), to = y.as_matrix<T>();
    for (int64_t r = 0; r < to.rows; ++r)
      simd::add_dropout(first.row(r), from.row(r), to.row(r), to.columns, dropout_row(dropout, r));
    const auto na = input(a), nx = input(x);
    if (!na && !nx) return y;
    return record(kAddDropout, y, [na, nx, dropout](const Tensor& dy) {
      add_to<T>(na, dy);
      if (!nx) return;
      nx->contribute([&](const Tensor& g, bool more) {
        const auto d = dy.as_matrix<T>(), dx = g.as_matrix<T>();
        for (int64_t r = 0; r < d.rows; ++r)
          if (more)
            simd::add_dropout(dx.row(r), d.row(r), dx.row(r), d.columns, dropout_row(dropout, r));
          else
            simd::dropout(d.row(r), dx.row(r), d.columns, dropout_row(dropout, r));
      });
    });
  });
}

const Operation kSwish("swish", [] {
  return std::vector{sample("swish", {{3, 4}}, [](auto in) { return swish(in[0]); })};
});

Tensor swish(const Tensor& x) {
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Tensor y = Tensor::empty(x.shape(), x.dtype());
    simd::swish(x.data<T>(), y.data<T>(), x.size());
    const auto nx = input(x);
    if (!nx) return y;
    return record(kSwish, y, [nx, x](const Tensor& dy) {
      nx->contribute([&](const Tensor& g, bool more) {
        const Tensor dx = more ? Tensor::empty(g.shape(), g.dtype()) : g;
        simd::swish_backward(x.data<T>(), dy.data<T>(), dx.data<T>(), dy.size());
        if (more) simd::add(g.data<T>(), dx.data<T>(), g.data<T>(), g.size());
      });
    });
  });
}

const Operation kSwishLinear("swish_linear", [] {
  return std::vector{sample("W swish(x) + b", {{3, 4}, {2, 4}, {2}},
                            [](auto in) { return swish_linear(in[0], in[1], in[2]); })};
});

Tensor swish_linear(const Tensor& x, const Tensor& W, const Tensor& b) {
  const auto nx = input(x), nW = input(W), nb = input(b);
  if (!nx && !nW && !nb) return linear(swish(x), W, b);
  if (W.rank() != 2 || x.dim(-1) != W.dim(1) || b.size() != W.dim(0))
    throw ShapeError("[swish_linear] x " + shape_text(x.shape()) + ", W " + shape_text(W.shape()) + ", b " +
                     shape_text(b.shape()));
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto activated = [](const Tensor& h) {
      const Tensor s = Tensor::empty(h.shape(), h.dtype());
      simd::swish(h.data<T>(), s.data<T>(), h.size());
      return s;
    };
    const Tensor y = Tensor::empty({x.rows(), W.dim(0)}, x.dtype());
    gemm::multiply(activated(x).template as_matrix<T>(), W.as_matrix<T>().transposed(), y.as_matrix<T>(),
                   {.bias = b.data<T>()});
    return record(kSwishLinear, y, [=](const Tensor& dy) {
      const MatrixView<const T> d = dy.as_matrix<T>();
      const Tensor s = activated(x);
      add_product<T>(nW, d.transposed(), s.template as_matrix<T>());
      add_row_sum<T>(nb, d);
      if (!nx) return;
      gemm::multiply(d, MatrixView<const T>(W.as_matrix<T>()),
                     s.template as_matrix<T>());  // the gradient of s
      nx->contribute([&](const Tensor& g, bool more) {
        const Tensor dx = more ? Tensor::empty(g.shape(), g.dtype()) : g;
        simd::swish_backward(x.data<T>(), s.template data<T>(), dx.data<T>(), s.size());
        if (more) simd::add(g.data<T>(), dx.data<T>(), g.data<T>(), g.size());
      });
    });
  });
}

const Operation kScaledRows("scaled_rows", [] {
  return std::vector{sample("3 times rows 2 0 2", {{3, 4}}, [](auto in) {
    return scaled_rows(in[0], std::vector<int32_t>{2, 0, 2}, 3);
  })};
});

Tensor scaled_rows(const Tensor& table, std::span<const int32_t> ids, double factor) {
  const int64_t n = table.rows(), N = table.dim(-1), R = static_cast<int64_t>(ids.size());
  for (const int32_t id : ids)
    if (id < 0 || id >= n)
      throw ShapeError("[scaled_rows] row " + std::to_string(id) + " of " + shape_text(table.shape()));
  return dispatch(table.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Tensor y = Tensor::empty({R, N}, table.dtype());
    const auto from = table.as_matrix<T>(), to = y.as_matrix<T>();
    for (int64_t r = 0; r < R; ++r)
      simd::scale(static_cast<T>(factor), from.row(ids[static_cast<size_t>(r)]), to.row(r), N);
    const auto node = input(table);
    if (!node) return y;
    return record(kScaledRows, y,
                  [node, factor, kept = std::vector<int32_t>(ids.begin(), ids.end())](const Tensor& dy) {
                    if (node->leaf) {
                      const Tensor scaled = Tensor::empty(dy.shape(), dy.dtype());
                      simd::scale(static_cast<T>(factor), dy.data<T>(), scaled.data<T>(), dy.size());
                      node->sparse.push_back({kept, scaled});
                      return;
                    }
                    node->contribute([&](const Tensor& g, bool more) {
                      T* const sum = accumulator<T>(g, more);
                      const auto d = dy.as_matrix<T>();
                      for (int64_t r = 0; r < d.rows; ++r)
                        simd::axpy(static_cast<T>(factor), d.row(r),
                                   sum + kept[static_cast<size_t>(r)] * d.columns, d.columns);
                    });
                  });
  });
}

namespace {

/// cos and sin of position theta_i, [longest, D/2] each.
template <class T>
struct Angles {
  int64_t half;
  std::vector<T> cos, sin;

  Angles(std::span<const int32_t> positions, int64_t head_width) : half(head_width / 2) {
    const int64_t longest = positions.empty() ? 0 : 1 + *std::max_element(positions.begin(), positions.end());
    for (int64_t p = 0; p < longest; ++p)
      for (int64_t i = 0; i < half; ++i) {
        const double theta =
            std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_width));
        const double angle = static_cast<double>(p) * theta;
        cos.push_back(static_cast<T>(std::cos(angle)));
        sin.push_back(static_cast<T>(std::sin(angle)));
      }
  }
};

/// Turns the first `turned` columns of every row of x in place; direction -1 turns back.
template <class T>
void turn(MatrixView<T> x, std::span<const int32_t> positions, const Angles<T>& angles, int64_t turned,
          T direction) {
  const int64_t half = angles.half;
  for (int64_t r = 0; r < x.rows; ++r) {
    const T* const cos = angles.cos.data() + positions[static_cast<size_t>(r)] * half;
    const T* const sin = angles.sin.data() + positions[static_cast<size_t>(r)] * half;
    for (T* head = x.row(r); head < x.row(r) + turned; head += 2 * half)
      for (int64_t i = 0; i < half; ++i) {
        const T a = head[i], b = head[half + i], s = direction * sin[i];
        head[i] = a * cos[i] - b * s;
        head[half + i] = b * cos[i] + a * s;
      }
  }
}

}  // namespace

const Operation kRotary("rotary", [] {
  return std::vector{sample("two heads of 4 beside two numbers", {{3, 10}}, [](auto in) {
    return rotary(in[0], std::vector<int32_t>{0, 1, 5}, 4, 8);
  })};
});

Tensor rotary(const Tensor& x, std::span<const int32_t> positions, int64_t head_width, int64_t turned) {
  if (head_width < 2 || head_width % 2 || turned % head_width || turned > x.dim(-1) ||
      static_cast<int64_t>(positions.size()) != x.rows())
    throw ShapeError("[rotary] x " + shape_text(x.shape()) + ", " + std::to_string(positions.size()) +
                     " positions, " + std::to_string(turned) + " columns in heads of " +
                     std::to_string(head_width) + ", expected even heads");
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto angles = std::make_shared<const Angles<T>>(positions, head_width);
    const Tensor y = x.copy();
    turn<T>(y.as_matrix<T>(), positions, *angles, turned, 1);
    const auto nx = input(x);
    if (!nx) return y;
    return record(kRotary, y,
                  [nx, angles, turned,
                   kept = std::vector<int32_t>(positions.begin(), positions.end())](const Tensor& dy) {
                    const Tensor dx = dy.copy();
                    turn<T>(dx.as_matrix<T>(), kept, *angles, turned, -1);
                    add_to<T>(nx, dx);
                  });
  });
}

}  // namespace regard::autograd
