#include "regard/autograd/operations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "regard/autograd/frozen_weights.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/layer_rows.h"
#include "regard/simd/rows.h"

namespace regard::autograd {
namespace {

using NodePointer = std::shared_ptr<Node>;

void require(bool holds, const char* operation, const Tensor& a, const Tensor& b) {
  if (!holds)
    throw ShapeError(std::string("[") + operation + "] operands " + shape_text(a.shape()) + " and " +
                     shape_text(b.shape()) + " do not fit");
}

/// The gradient's matrix, prepared so that the caller may add to it.
template <class T, class Add>
void add_to(const NodePointer& node, Add&& add) {
  if (!node) return;
  node->contribute([&](const Tensor& g, bool more) {
    if (!more) std::memset(g.bytes(), 0, static_cast<size_t>(g.byte_size()));
    add(g.data<T>());
  });
}

/// y_i = f(x_i) whose derivative is a function of y: dx_i = dy_i d(y_i).
template <class Forward, class Derivative>
Tensor elementwise(const Operation& operation, const Tensor& x, Forward forward, Derivative derivative) {
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    forward(x.data<T>(), y.data<T>(), x.size());
    const NodePointer nx = input(x);
    if (!nx) return y;
    return record(operation, y, [nx, y, derivative](const Tensor& dy) {
      add_to<T>(nx, [&](T* g) {
        const T *py = y.data<T>(), *pd = dy.data<T>();
        for (int64_t i = 0; i < y.size(); ++i) g[i] += pd[i] * derivative(py[i]);
      });
    });
  });
}

template <class T>
void linear_backward(const Tensor& x, const Tensor& W, const NodePointer& nx, const NodePointer& nW,
                     const NodePointer& nb, const Tensor& dy) {
  const auto d = dy.as_matrix<T>();
  if (nx)
    nx->contribute([&](const Tensor& g, bool more) {
      gemm::multiply(d, W.as_matrix<T>(), g.as_matrix<T>(), {.accumulate = more});
    });
  if (nW)
    nW->contribute([&](const Tensor& g, bool more) {
      gemm::multiply(d.transposed(), x.as_matrix<T>(), g.as_matrix<T>(), {.accumulate = more});
    });
  add_to<T>(nb, [&](T* g) { simd::add_column_sums(d.data, d.rows, d.row_stride, g, d.columns); });
}

}  // namespace

const Operation kLinear("linear", [] {
  return std::vector{
      sample("x W' + b", {{3, 4}, {5, 4}, {5}}, [](auto in) { return linear(in[0], in[1], in[2]); })};
});
Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b) {
  require(x.rank() >= 1 && W.rank() == 2 && x.dim(-1) == W.dim(1), "linear", x, W);
  if (b.defined()) require(b.size() == W.dim(0), "linear", W, b);
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty({x.rows(), W.dim(0)}, x.dtype());
    const T* const bias = b.defined() ? b.data<T>() : nullptr;
    if (const auto* packed = FrozenWeights::packed_transpose<T>(W))
      gemm::multiply(x.as_matrix<T>(), *packed, y.as_matrix<T>(), {.bias = bias});
    else
      gemm::multiply(x.as_matrix<T>(), W.as_matrix<T>().transposed(), y.as_matrix<T>(), {.bias = bias});
    const NodePointer nx = input(x), nW = input(W), nb = input(b);
    if (!nx && !nW && !nb) return y;
    return record(kLinear, y, [=](const Tensor& dy) { linear_backward<T>(x, W, nx, nW, nb, dy); });
  });
}

const Operation kAdd("add", [] {
  return std::vector{sample("a + b", {{3, 4}, {3, 4}}, [](auto in) { return add(in[0], in[1]); })};
});
Tensor add(const Tensor& a, const Tensor& b) {
  require(a.shape() == b.shape(), "add", a, b);
  return dispatch(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty(a.shape(), a.dtype());
    simd::add(a.data<T>(), b.data<T>(), y.data<T>(), a.size());
    const NodePointer na = input(a), nb = input(b);
    if (!na && !nb) return y;
    return record(kAdd, y, [=](const Tensor& dy) {
      for (const auto& n : {na, nb}) add_to<T>(n, [&](T* g) { simd::add(g, dy.data<T>(), g, dy.size()); });
    });
  });
}

