// The chunked backward of linear attention of one head.

#include <algorithm>

#include "regard/attention/linear_chunk.h"

namespace regard::attention {
namespace {

/// The gradients of a chunk's rows, given the state before them and the gradient of the state behind them:
/// ten products of a chunk's size, where the forward has four. With n_i = numerator, d_i = denominator:
///
///   o_i = scale n_i / d_i         dn_i = scale / d_i do_i       dd_i = - dn_i . n_i / d_i
///   n_i = S' q_i + sum a_ij v_j   g_ij = dn_i . v_j + dd_i      (j <= i, a_ij = q_i . k_j, q and k mapped)
///
/// n_i itself is not needed: dn_i . n_i = q_i . (S dn_i) + sum a_ij dn_i . v_j, and both are computed anyway.
template <class T>
class ChunkBackward {
 public:
  ChunkBackward(const LinearHead<T>& head, const LinearHeadGradients<T>& gradients)
      : head_(head),
        gradients_(gradients),
        pairs_(kLinearChunk * kLinearChunk),
        d_pairs_(kLinearChunk * kLinearChunk),
        d_numerators_(kLinearChunk * head.E()),
        d_denominators_(kLinearChunk),
        d_mapped_(kLinearChunk * head.D()),
        d_values_(kLinearChunk * head.E()),
        d_z_(head.D()) {}

  /// dq_i = S dn_i + dd_i z (+ sum g_ij k_j), all of it through the map. `within`: pairs of the chunk count.
  void queries(const Chunk<T>& chunk, const HeadState<T>& state, int64_t begin, bool within) {
    rows_ = chunk.rows();
    if (within) {
      similarities(chunk, a());
      denominators_.compute(chunk, state, a());
    } else {
      denominators_.compute(chunk, state);
    }
    for (int64_t i = 0; i < rows_; ++i) numerator_gradient(i, begin + i);
    gemm::multiply(constant(d_numerators()), constant(state.S()).transposed(), d_mapped());
    if (within) gemm::multiply(constant(d_numerators()), chunk.v().transposed(), g());
    for (int64_t i = 0; i < rows_; ++i) denominator_gradient(chunk, i, within);
    add_outer(d_denominators_.data(), state.z().data, all_rows(d_mapped()));
    if (within) gemm::multiply(constant(g()), chunk.k(), d_mapped(), {.accumulate = true});
    through_map(chunk.q());
    for (int64_t i = 0; i < rows_; ++i) write_row(d_mapped().row(i), gradients_.d_q, begin + i, false);
  }
  /// dk_j = dS v_j + dz (+ sum g_ij q_i), through the map, and dv_j = dS' k_j (+ sum a_ij dn_i).
  void keys(const Chunk<T>& chunk, const HeadState<T>& d_state, int64_t begin, bool within) {
    rows_ = chunk.rows();
    gemm::multiply(chunk.v(), constant(d_state.S()).transposed(), d_mapped(), {.bias = d_state.z().data});
    gemm::multiply(chunk.k(), constant(d_state.S()), d_values());
    if (within) {
      gemm::multiply(constant(g()).transposed(), chunk.q(), d_mapped(), {.accumulate = true});
      gemm::multiply(constant(a()).transposed(), constant(d_numerators()), d_values(), {.accumulate = true});
    }
    through_map(chunk.k());
    for (int64_t i = 0; i < rows_; ++i) {
      write_row(d_mapped().row(i), gradients_.d_k, begin + i, true);
      write_row(d_values().row(i), gradients_.d_v, begin + i, true);
    }
  }
  /// dS += q' dn, dz += q' dd.
  void state(const Chunk<T>& chunk, const HeadState<T>& d_state) {
    gemm::multiply(chunk.q().transposed(), constant(d_numerators()), d_state.S(), {.accumulate = true});
    weighted_sum(d_denominators_.data(), all_rows(chunk.q()), d_z_.data());
    simd::add(d_state.z().data, d_z_.data(), d_state.z().data, head_.D());
  }

 private:
  static MatrixView<const T> constant(const MatrixView<T>& x) { return x; }
  MatrixView<T> a() const { return matrix(pairs_.data(), rows_, rows_); }
  MatrixView<T> g() const { return matrix(d_pairs_.data(), rows_, rows_); }
  MatrixView<T> d_numerators() const { return matrix(d_numerators_.data(), rows_, head_.E()); }
  MatrixView<T> d_mapped() const { return matrix(d_mapped_.data(), rows_, head_.D()); }
  MatrixView<T> d_values() const { return matrix(d_values_.data(), rows_, head_.E()); }

