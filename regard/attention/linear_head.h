#pragma once
// Linear attention of one head on dense rows, f32 and f64: the three forms and the chunked backward.

#include <cstdint>

#include "regard/attention/linear.h"
#include "regard/base/aligned_buffer.h"
#include "regard/base/span.h"

namespace regard::attention {

constexpr int64_t kLinearChunk = 64;

/// The state of one head, dense: S [D, E] and behind it z [D].
template <class T>
class HeadState {
 public:
  HeadState(T* data, int64_t D, int64_t E) : data_(data), D_(D), E_(E) {}
  static int64_t size(int64_t D, int64_t E) { return D * E + D; }

  MatrixView<T> S() const { return matrix(data_, D_, E_); }
  MatrixView<T> z() const { return matrix(data_ + D_ * E_, D_, 1); }
  T* data() const { return data_; }

 private:
  T* data_;
  int64_t D_, E_;
};

/// The operands of one head; any strides.
template <class T>
struct LinearHead {
  MatrixView<const T> q, k, v;  // [T, D], [T, D], [T, E]
  const LinearOptions& options;

  int64_t D() const { return q.columns; }
  int64_t E() const { return v.columns; }
};

/// Writes o [T, E] and moves `state` from before the keys to behind them.
template <class T>
void linear_forward(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o);

template <class T>
struct LinearHeadGradients {
  MatrixView<const T> d_o;
  MatrixView<T> d_q, d_k, d_v;  // d_q is written, d_k and d_v are added to
};

/// `before` is the state before the keys; `d_state` goes from the gradient of the state behind them to that
/// of `before`.
template <class T>
void linear_backward(const LinearHead<T>& head, const HeadState<T>& before, const HeadState<T>& d_state,
                     const LinearHeadGradients<T>& gradients);

}  // namespace regard::attention
