#include "regard/attention/linear_head.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "regard/attention/source_rows.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/rows.h"

namespace regard::attention {
namespace {

/// phi of a row, in place.
template <class T>
void map_row(FeatureMap map, T* x, int64_t n, T* scratch) {
  if (map == FeatureMap::relu)
    for (int64_t i = 0; i < n; ++i) x[i] = x[i] < 0 ? 0 : x[i];
  if (map != FeatureMap::elu_plus_one) return;
  for (int64_t i = 0; i < n; ++i) scratch[i] = x[i] > 0 ? 0 : x[i];
  simd::exp(scratch, scratch, n);
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] + 1 : scratch[i];
}

/// phi'(x) from y = phi(x).
template <class T>
T slope(FeatureMap map, T y) {
  switch (map) {
    case FeatureMap::elu_plus_one:
      return y > 1 ? 1 : y;
    case FeatureMap::relu:
      return y > 0 ? 1 : 0;
    case FeatureMap::identity:
      break;
  }
  return 1;
}

template <class T>
void copy_row(const MatrixView<const T>& from, int64_t i, T* to) {
  for (int64_t c = 0; c < from.columns; ++c) to[c] = from(i, c);
}

/// Dense copies of rows [begin, begin + rows), mapped.
template <class T>
struct Chunk {
  Chunk(const LinearHead<T>& h, int64_t most)
      : head(h),
        phi_q(most * h.D()),
        phi_k(most * h.D()),
        v_rows(most * h.E()),
        row(std::max(h.D(), int64_t{1})) {}

  void load(int64_t begin, int64_t count) {
    rows = count;
    for (int64_t i = 0; i < count; ++i) {
      copy_row(head.v, begin + i, v_rows.data() + i * head.E());
      load_mapped(head.q, begin + i, phi_q.data() + i * head.D());
      load_mapped(head.k, begin + i, phi_k.data() + i * head.D());
    }
  }
  void load_queries(int64_t begin, int64_t count) {
    rows = count;
    for (int64_t i = 0; i < count; ++i) load_mapped(head.q, begin + i, phi_q.data() + i * head.D());
  }
  void load_keys(int64_t begin, int64_t count) {
    rows = count;
    for (int64_t i = 0; i < count; ++i) {
      copy_row(head.v, begin + i, v_rows.data() + i * head.E());
      load_mapped(head.k, begin + i, phi_k.data() + i * head.D());
    }
  }
  MatrixView<const T> q() const { return matrix<const T>(phi_q.data(), rows, head.D()); }
  MatrixView<const T> k() const { return matrix<const T>(phi_k.data(), rows, head.D()); }
  MatrixView<const T> v() const { return matrix<const T>(v_rows.data(), rows, head.E()); }

  const LinearHead<T>& head;
  AlignedBuffer<T> phi_q, phi_k, v_rows, row;
  int64_t rows = 0;

