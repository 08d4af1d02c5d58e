// A step of additive attention, forward, and forward with backward, in the shapes of additive_torch.py: one
// JSON object a line, the best of several runs in milliseconds. "ragged": lengths are uniform in S/2..S, as
// there; "full": all S. Gradients of q, k, v and the values start from zero in every run, as autograd's do.
//
//   additive_bench [seconds a case, 0.3 unless given]

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "bench/best_of.h"
#include "regard/attention/additive.h"

namespace {

using regard::matrix;
using Floats = std::vector<float>;

struct Shape {
  int64_t B, S, A, E;
};
constexpr Shape kShapes[] = {
    {1, 30, 256, 512}, {8, 20, 128, 256}, {64, 30, 256, 512}, {32, 50, 512, 1024}, {80, 50, 1000, 2000}};

Floats normals(int64_t n) {
  static std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Floats x(static_cast<size_t>(n));
  for (float& y : x) y = normal(random);
  return x;
}

void run(const Shape& shape, int threads, bool ragged, double time) {
  const int64_t B = shape.B, S = shape.S, A = shape.A, E = shape.E;
  std::mt19937 random(3);
  std::uniform_int_distribution<int64_t> length(S / 2, S);
  std::vector<int64_t> offsets = {0};
  for (int64_t b = 0; b < B; ++b) offsets.push_back(offsets.back() + (ragged ? length(random) : S));
  const int64_t n = offsets.back();
  const Floats q = normals(B * A), k = normals(n * A), h = normals(n * E), v = normals(A);
  Floats weights(static_cast<size_t>(B * S)), context(static_cast<size_t>(B * E)), dc(context.size(), 1.f);
  Floats dq(q.size()), dk(k.size()), dh(h.size()), dv(v.size());
  regard::ThreadPool pool(threads);
  const regard::attention::AdditiveOperands<float> operands{
      matrix(q.data(), B, A), matrix(k.data(), n, A), matrix(h.data(), n, E), v.data(), offsets, {}};
  const auto forward = [&] {
    additive_forward(operands, matrix(weights.data(), B, S), matrix(context.data(), B, E), &pool);
  };
  const auto both = [&] {
    forward();
    for (Floats* g : {&dk, &dh, &dv}) std::memset(g->data(), 0, g->size() * sizeof(float));
    additive_backward(operands, matrix<const float>(weights.data(), B, S),
                      {matrix<const float>(dc.data(), B, E),
                       {},
                       matrix(dq.data(), B, A),
                       matrix(dk.data(), n, A),
                       matrix(dh.data(), n, E),
                       dv.data()},
                      &pool);
  };
  const regard::bench::BestOfTwo best = regard::bench::best_of(time, forward, both);
  std::printf(
      "{\"system\": \"regard\", \"bench\": \"additive\", \"b\": %d, \"s\": %d, \"a\": %d, \"e\": %d, "
      "\"threads\": %d, "
      "\"lengths\": \"%s\", \"forward_ms\": %.4f, \"forward_backward_ms\": %.4f}\n",
      static_cast<int>(B), static_cast<int>(S), static_cast<int>(A), static_cast<int>(E), threads,
      ragged ? "ragged" : "full", best.a * 1e3, best.b * 1e3);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double time = argc > 1 ? std::atof(argv[1]) : 0.3;
  for (const int threads : {1, 2})
    for (const bool ragged : {true, false})
      for (const Shape& shape : kShapes) run(shape, threads, ragged, time);
}
