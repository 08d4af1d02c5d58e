#pragma once
// Layers that work on every position alone, and the block around each of them. Shape letters: R rows, D
// model, F feed-forward.

#include <cstdint>
#include <string>

#include "regard/autograd/layers.h"
#include "regard/autograd/operations.h"
#include "regard/nn/parameter.h"

namespace regard::nn {

/// W x + b.
struct Linear {
  Tensor W, b;  // [N, K], [N]

  /// W = `blocks` matrices over one another, each drawn for K inputs and N / blocks outputs.
  void visit(const ParameterVisitor& visitor, const std::string& name, int64_t K, int64_t N,
             int64_t blocks = 1) {
    visitor(name + ".W", W, {N, K}, Initial::glorot(K, N / blocks));
    visitor(name + ".b", b, {N}, Initial::constant(0));
  }
  Tensor operator()(const Tensor& x) const { return autograd::linear(x, W, b); }  // [R, N]
};

/// Ba, Kiros and Hinton 2016, arXiv:1607.06450.
struct LayerNorm {
  Tensor gain, bias;  // [D]

  void visit(const ParameterVisitor& visitor, const std::string& name, int64_t D) {
    visitor(name + ".gain", gain, {D}, Initial::constant(1));
    visitor(name + ".bias", bias, {D}, Initial::constant(0));
  }
  Tensor operator()(const Tensor& x) const { return autograd::layer_norm(x, gain, bias); }  // [R, D]
};

/// Where a residual block normalises.
enum class NormOrder {
  before,  ///< x + f(norm(x)).  Xiong et al. 2020, arXiv:2002.04745
  after    ///< norm(x + f(x)).  Vaswani et al. 2017, arXiv:1706.03762, 3.1
};

/// A block with a residual sum: the only place that knows the order of norm and sum.
class Residual {
 public:
  void visit(const ParameterVisitor& visitor, const std::string& name, int64_t D, NormOrder order) {
    order_ = order;
    norm_.visit(visitor, name + ".norm", D);
  }

  /// `f` is called once, with [R, D], and returns [R, D]; what it returns is dropped by `dropout`.
  template <class F>
  Tensor operator()(const Tensor& x0, const autograd::RowDropout& dropout, const F& f) const {
    if (order_ == NormOrder::before) return autograd::add_dropout(x0, f(norm_(x0)), dropout);  // [R, D]
    return norm_(autograd::add_dropout(x0, f(x0), dropout));                                   // [R, D]
  }

 private:
  NormOrder order_ = NormOrder::after;
  LayerNorm norm_;
};

enum class FeedForwardActivation { swish, relu };

/// W_2 activation(W_1 x + b_1) + b_2.  Vaswani et al. 2017, equation 2.
struct FeedForward {
  Linear first, second;  // [F, D], [D, F]
  FeedForwardActivation activation = FeedForwardActivation::swish;

  void visit(const ParameterVisitor& visitor, const std::string& name, int64_t D, int64_t F,
             FeedForwardActivation kind) {
    activation = kind;
    first.visit(visitor, name + ".first", D, F);
    second.visit(visitor, name + ".second", F, D);
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor h = first(x);  // [R, F]
    if (activation == FeedForwardActivation::swish) return autograd::swish_linear(h, second.W, second.b);
    return second(autograd::relu(h));
  }
};

}  // namespace regard::nn