 private:
  void load_mapped(const MatrixView<const T>& from, int64_t i, T* to) {
    copy_row(from, i, to);
    map_row(head.options.map, to, from.columns, row.data());
  }
};

template <class T>
SourceRows<const T> rows_of(const MatrixView<const T>& x, int64_t count) {
  return {x.data, count, x.columns, x.row_stride};
}

template <class T>
SourceRows<T> all_rows(const MatrixView<T>& x) {
  return {x.data, x.rows, x.columns, x.row_stride};
}

/// S += phi(k)' v, z += sum phi(k).
template <class T>
void add_keys(const Chunk<T>& chunk, const HeadState<T>& state) {
  gemm::multiply(chunk.k().transposed(), chunk.v(), state.S(), {.accumulate = true});
  simd::add_column_sums(chunk.k().data, chunk.rows, chunk.head.D(), state.z().data, chunk.head.D());
}

/// o = scale numerator / denominator, 0 where that is 0.
template <class T>
void divide(const LinearOptions& options, const T* numerator, T denominator, const MatrixView<T>& o,
            int64_t i) {
  if (!options.normalise) denominator = 1;
  const T factor = denominator == 0 ? T{0} : static_cast<T>(options.scale) / denominator;
  for (int64_t e = 0; e < o.columns; ++e) o(i, e) = denominator == 0 ? T{0} : numerator[e] * factor;
}

template <class T>
T sum(const T* x, int64_t n) {
  T total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

/// sum_j a_ij v_j over j <= i for all rows, added to `to`. Above the diagonal `a` is 0, and a value that is
/// not finite must not meet that 0: such rows are left out of the product and added one by one.
template <class T>
void add_lower_product(const MatrixView<const T>& a, const MatrixView<const T>& v, const MatrixView<T>& to,
                       AlignedBuffer<T>& copy) {
  if (std::isfinite(simd::sum_of_squares(v.data, v.rows * v.columns)))
    return gemm::multiply(a, v, to, {.accumulate = true});
  std::vector<int64_t> wild;
  for (int64_t j = 0; j < v.rows; ++j)
    if (!std::all_of(v.row(j), v.row(j) + v.columns, [](T x) { return std::isfinite(x); })) wild.push_back(j);
  T* const tame = copy.grow(v.rows * v.columns);
  std::copy_n(v.data, v.rows * v.columns, tame);
  for (const int64_t j : wild) std::fill_n(tame + j * v.columns, v.columns, T{0});
  gemm::multiply(a, matrix<const T>(tame, v.rows, v.columns), to, {.accumulate = true});
  for (const int64_t j : wild)
    for (int64_t i = j; i < to.rows; ++i) simd::axpy(a(i, j), v.row(j), to.row(i), v.columns);
}

/// a = phi(q) phi(k)' where j <= i, else 0.
template <class T>
void similarities(const Chunk<T>& chunk, const MatrixView<T>& a) {
  gemm::multiply(chunk.q(), chunk.k().transposed(), a);
  for (int64_t i = 0; i < a.rows; ++i) std::fill(a.row(i) + i + 1, a.row(i) + a.columns, T{0});
}

template <class T>
void chunked(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  const int64_t most = std::min(head.q.rows, kLinearChunk);
  Chunk<T> chunk(head, most);
  AlignedBuffer<T> pairs(most * most), numerators(most * head.E()), denominators(most), copy;
  for (int64_t begin = 0; begin < head.q.rows; begin += kLinearChunk) {
    chunk.load(begin, std::min(kLinearChunk, head.q.rows - begin));
    const MatrixView<T> a = matrix(pairs.data(), chunk.rows, chunk.rows);
    const MatrixView<T> numerator = matrix(numerators.data(), chunk.rows, head.E());
    const MatrixView<T> denominator = matrix(denominators.data(), chunk.rows, 1);
    similarities(chunk, a);
    gemm::multiply(chunk.q(), state.S(), numerator);
    gemm::multiply(chunk.q(), state.z(), denominator);
    add_lower_product<T>(a, chunk.v(), numerator, copy);
    for (int64_t i = 0; i < chunk.rows; ++i)
      divide(head.options, numerator.row(i), denominator(i, 0) + sum(a.row(i), i + 1), o, begin + i);
    add_keys(chunk, state);
  }
}

template <class T>
void recurrent(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  Chunk<T> chunk(head, 1);
  AlignedBuffer<T> numerator(head.E());
  for (int64_t i = 0; i < head.q.rows; ++i) {
    chunk.load(i, 1);
    add_outer(chunk.k().data, chunk.v().data, all_rows(state.S()));  // S_i = S_{i-1} + phi(k_i) v_i'
    simd::add(state.z().data, chunk.k().data, state.z().data, head.D());
    weighted_sum(chunk.q().data, all_rows<const T>(state.S()), numerator.data());
    divide(head.options, numerator.data(), simd::dot(chunk.q().data, state.z().data, head.D()), o, i);
  }
}

template <class T>
void quadratic(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  Chunk<T> all(head, head.q.rows);
  all.load(0, head.q.rows);
  AlignedBuffer<T> a(head.q.rows), numerator(head.E()), from_state(head.E());
  for (int64_t i = 0; i < head.q.rows; ++i) {
    const T* const phi_q = all.q().row(i);
    products(phi_q, rows_of(all.k(), i + 1), a.data());
    weighted_sum(a.data(), rows_of(all.v(), i + 1), numerator.data());
    weighted_sum(phi_q, all_rows<const T>(state.S()), from_state.data());
    simd::add(numerator.data(), from_state.data(), numerator.data(), head.E());
    divide(head.options, numerator.data(), simd::dot(phi_q, state.z().data, head.D()) + sum(a.data(), i + 1),
           o, i);
  }
  add_keys(all, state);
}

/// Without causal: the state of all keys, then every query.
template <class T>
void over_all_keys(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  Chunk<T> chunk(head, kLinearChunk);
  AlignedBuffer<T> numerators(kLinearChunk * head.E()), denominators(kLinearChunk);
  for (int64_t begin = 0; begin < head.k.rows; begin += kLinearChunk) {
    chunk.load_keys(begin, std::min(kLinearChunk, head.k.rows - begin));
    add_keys(chunk, state);
  }
  for (int64_t begin = 0; begin < head.q.rows; begin += kLinearChunk) {
    chunk.load_queries(begin, std::min(kLinearChunk, head.q.rows - begin));
    const MatrixView<T> numerator = matrix(numerators.data(), chunk.rows, head.E());
    const MatrixView<T> denominator = matrix(denominators.data(), chunk.rows, 1);
    gemm::multiply(chunk.q(), state.S(), numerator);
    gemm::multiply(chunk.q(), state.z(), denominator);
    for (int64_t i = 0; i < chunk.rows; ++i)
      divide(head.options, numerator.row(i), denominator(i, 0), o, begin + i);
  }
}

// --- backward

/// Gradients within a chunk, and the scratch they need.
template <class T>
class ChunkBackward {
 public:
  ChunkBackward(const LinearHead<T>& head, const LinearHeadGradients<T>& gradients)
      : head_(head),
        g_(gradients),
        pairs_(kLinearChunk * kLinearChunk),
        d_pairs_(kLinearChunk * kLinearChunk),
        numerators_(kLinearChunk * head.E()),
        denominators_(kLinearChunk),
        d_mapped_(kLinearChunk * head.D()),
        d_values_(kLinearChunk * head.E()) {}

  /// From d_o to the gradients of numerator (in its place) and denominator. `within`: pairs of the chunk
  /// count.
  void differentiate_division(const Chunk<T>& chunk, const HeadState<T>& state, int64_t begin, bool within) {
    rows_ = chunk.rows;
    gemm::multiply(chunk.q(), state.S(), numerator());
    gemm::multiply(chunk.q(), state.z(), denominator());
    if (within) {
      similarities(chunk, a());
      gemm::multiply(constant(a()), chunk.v(), numerator(), {.accumulate = true});
    }
    for (int64_t i = 0; i < rows_; ++i) {
      T d = denominator()(i, 0) + (within ? sum(a().row(i), i + 1) : T{0});
      if (!head_.options.normalise) d = 1;
      const T factor = d == 0 ? T{0} : static_cast<T>(head_.options.scale) / d;
      T* const n = numerator().row(i);
      T through = 0;  // o = scale n / d
      for (int64_t e = 0; e < head_.E(); ++e) {
        const T dn = factor == 0 ? T{0} : g_.d_o(begin + i, e) * factor;
        through += dn * n[e];
        n[e] = dn;
      }
      denominator()(i, 0) = head_.options.normalise && d != 0 ? -through / d : T{0};
    }
  }
  /// d phi(q) = dN S' + dd z' (+ G phi(k)), with G_ij = dN_i . v_j + dd_i for j <= i.
  void queries(const Chunk<T>& chunk, const HeadState<T>& state, int64_t begin, bool within) {
    gemm::multiply(constant(numerator()), constant(state.S()).transposed(), d_mapped());
    gemm::multiply(constant(denominator()), constant(state.z()).transposed(), d_mapped(),
                   {.accumulate = true});
    if (within) {
      gemm::multiply(constant(numerator()), chunk.v().transposed(), d_a());
      for (int64_t i = 0; i < rows_; ++i) {
        T* const row = d_a().row(i);
        for (int64_t j = 0; j < rows_; ++j) row[j] = j <= i ? row[j] + denominator()(i, 0) : T{0};
      }
      gemm::multiply(constant(d_a()), chunk.k(), d_mapped(), {.accumulate = true});
    }
    through_map(chunk.q(), g_.d_q, begin, false);
  }
  /// d phi(k) = v dS' + dz (+ G' phi(q)),  dv = phi(k) dS (+ A' dN).
  void keys(const Chunk<T>& chunk, const HeadState<T>& d_state, int64_t begin, bool within) {
    rows_ = chunk.rows;
    gemm::multiply(chunk.v(), constant(d_state.S()).transposed(), d_mapped(), {.bias = d_state.z().data});
    gemm::multiply(chunk.k(), constant(d_state.S()), d_values());
    if (within) {
      gemm::multiply(constant(d_a()).transposed(), chunk.q(), d_mapped(), {.accumulate = true});
      gemm::multiply(constant(a()).transposed(), constant(numerator()), d_values(), {.accumulate = true});
    }
    through_map(chunk.k(), g_.d_k, begin, true);
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t e = 0; e < head_.E(); ++e) g_.d_v(begin + i, e) += d_values()(i, e);
  }
  /// dS += phi(q)' dN, dz += phi(q)' dd.
  void state(const Chunk<T>& chunk, const HeadState<T>& d_state) {
    gemm::multiply(chunk.q().transposed(), constant(numerator()), d_state.S(), {.accumulate = true});
    gemm::multiply(chunk.q().transposed(), constant(denominator()), d_state.z(), {.accumulate = true});
  }

 private:
  static MatrixView<const T> constant(const MatrixView<T>& x) { return x; }
  MatrixView<T> a() const { return matrix(pairs_.data(), rows_, rows_); }
  MatrixView<T> d_a() const { return matrix(d_pairs_.data(), rows_, rows_); }
  MatrixView<T> numerator() const { return matrix(numerators_.data(), rows_, head_.E()); }
  MatrixView<T> denominator() const { return matrix(denominators_.data(), rows_, 1); }
  MatrixView<T> d_mapped() const { return matrix(d_mapped_.data(), rows_, head_.D()); }
  MatrixView<T> d_values() const { return matrix(d_values_.data(), rows_, head_.E()); }

  void through_map(const MatrixView<const T>& y, const MatrixView<T>& d_x, int64_t begin, bool add) const {
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t c = 0; c < head_.D(); ++c) {
        const T d = d_mapped()(i, c) * slope(head_.options.map, y(i, c));
        d_x(begin + i, c) = add ? d_x(begin + i, c) + d : d;
      }
  }