const Operation kAddBias("add_bias", [] {
  return std::vector{sample("x + b", {{3, 4}, {4}}, [](auto in) { return add_bias(in[0], in[1]); })};
});
Tensor add_bias(const Tensor& x, const Tensor& b) {
  require(x.dim(-1) == b.size(), "add_bias", x, b);
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    const auto mx = x.as_matrix<T>(), my = y.as_matrix<T>();
    for (int64_t r = 0; r < mx.rows; ++r) simd::add(mx.row(r), b.data<T>(), my.row(r), mx.columns);
    const NodePointer nx = input(x), nb = input(b);
    if (!nx && !nb) return y;
    return record(kAddBias, y, [=](const Tensor& dy) {
      const auto d = dy.as_matrix<T>();
      add_to<T>(nx, [&](T* g) { simd::add(g, d.data, g, dy.size()); });
      add_to<T>(nb, [&](T* g) { simd::add_column_sums(d.data, d.rows, d.row_stride, g, d.columns); });
    });
  });
}

const Operation kMultiply("multiply", [] {
  return std::vector{sample("a * b", {{3, 4}, {3, 4}}, [](auto in) { return multiply(in[0], in[1]); })};
});
Tensor multiply(const Tensor& a, const Tensor& b) {
  require(a.shape() == b.shape(), "multiply", a, b);
  return dispatch(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty(a.shape(), a.dtype());
    simd::multiply(a.data<T>(), b.data<T>(), y.data<T>(), a.size());
    const NodePointer na = input(a), nb = input(b);
    if (!na && !nb) return y;
    return record(kMultiply, y, [=](const Tensor& dy) {
      add_to<T>(na, [&](T* g) { simd::multiply_add(dy.data<T>(), b.data<T>(), g, dy.size()); });
      add_to<T>(nb, [&](T* g) { simd::multiply_add(dy.data<T>(), a.data<T>(), g, dy.size()); });
    });
  });
}

const Operation kMix("mix", [] {
  return std::vector{
      sample("(1-z) a + z b", {{3, 4}, {3, 4}, {3, 4}}, [](auto in) { return mix(in[0], in[1], in[2]); })};
});
Tensor mix(const Tensor& z, const Tensor& a, const Tensor& b) {
  require(z.shape() == a.shape(), "mix", z, a);
  require(z.shape() == b.shape(), "mix", z, b);
  return dispatch(z.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty(z.shape(), z.dtype());
    const T *pz = z.data<T>(), *pa = a.data<T>(), *pb = b.data<T>();
    std::transform(pz, pz + z.size(), y.data<T>(), [&](const T& v) {
      const auto i = &v - pz;
      return (1 - v) * pa[i] + v * pb[i];
    });
    const NodePointer nz = input(z), na = input(a), nb = input(b);
    if (!nz && !na && !nb) return y;
    return record(kMix, y, [=](const Tensor& dy) {
      const T *d = dy.data<T>(), *qz = z.data<T>(), *qa = a.data<T>(), *qb = b.data<T>();
      const int64_t n = dy.size();
      add_to<T>(nz, [&](T* g) {
        for (int64_t i = 0; i < n; ++i) g[i] += d[i] * (qb[i] - qa[i]);
      });
      add_to<T>(na, [&](T* g) {
        for (int64_t i = 0; i < n; ++i) g[i] += d[i] * (1 - qz[i]);
      });
      add_to<T>(nb, [&](T* g) {
        for (int64_t i = 0; i < n; ++i) g[i] += d[i] * qz[i];
      });
    });
  });
}

const Operation kTanh("tanh", [] {
  return std::vector{sample("tanh", {{3, 4}}, [](auto in) { return tanh(in[0]); })};
});
Tensor tanh(const Tensor& x) {
  return elementwise(
      kTanh, x, [](const auto* p, auto* q, int64_t n) { simd::tanh(p, q, n); },
      [](auto y) { return 1 - y * y; });
}

const Operation kSigmoid("sigmoid", [] {
  return std::vector{sample("sigmoid", {{3, 4}}, [](auto in) { return sigmoid(in[0]); })};
});
Tensor sigmoid(const Tensor& x) {
  return elementwise(
      kSigmoid, x, [](const auto* p, auto* q, int64_t n) { simd::sigmoid(p, q, n); },
      [](auto y) { return y * (1 - y); });
}

const Operation kRelu("relu", [] {
  return std::vector{sample("relu", {{3, 4}}, [](auto in) { return relu(in[0]); })};
});
Tensor relu(const Tensor& x) {
  return elementwise(
      kRelu, x, [](const auto* p, auto* q, int64_t n) { simd::relu(p, q, n); },
      [](auto y) { return y > 0 ? 1 : 0; });
}

