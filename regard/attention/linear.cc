// Linear attention: checks, and heads shared out over threads.

#include "regard/attention/linear.h"

#include <algorithm>
#include <array>
#include <string>

#include "regard/attention/linear_head.h"
#include "regard/attention/problem.h"
#include "regard/base/error.h"

namespace regard::attention {
namespace {

template <class T>
struct Call {
  const View4<const T>&q, &k, &v;
  const LinearState<const T>& before;
  const LinearOptions& options;
  int64_t B = q.shape[0], H = q.shape[1], key_heads = k.shape[1], D = q.shape[3], E = v.shape[3];

  int64_t group() const { return key_heads > 0 ? H / key_heads : 0; }

  void check() const {
    expect_shape("k", k.shape, std::array{B, key_heads, options.causal ? q.shape[2] : k.shape[2], D},
                 options.causal ? "B, Hkv, T, D" : "B, Hkv, S, D");
    expect_shape("v", v.shape, std::array{B, key_heads, k.shape[2], E}, "B, Hkv, T, E");
    if (H > 0 && (key_heads == 0 || H % key_heads != 0))
      throw ShapeError("[attention] q " + shape_text(q.shape) + " has " + std::to_string(H) +
                       " heads (H), expected a multiple of the keys' " + std::to_string(key_heads) +
                       " (Hkv)");
    check_state("before", before);
  }
  template <class U>
  void check_state(const std::string& name, const LinearState<U>& state) const {
    if (state.S)
      expect_shape((name + ".S").c_str(), state.S.shape, std::array{B, key_heads, D, E}, "B, Hkv, D, E");
    if (state.z) expect_shape((name + ".z").c_str(), state.z.shape, std::array{B, key_heads, D}, "B, Hkv, D");
  }
  LinearHead<T> head(int64_t b, int64_t h) const {
    const int64_t from = h / group();
    return {matrix_at(q, b, h), matrix_at(k, b, from), matrix_at(v, b, from), options};
  }
  int64_t state_size() const { return HeadState<T>::size(D, E); }
};

/// Reads a head's state; zero where there are no data.
template <class T>
HeadState<T> read_state(const LinearState<const T>& state, int64_t b, int64_t h, T* to, int64_t D,
                        int64_t E) {
  const HeadState<T> x(to, D, E);
  for (int64_t c = 0; c < D; ++c) {
    x.z()(c, 0) = state.z ? state.z(b, h, c) : T{0};
    for (int64_t e = 0; e < E; ++e) x.S()(c, e) = state.S ? state.S(b, h, c, e) : T{0};
  }
  return x;
}

template <class T>
void write_state(const HeadState<T>& x, const LinearState<T>& state, int64_t b, int64_t h) {
  for (int64_t c = 0; c < x.S().rows; ++c) {
    if (state.z) state.z(b, h, c) = x.z()(c, 0);
    if (state.S)
      for (int64_t e = 0; e < x.S().columns; ++e) state.S(b, h, c, e) = x.S()(c, e);
  }
}

template <class Body>
void for_parts_of(int64_t parts, ThreadPool* pool, const Body& body) {
  if (pool)
    pool->parallel_for(parts, body);
  else
    for (int64_t part = 0; part < parts; ++part) body(part);
}

template <class T>
void forward(const Call<T>& call, const View4<T>& out, const LinearState<T>& after, ThreadPool* pool) {
  call.check();
  call.check_state("after", after);
  expect_shape("out", out.shape, std::array{call.B, call.H, call.q.shape[2], call.E}, "B, H, T, E");
  for_parts_of(call.B * call.key_heads, pool, [&](int64_t part) {
    const int64_t b = part / call.key_heads, from = part % call.key_heads;
    AlignedBuffer<T> buffer(2 * call.state_size());
    const HeadState<T> before = read_state(call.before, b, from, buffer.data(), call.D, call.E);
    const HeadState<T> state(buffer.data() + call.state_size(), call.D, call.E);
    for (int64_t h = from * call.group(); h < (from + 1) * call.group(); ++h) {
      std::copy_n(before.data(), call.state_size(), state.data());
      linear_forward(call.head(b, h), state, matrix_at(out, b, h));
    }
    write_state(call.group() > 0 ? state : before, after, b, from);
  });
}

template <class T>
void zero(const MatrixView<T>& x) {
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.columns; ++j) x(i, j) = 0;
}

template <class T>
void backward(const Call<T>& call, const LinearGradients<T>& g, ThreadPool* pool) {
  call.check();
  call.check_state("d_after", g.d_after);
  call.check_state("d_before", g.d_before);
  expect_shape("d_out", g.d_out.shape, std::array{call.B, call.H, call.q.shape[2], call.E}, "B, H, T, E");
  expect_shape("d_q", g.d_q.shape, call.q.shape, "B, H, T, D");
  expect_shape("d_k", g.d_k.shape, call.k.shape, "B, Hkv, T, D");
  expect_shape("d_v", g.d_v.shape, call.v.shape, "B, Hkv, T, E");
  for_parts_of(call.B * call.key_heads, pool, [&](int64_t part) {
    const int64_t b = part / call.key_heads, from = part % call.key_heads, size = call.state_size();
    AlignedBuffer<T> buffer(3 * size);
    const HeadState<T> before = read_state(call.before, b, from, buffer.data(), call.D, call.E);
    const HeadState<T> total(buffer.data() + size, call.D, call.E);
    const LinearState<const T> none;
    read_state(none, b, from, total.data(), call.D, call.E);
    zero(matrix_at(g.d_k, b, from));
    zero(matrix_at(g.d_v, b, from));
    for (int64_t n = 0; n < call.group(); ++n) {  // the state behind the keys is one, whatever the heads
      const int64_t h = from * call.group() + n;
      const HeadState<T> d_state =
          read_state(n == 0 ? g.d_after : none, b, from, buffer.data() + 2 * size, call.D, call.E);
      linear_backward(call.head(b, h), before, d_state,
                      {matrix_at(g.d_out, b, h), matrix_at(g.d_q, b, h), matrix_at(g.d_k, b, from),
                       matrix_at(g.d_v, b, from)});
      for (int64_t i = 0; i < size; ++i) total.data()[i] += d_state.data()[i];
    }
    write_state(total, g.d_before, b, from);
  });
}

}  // namespace

void linear_attention_forward(const View4<const float>& q, const View4<const float>& k,
                              const View4<const float>& v, const LinearState<const float>& before,
                              const View4<float>& out, const LinearState<float>& after,
                              const LinearOptions& options, ThreadPool* pool) {
  forward(Call<float>{q, k, v, before, options}, out, after, pool);
}
void linear_attention_forward(const View4<const double>& q, const View4<const double>& k,
                              const View4<const double>& v, const LinearState<const double>& before,
                              const View4<double>& out, const LinearState<double>& after,
                              const LinearOptions& options, ThreadPool* pool) {
  forward(Call<double>{q, k, v, before, options}, out, after, pool);
}
void linear_attention_backward(const View4<const float>& q, const View4<const float>& k,
                               const View4<const float>& v, const LinearState<const float>& before,
                               const LinearGradients<float>& gradients, const LinearOptions& options,
                               ThreadPool* pool) {
  backward(Call<float>{q, k, v, before, options}, gradients, pool);
}
void linear_attention_backward(const View4<const double>& q, const View4<const double>& k,
                               const View4<const double>& v, const LinearState<const double>& before,
                               const LinearGradients<double>& gradients, const LinearOptions& options,
                               ThreadPool* pool) {
  backward(Call<double>{q, k, v, before, options}, gradients, pool);
}

}  // namespace regard::attention