  const LinearHead<T>& head_;
  const LinearHeadGradients<T>& g_;
  AlignedBuffer<T> pairs_, d_pairs_, numerators_, denominators_, d_mapped_, d_values_;
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
    backward.differentiate_division(chunk, state(n), begin, true);
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
    backward.differentiate_division(chunk, state, begin, false);
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
void linear_forward(const LinearHead<T>& head, const HeadState<T>& state, const MatrixView<T>& o) {
  if (!head.options.causal) return over_all_keys(head, state, o);
  switch (head.options.form) {
    case LinearForm::chunked:
      return chunked(head, state, o);
    case LinearForm::recurrent:
      return recurrent(head, state, o);
    case LinearForm::quadratic:
      return quadratic(head, state, o);
  }
}

template <class T>
void linear_backward(const LinearHead<T>& head, const HeadState<T>& before, const HeadState<T>& d_state,
                     const LinearHeadGradients<T>& gradients) {
  if (head.options.causal)
    causal_backward(head, before, d_state, gradients);
  else
    backward_over_all_keys(head, before, d_state, gradients);
}

template void linear_forward(const LinearHead<float>&, const HeadState<float>&, const MatrixView<float>&);
template void linear_forward(const LinearHead<double>&, const HeadState<double>&, const MatrixView<double>&);
template void linear_backward(const LinearHead<float>&, const HeadState<float>&, const HeadState<float>&,
                              const LinearHeadGradients<float>&);
template void linear_backward(const LinearHead<double>&, const HeadState<double>&, const HeadState<double>&,
                              const LinearHeadGradients<double>&);

}  // namespace regard::attention