const Operation kColumns("columns", [] {
  return std::vector{sample("columns 1..3", {{3, 4}}, [](auto in) { return columns(in[0], 1, 3); })};
});
Tensor columns(const Tensor& x, int64_t begin, int64_t end) {
  if (begin < 0 || begin > end || end > x.dim(-1))
    throw ShapeError("[columns] " + std::to_string(begin) + ".." + std::to_string(end) + " of " +
                     shape_text(x.shape()));
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty({x.rows(), end - begin}, x.dtype());
    const auto from = x.as_matrix<T>().column_range(begin, end), to = y.as_matrix<T>();
    for (int64_t r = 0; r < to.rows; ++r) std::copy_n(from.row(r), to.columns, to.row(r));
    const NodePointer nx = input(x);
    if (!nx) return y;
    return record(kColumns, y, [=](const Tensor& dy) {
      add_to<T>(nx, [&](T* g) {
        const auto d = dy.as_matrix<T>();
        const int64_t width = nx->shape.back();
        for (int64_t r = 0; r < d.rows; ++r)
          simd::add(g + r * width + begin, d.row(r), g + r * width + begin, d.columns);
      });
    });
  });
}

const Operation kConcatColumns("concat_columns", [] {
  return std::vector{sample("[a | b]", {{3, 4}, {3, 2}}, [](auto in) { return concat_columns(in); })};
});
Tensor concat_columns(std::span<const Tensor> parts) {
  int64_t width = 0;
  for (const auto& part : parts) {
    require(part.rows() == parts[0].rows(), "concat_columns", parts[0], part);
    width += part.dim(-1);
  }
  return dispatch(parts[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty({parts[0].rows(), width}, parts[0].dtype());
    std::vector<NodePointer> nodes;
    std::vector<int64_t> starts;
    int64_t start = 0;
    for (const auto& part : parts) {
      const auto from = part.as_matrix<T>(), to = y.as_matrix<T>().column_range(start, start + part.dim(-1));
      for (int64_t r = 0; r < from.rows; ++r) std::copy_n(from.row(r), from.columns, to.row(r));
      nodes.push_back(input(part));
      starts.push_back(start);
      start += part.dim(-1);
    }
    if (std::none_of(nodes.begin(), nodes.end(), [](const auto& n) { return n != nullptr; })) return y;
    return record(kConcatColumns, y, [nodes, starts](const Tensor& dy) {
      for (size_t p = 0; p < nodes.size(); ++p)
        add_to<T>(nodes[p], [&](T* g) {
          const int64_t w = nodes[p]->shape.back();
          const auto d = dy.as_matrix<T>();
          for (int64_t r = 0; r < d.rows; ++r) simd::add(g + r * w, d.row(r) + starts[p], g + r * w, w);
        });
    });
  });
}

const Operation kConcatRows("concat_rows", [] {
  return std::vector{sample("a over b", {{3, 4}, {2, 4}}, [](auto in) { return concat_rows(in); })};
});
Tensor concat_rows(std::span<const Tensor> parts) {
  int64_t count = 0;
  for (const auto& part : parts) {
    require(part.dim(-1) == parts[0].dim(-1), "concat_rows", parts[0], part);
    count += part.rows();
  }
  return dispatch(parts[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty({count, parts[0].dim(-1)}, parts[0].dtype());
    std::vector<NodePointer> nodes;
    T* to = y.data<T>();
    for (const auto& part : parts) {
      to = std::copy_n(part.data<T>(), part.size(), to);
      nodes.push_back(input(part));
    }
    std::vector<int64_t> sizes;
    for (const auto& part : parts) sizes.push_back(part.size());
    if (std::none_of(nodes.begin(), nodes.end(), [](const auto& n) { return n != nullptr; })) return y;
    return record(kConcatRows, y, [nodes, sizes](const Tensor& dy) {
      const T* d = dy.data<T>();
      for (size_t p = 0; p < nodes.size(); d += sizes[p++])
        add_to<T>(nodes[p], [&](T* g) { simd::add(g, d, g, sizes[p]); });
    });
  });
}

const Operation kRows("rows", [] {
  return std::vector{sample("rows 2 0 2", {{3, 4}}, [](auto in) {
    return rows(in[0], std::vector<int32_t>{2, 0, 2});
  })};
});
Tensor rows(const Tensor& x, std::span<const int32_t> ids) {
  const int64_t n = x.rows(), width = x.dim(-1);
  for (int32_t id : ids)
    if (id < 0 || id >= n)
      throw ShapeError("[rows] row " + std::to_string(id) + " of " + shape_text(x.shape()));
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty({static_cast<int64_t>(ids.size()), width}, x.dtype());
    for (size_t i = 0; i < ids.size(); ++i)
      std::copy_n(x.data<T>() + ids[i] * width, width, y.data<T>() + static_cast<int64_t>(i) * width);
    const NodePointer nx = input(x);
    if (!nx) return y;
    return record(kRows, y,
                  [nx, width, kept = std::vector<int32_t>(ids.begin(), ids.end())](const Tensor& dy) {
                    if (nx->leaf) {
                      nx->sparse.push_back({kept, dy.copy()});
                      return;
                    }
                    add_to<T>(nx, [&](T* g) {
                      for (size_t i = 0; i < kept.size(); ++i) {
                        T* to = g + kept[i] * width;
                        simd::add(to, dy.data<T>() + static_cast<int64_t>(i) * width, to, width);
                      }
                    });
                  });
  });
}

