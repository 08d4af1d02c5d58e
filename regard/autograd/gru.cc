#include <cstring>

#include "regard/autograd/gru_rows.h"
#include "regard/autograd/operations.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"
#include "regard/autograd/schedule.h"
#include "regard/autograd/sequences.h"
#include "regard/gemm/gemm.h"
#include "regard/simd/rows.h"

namespace regard::autograd {
namespace {

const std::vector<int32_t> kSampleIndex{0, 1, 2, 1, 0, 3};
const Ragged kSampleSentences{{0, 3, 4, 6}};

/// What backward needs of a sequence: time-major rows.
template <class T>
struct GruTrace {
  Schedule schedule;
  Tensor gates;     // [total, 4N]  r z n q
  Tensor previous;  // [total, N]   h before the step
};

int64_t position(const Ragged& sentences, int64_t sentence, int64_t k, bool reverse) {
  return sentences.begin(sentence) + (reverse ? sentences.length(sentence) - 1 - k : k);
}

template <class T>
void run_forward(const Tensor& x, std::span<const int32_t> index, const Tensor& U, const Tensor& b,
                 const Ragged& sentences, bool reverse, const GruTrace<T>& trace, const Tensor& h) {
  const int64_t N = U.dim(1);
  const Tensor xb = with_gate_bias<T>(x, b, N);
  const gemm::Packed<T> packed_U(U.as_matrix<T>().transposed());
  const Tensor gh = Tensor::zeros({sentences.count(), 3 * N}, x.dtype());
  const auto mh = h.as_matrix<T>(), previous = trace.previous.template as_matrix<T>(),
             gates = trace.gates.template as_matrix<T>();
  const Schedule& schedule = trace.schedule;
  for (int64_t k = 0; k < schedule.steps(); ++k) {
    const int64_t first = schedule.first(k), active = schedule.active(k);
    if (k == 0)
      std::memset(previous.data, 0, static_cast<size_t>(active * N) * sizeof(T));
    else
      gemm::multiply(previous.row_range(first, first + active), packed_U,
                     gh.as_matrix<T>().row_range(0, active));
    for (int64_t rank = 0; rank < active; ++rank) {
      const int64_t row = position(sentences, schedule.sentence(rank), k, reverse);
      T* const out = mh.row(row);
      gru_row_forward<T>(
          {xb.data<T>() + index[static_cast<size_t>(row)] * 3 * N, nullptr, gh.data<T>() + rank * 3 * N,
           b.data<T>() + 2 * N, previous.row(first + rank), gates.row(first + rank), out},
          N);
      if (k + 1 < schedule.steps() && rank < schedule.active(k + 1))
        std::copy_n(out, N, previous.row(schedule.first(k + 1) + rank));
    }
  }
}

template <class T>
struct GruNodes {
  std::shared_ptr<Node> x, U, b;
};

template <class T>
void run_backward(const GruTrace<T>& trace, std::span<const int32_t> index, const Tensor& U,
                  const Ragged& sentences, bool reverse, const Tensor& dh, const Tensor& dx,
                  const GruNodes<T>& nodes) {
  const int64_t N = U.dim(1);
  const gemm::Packed<T> packed_U(U.as_matrix<T>());
  const Tensor carry = Tensor::zeros({sentences.count(), N}, U.dtype());
  const Tensor dgh = Tensor::empty({sentences.total(), 3 * N}, U.dtype());
  const auto d = dgh.as_matrix<T>(), previous = trace.previous.template as_matrix<T>();
  const auto gates = trace.gates.template as_matrix<T>();
  const Schedule& schedule = trace.schedule;
  for (int64_t k = schedule.steps() - 1; k >= 0; --k) {
    const int64_t first = schedule.first(k), active = schedule.active(k);
    for (int64_t rank = 0; rank < active; ++rank) {
      const int64_t row = position(sentences, schedule.sentence(rank), k, reverse);
      gru_row_backward<T>({gates.row(first + rank), previous.row(first + rank), dh.data<T>() + row * N,
                           carry.data<T>() + rank * N, nullptr,
                           dx.data<T>() + index[static_cast<size_t>(row)] * 3 * N, d.row(first + rank)},
                          N);
    }
    if (k > 0)
      gemm::multiply(d.row_range(first, first + active), packed_U, carry.as_matrix<T>().row_range(0, active),
                     {.accumulate = true});
  }
  if (nodes.U)
    nodes.U->contribute([&](const Tensor& g, bool more) {
      gemm::multiply(d.transposed(), previous, g.as_matrix<T>(), {.accumulate = more});
    });
  if (nodes.b)
    nodes.b->contribute([&](const Tensor& g, bool more) {
      if (!more) std::memset(g.bytes(), 0, static_cast<size_t>(g.byte_size()));
      simd::add_column_sums(d.data, d.rows, d.row_stride, g.data<T>(), 3 * N);
    });
}

}  // namespace

int64_t Ragged::longest() const {
  int64_t longest = 0;
  for (int64_t b = 0; b < count(); ++b) longest = std::max(longest, length(b));
  return longest;
}

const Operation kGruSequence("gru_sequence", [] {
  std::vector<Operation::Sample> samples;
  for (const bool reverse : {false, true})
    samples.push_back(sample(reverse ? "reverse" : "forward", {{4, 9}, {9, 3}, {9}}, [reverse](auto in) {
      return gru_sequence(in[0], kSampleIndex, in[1], in[2], kSampleSentences, reverse);
    }));
  return samples;
});

Tensor gru_sequence(const Tensor& x, std::span<const int32_t> index, const Tensor& U, const Tensor& b,
                    const Ragged& sentences, bool reverse) {
  const int64_t N = U.dim(1);
  if (U.dim(0) != 3 * N || x.dim(-1) != 3 * N || b.size() != 3 * N)
    throw ShapeError("[gru_sequence] x " + shape_text(x.shape()) + ", U " + shape_text(U.shape()) + ", b " +
                     shape_text(b.shape()) + ", expected [D, 3N], [3N, N], [3N]");
  if (static_cast<int64_t>(index.size()) != sentences.total())
    throw ShapeError("[gru_sequence] index [" + std::to_string(index.size()) + "], expected [" +
                     std::to_string(sentences.total()) + "]");
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto trace = std::make_shared<GruTrace<T>>(
        GruTrace<T>{Schedule(sentences), Tensor::empty({sentences.total(), 4 * N}, x.dtype()),
                    Tensor::empty({sentences.total(), N}, x.dtype())});
    Tensor h = Tensor::empty({sentences.total(), N}, x.dtype());
    run_forward<T>(x, index, U, b, sentences, reverse, *trace, h);
    const GruNodes<T> nodes{input(x), input(U), input(b)};
    if (!nodes.x && !nodes.U && !nodes.b) return h;
    const int64_t distinct = x.rows();
    return record(kGruSequence, h,
                  [=, kept = std::vector<int32_t>(index.begin(), index.end())](const Tensor& dh) {
                    const Tensor dx = Tensor::zeros({distinct, 3 * N}, U.dtype());
                    run_backward<T>(*trace, kept, U, sentences, reverse, dh, dx, nodes);
                    if (nodes.x)
                      nodes.x->contribute([&](const Tensor& g, bool more) {
                        if (more)
                          simd::add(g.data<T>(), dx.data<T>(), g.data<T>(), g.size());
                        else
                          std::memcpy(g.bytes(), dx.bytes(), static_cast<size_t>(g.byte_size()));
                      });
                  });
  });
}

Tensor gru_step(const Tensor& x, const Tensor& h, const Tensor& U, const Tensor& b) {
  const int64_t N = U.dim(1);
  const Tensor g = linear(h, U, b);                                            // [R, 3N]
  const Tensor rz = sigmoid(add(columns(x, 0, 2 * N), columns(g, 0, 2 * N)));  // [R, 2N]
  const Tensor q = multiply(columns(rz, 0, N), columns(g, 2 * N, 3 * N));      // [R, N]
  const Tensor n = tanh(add(columns(x, 2 * N, 3 * N), q));                     // [R, N]
  return mix(columns(rz, N, 2 * N), n, h);                                     // [R, N]
}

}  // namespace regard::autograd
