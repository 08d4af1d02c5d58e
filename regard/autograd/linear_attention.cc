#include <memory>
#include <string>

#include "regard/attention/linear.h"
#include "regard/autograd/contributions.h"
#include "regard/autograd/multi_head.h"
#include "regard/autograd/operations.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"

namespace regard::autograd {
namespace {

using attention::LinearState;

/// Columns begin .. begin + W of rows first .. first + T of x as heads, [1, H, T, D].
template <class T>
View4<T> heads_of(const Tensor& x, int64_t begin, int64_t W, int64_t H, int64_t first, int64_t rows) {
  const int64_t stride = x.dim(-1), D = W / H;
  return {x.data<std::remove_const_t<T>>() + first * stride + begin, {1, H, rows, D}, {0, D, stride, 1}};
}

/// S [D, D] and z [D] of every row and head, one behind the other in [R, H, D (D + 1)].
template <class T>
LinearState<T> state_of(const Tensor& state, int64_t D) {
  const int64_t R = state.dim(0), H = state.dim(1), size = D * (D + 1);
  T* const data = state.data<std::remove_const_t<T>>();
  return {{data, {R, H, D, D}, {H * size, size, D, 1}}, {data + D * D, {R, H, D}, {H * size, size, 1}}};
}

void require_heads(const char* name, const Tensor& qkv, int64_t heads) {
  if (heads < 1 || qkv.dim(-1) % (3 * heads))
    throw ShapeError(std::string("[") + name + "] qkv " + shape_text(qkv.shape()) +
                     " does not divide into 3 times " + std::to_string(heads) + " heads");
}

}  // namespace

const Operation kLinearSelfAttention("linear_self_attention", [] {
  std::vector<Operation::Sample> samples;
  for (const bool causal : {false, true})
    samples.push_back(sample(causal ? "causal" : "open", {{7, 12}}, [causal](std::span<const Tensor> in) {
      const Tensor moved = add(in[0], Tensor::full({7, 12}, 0.05, DType::f64));  // no number near elu's kink
      return linear_self_attention(moved, {{0, 4, 4, 5, 7}}, 2, causal);
    }));
  return samples;
});

Tensor linear_self_attention(const Tensor& qkv, const Ragged& sentences, int64_t heads, bool causal) {
  require_heads("linear_self_attention", qkv, heads);
  if (qkv.rows() != sentences.total())
    throw ShapeError("[linear_self_attention] qkv " + shape_text(qkv.shape()) + " for " +
                     std::to_string(sentences.total()) + " positions");
  return dispatch(qkv.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t W = qkv.dim(-1) / 3;
    const attention::LinearOptions options{.causal = causal};
    const Tensor out = Tensor::empty({qkv.rows(), W}, qkv.dtype());
    for (int64_t b = 0; b < sentences.count(); ++b) {
      const int64_t first = sentences.begin(b), rows = sentences.length(b);
      const auto part = [&](int64_t i) { return heads_of<const T>(qkv, i * W, W, heads, first, rows); };
      attention::linear_attention_forward(part(0), part(1), part(2), LinearState<const T>{},
                                          heads_of<T>(out, 0, W, heads, first, rows), LinearState<T>{},
                                          options);
    }
    const auto node = input(qkv);
    if (!node) return out;
    return record(kLinearSelfAttention, out, [=](const Tensor& d) {
      const Tensor d_qkv = Tensor::empty(qkv.shape(), d.dtype());
      for (int64_t b = 0; b < sentences.count(); ++b) {
        const int64_t first = sentences.begin(b), rows = sentences.length(b);
        const auto part = [&](int64_t i) { return heads_of<const T>(qkv, i * W, W, heads, first, rows); };
        const auto gradient = [&](int64_t i) { return heads_of<T>(d_qkv, i * W, W, heads, first, rows); };
        attention::LinearGradients<T> g;
        g.d_out = heads_of<const T>(d, 0, W, heads, first, rows);
        g.d_q = gradient(0);
        g.d_k = gradient(1);
        g.d_v = gradient(2);
        attention::linear_attention_backward(part(0), part(1), part(2), LinearState<const T>{}, g, options);
      }
      add_to<T>(node, d_qkv);
    });
  });
}

LinearStep linear_attention_step(const Tensor& qkv, const Tensor& state, int64_t heads) {
  require_heads("linear_attention_step", qkv, heads);
  const int64_t R = qkv.rows(), W = qkv.dim(-1) / 3, D = W / heads;
  const Shape expected{R, heads, D * (D + 1)};
  if (state.shape() != expected)
    throw ShapeError("[linear_attention_step] state " + shape_text(state.shape()) + ", expected " +
                     shape_text(expected));
  return dispatch(qkv.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Tensor out = Tensor::empty({R, W}, qkv.dtype()), after = Tensor::empty(state.shape(), qkv.dtype());
    const auto rows = [&](int64_t i) {
      return View4<const T>{qkv.data<T>() + i * W, {R, heads, 1, D}, {3 * W, D, 3 * W, 1}};
    };
    attention::linear_attention_forward(rows(0), rows(1), rows(2), state_of<const T>(state, D),
                                        View4<T>{out.data<T>(), {R, heads, 1, D}, {W, D, W, 1}},
                                        state_of<T>(after, D), {.form = attention::LinearForm::recurrent});
    return LinearStep{out, after};
  });
}

}  // namespace regard::autograd