const Operation kRowRange("row_range", [] {
  return std::vector{sample("rows 1..2", {{4, 3}}, [](auto in) { return row_range(in[0], 1, 3); })};
});
Tensor row_range(const Tensor& x, int64_t begin, int64_t end) {
  const Tensor y = x.row_range(begin, end);  // all rows too: the order of sums in backward is then always one
  const NodePointer nx = input(x);
  if (!nx) return y;
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return record(kRowRange, y, [nx, begin](const Tensor& dy) {
      add_to<T>(nx, [&](T* g) {
        T* const to = g + begin * dy.dim(-1);
        simd::add(to, dy.data<T>(), to, dy.size());
      });
    });
  });
}

const Operation kMaxout("maxout", [] {
  return std::vector{sample("maxout", {{3, 4}}, [](auto in) { return maxout(in[0]); })};
});
Tensor maxout(const Tensor& x) {
  if (x.dim(-1) % 2) throw ShapeError("[maxout] x " + shape_text(x.shape()) + ", expected an even width");
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    Tensor y = Tensor::empty({x.rows(), x.dim(-1) / 2}, x.dtype());
    const T* p = x.data<T>();
    for (int64_t i = 0; i < y.size(); ++i) y.data<T>()[i] = std::max(p[2 * i], p[2 * i + 1]);
    const NodePointer nx = input(x);
    if (!nx) return y;
    return record(kMaxout, y, [nx, x](const Tensor& dy) {
      add_to<T>(nx, [&](T* g) {
        const T *q = x.data<T>(), *d = dy.data<T>();
        for (int64_t i = 0; i < dy.size(); ++i) g[2 * i + (q[2 * i + 1] > q[2 * i])] += d[i];
      });
    });
  });
}

const Operation kDropout("dropout", [] {
  return std::vector{sample("p = 0.3", {{3, 5}}, [](auto in) {
    return dropout(in[0], 0.3, std::vector<uint64_t>{7, 8, 9});
  })};
});
Tensor dropout(const Tensor& x, double p, std::span<const uint64_t> row_keys) {
  if (!(p >= 0 && p < 1))
    throw UsageError("dropout " + std::to_string(p) + ", expected a number from 0 to below 1");
  if (static_cast<int64_t>(row_keys.size()) != x.rows())
    throw ShapeError("[dropout] " + std::to_string(row_keys.size()) + " keys for x " + shape_text(x.shape()));
  if (p == 0) return x;
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto drop = [p,
                       keys = std::vector<uint64_t>(row_keys.begin(), row_keys.end())](const Tensor& from) {
      const Tensor to = Tensor::empty(from.shape(), from.dtype());
      const auto a = from.as_matrix<T>(), b = to.as_matrix<T>();
      for (int64_t r = 0; r < b.rows; ++r)
        simd::dropout(a.row(r), b.row(r), b.columns,
                      {keys[static_cast<size_t>(r)], static_cast<uint32_t>(p * 0x1p32), 1 / (1 - p)});
      return to;
    };
    const Tensor y = drop(x);
    const NodePointer nx = input(x);
    if (!nx) return y;
    return record(kDropout, y, [nx, drop](const Tensor& dy) {
      const Tensor dx = drop(dy);
      add_to<T>(nx, [&](T* g) { simd::add(g, dx.data<T>(), g, dx.size()); });
    });
  });
}

const Operation kSum("sum", [] {
  return std::vector{sample("sum", {{3, 4}}, [](auto in) { return sum(in[0]); })};
});
Tensor sum(const Tensor& x) {
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    double total = 0;
    for (T v : x.values<T>()) total += v;
    Tensor y = Tensor::full({1}, total, x.dtype());
    const NodePointer nx = input(x);
    if (!nx) return y;
    return record(kSum, y, [nx](const Tensor& dy) {
      add_to<T>(nx, [&](T* g) {
        int64_t n = 1;
        for (int64_t d : nx->shape) n *= d;
        for (int64_t i = 0; i < n; ++i) g[i] += dy.data<T>()[0];
      });
    });
  });
}

}  // namespace regard::autograd