  void numerator_gradient(int64_t i, int64_t at) const {
    const T factor = row_factor(head_.options, denominators_[i]);
    T* const dn = d_numerators().row(i);
    if (factor == 0) {
      std::fill_n(dn, head_.E(), T{0});  // d_o may hold what is not finite
      return;
    }
    copy_row(gradients_.d_o, at, dn);
    simd::scale(factor, dn, dn, head_.E());
  }
  /// dd_i, and g_ij where g holds dn_i . v_j.
  void denominator_gradient(const Chunk<T>& chunk, int64_t i, bool within) {
    const T d = denominators_[i];
    T dd = 0;
    if (head_.options.normalise && d != 0) {
      T through = simd::dot(chunk.q().row(i), d_mapped().row(i), head_.D());
      if (within) through += simd::dot(a().row(i), g().row(i), i + 1);
      dd = -through / d;
    }
    d_denominators_.data()[i] = dd;
    if (!within) return;
    T* const row = g().row(i);
    for (int64_t j = 0; j <= i; ++j) row[j] += dd;
    std::fill(row + i + 1, row + rows_, T{0});
  }
  void through_map(const MatrixView<const T>& mapped) const {
    map_backward_row(head_.options.map, mapped.data, d_mapped().data, rows_ * head_.D());
  }
  /// Row `at` of `to` = x, or += x.
  static void write_row(const T* x, const MatrixView<T>& to, int64_t at, bool add) {
    if (dense_rows(to) && add) return simd::add(to.row(at), x, to.row(at), to.columns);
    for (int64_t c = 0; c < to.columns; ++c) to(at, c) = add ? to(at, c) + x[c] : x[c];
  }

  const LinearHead<T>& head_;
  const LinearHeadGradients<T>& gradients_;
  Denominators<T> denominators_;
  AlignedBuffer<T> pairs_, d_pairs_, d_numerators_, d_denominators_, d_mapped_, d_values_, d_z_;
  int64_t rows_ = 0;
};

template <class T>
void causal_backward(const LinearHead<T>& head, const HeadState<T>& before, const HeadState<T>& d_state,
                     const LinearHeadGradients<T>& g) {
  const int64_t chunks = (head.q.rows + kLinearChunk - 1) / kLinearChunk;
  const int64_t size = HeadState<T>::size(head.D(), head.E());
  Chunk<T> chunk(head, kLinearChunk);
  AlignedBuffer<T> states(std::max<int64_t>(1, chunks) * size);  // before each chunk
  const auto state = [&](int64_t n) { return HeadState<T>(states.data() + n * size, head.D(), head.E()); };
  const auto rows = [&](int64_t n) { return std::min(kLinearChunk, head.q.rows - n * kLinearChunk); };
  std::copy_n(before.data(), size, states.data());
  for (int64_t n = 0; n + 1 < chunks; ++n) {
    std::copy_n(state(n).data(), size, state(n + 1).data());
    chunk.load_keys(n * kLinearChunk, rows(n));
    add_keys(chunk, state(n + 1));
  }
  ChunkBackward<T> backward(head, g);
  for (int64_t n = chunks - 1; n >= 0; --n) {
    const int64_t begin = n * kLinearChunk;
    chunk.load(begin, rows(n));
    backward.queries(chunk, state(n), begin, true);
    backward.keys(chunk, d_state, begin, true);
    backward.state(chunk, d_state);
  }
}

template <class T>
void backward_over_all_keys(const LinearHead<T>& head, const HeadState<T>& before,
                            const HeadState<T>& d_state, const LinearHeadGradients<T>& g) {
  Chunk<T> chunk(head, kLinearChunk);
  AlignedBuffer<T> after(HeadState<T>::size(head.D(), head.E()));
  const HeadState<T> state(after.data(), head.D(), head.E());
  std::copy_n(before.data(), HeadState<T>::size(head.D(), head.E()), state.data());
  ChunkBackward<T> backward(head, g);
  for (int64_t begin = 0; begin < head.k.rows; begin += kLinearChunk) {
    chunk.load_keys(begin, std::min(kLinearChunk, head.k.rows - begin));
    add_keys(chunk, state);
  }
  for (int64_t begin = 0; begin < head.q.rows; begin += kLinearChunk) {
    chunk.load_queries(begin, std::min(kLinearChunk, head.q.rows - begin));
    backward.queries(chunk, state, begin, false);
    backward.state(chunk, d_state);
  }
  for (int64_t begin = 0; begin < head.k.rows; begin += kLinearChunk) {
    chunk.load_keys(begin, std::min(kLinearChunk, head.k.rows - begin));
    backward.keys(chunk, d_state, begin, false);
  }
}

}  // namespace

template <class T>
void linear_backward(const LinearHead<T>& head, const HeadState<T>& before, const HeadState<T>& d_state,
                     const LinearHeadGradients<T>& gradients) {
  if (head.options.causal)
    causal_backward(head, before, d_state, gradients);
  else
    backward_over_all_keys(head, before, d_state, gradients);
}

template void linear_backward(const LinearHead<float>&, const HeadState<float>&, const HeadState<float>&,
                              const LinearHeadGradients<float>&);
template void linear_backward(const LinearHead<double>&, const HeadState<double>&, const HeadState<double>&,
                              const LinearHeadGradients<double>&);

}  // namespace regard::attention
