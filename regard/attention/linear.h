#pragma once
// Linear attention (Katharopoulos, Vyas, Pappas and Fleuret 2020, arXiv:2006.16236, 3.2 to 3.4), per head:
//   S_i = S_0 + sum_j phi(k_j) v_j'     z_i = z_0 + sum_j phi(k_j)       over j <= i (causal), or over all j
//   o_i = scale phi(q_i)' S_i / (phi(q_i)' z_i);   a denominator of 0 gives 0
// Three forms agree up to rounding: recurrent (row after row, what decoding does), quadratic (over pairs,
// T^2) and chunked (pairs within 64 rows, the state between them; matrix products). The data are never looked
// at to choose a stabiliser, which is why they agree.
//
// Letters: B items, H heads of queries, Hkv heads of keys and values, T positions, D width of queries and
// keys, E of values. Head h attends with head h / (H / Hkv). Views have any strides.
//
// Chunked: T (2 D E + 64 (D + E)) multiply-adds a head in forward, some 2.5 times as many in backward, which
// keeps a state [D + 1, E] for every 64 rows of a head. Causal, a row's result depends on the rows up to it
// alone, to the bit, NaN and infinity included; not on threads or batch. Safe from several threads. Throws
// ShapeError.

#include <cstdint>

#include "regard/base/thread_pool.h"
#include "regard/base/view.h"

namespace regard::attention {

enum class FeatureMap {
  elu_plus_one,  ///< x + 1 for x > 0, else exp(x)
  relu,
  identity,
};

enum class LinearForm { chunked, recurrent, quadratic };

struct LinearOptions {
  FeatureMap map = FeatureMap::elu_plus_one;
  bool causal = true;                     ///< needs as many queries as keys
  bool normalise = true;                  ///< false: no denominator
  double scale = 1;                       ///< of the output
  LinearForm form = LinearForm::chunked;  ///< forward's; without causal there is one
};

/// What has been attended to. Without data: zero on the way in, not written on the way out. In and out may be
/// the same memory.
template <class T>
struct LinearState {
  View4<T> S;  ///< [B, Hkv, D, E]
  View3<T> z;  ///< [B, Hkv, D], the normaliser
};

/// q [B, H, T, D], k [B, Hkv, T, D], v [B, Hkv, T, E] -> out [B, H, T, E].
void linear_attention_forward(const View4<const float>& q, const View4<const float>& k,
                              const View4<const float>& v, const LinearState<const float>& before,
                              const View4<float>& out, const LinearState<float>& after,
                              const LinearOptions& options = {}, ThreadPool* pool = nullptr);
void linear_attention_forward(const View4<const double>& q, const View4<const double>& k,
                              const View4<const double>& v, const LinearState<const double>& before,
                              const View4<double>& out, const LinearState<double>& after,
                              const LinearOptions& options = {}, ThreadPool* pool = nullptr);

/// Gradients; all that go out are overwritten. d_after without data: 0; d_before without data: not wanted.
template <class T>
struct LinearGradients {
  View4<const T> d_out;            ///< in, [B, H, T, E]
  LinearState<const T> d_after{};  ///< in
  View4<T> d_q;                    ///< [B, H, T, D]
  View4<T> d_k;                    ///< [B, Hkv, T, D]
  View4<T> d_v;                    ///< [B, Hkv, T, E]
  LinearState<T> d_before{};
};
/// Chunked; the forward is computed again.
void linear_attention_backward(const View4<const float>& q, const View4<const float>& k,
                               const View4<const float>& v, const LinearState<const float>& before,
                               const LinearGradients<float>& gradients, const LinearOptions& options = {},
                               ThreadPool* pool = nullptr);
void linear_attention_backward(const View4<const double>& q, const View4<const double>& k,
                               const View4<const double>& v, const LinearState<const double>& before,
                               const LinearGradients<double>& gradients, const LinearOptions& options = {},
                               ThreadPool* pool = nullptr);

}  // namespace regard::attention
