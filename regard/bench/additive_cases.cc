#include "regard/bench/additive_cases.h"

#include <cstring>
#include <random>
#include <vector>

#include "regard/attention/additive.h"
#include "regard/bench/timing.h"
#include "regard/bench/yardsticks.h"

namespace regard::bench {
namespace {

constexpr AdditiveCase kCases[] = {
    {1, 30, 256, 512}, {8, 20, 128, 256}, {64, 30, 256, 512}, {32, 50, 512, 1024}, {80, 50, 1000, 2000}};

/// Where each source begins, and the end of the last.
std::vector<int64_t> starts(const AdditiveCase& step) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int64_t> length(step.S / 2, step.S);
  std::vector<int64_t> offsets = {0};
  for (int64_t b = 0; b < step.B; ++b)
    offsets.push_back(offsets.back() + (step.ragged ? length(random) : step.S));
  return offsets;
}

}  // namespace

std::string AdditiveCase::name() const {
  return "B " + std::to_string(B) + " S " + std::to_string(S) + " A " + std::to_string(A) + " E " +
         std::to_string(E);
}

std::span<const AdditiveCase> additive_cases() { return kCases; }

AdditiveTimes measure(const AdditiveCase& step, double time, ThreadPool& pool) {
  const int64_t B = step.B, S = step.S, A = step.A, E = step.E;
  const std::vector<int64_t> offsets = starts(step);
  const int64_t n = offsets.back();
  const std::vector<float> q = normal_numbers(B * A, 1), k = normal_numbers(n * A, 2),
                           h = normal_numbers(n * E, 3), v = normal_numbers(A, 4);
  std::vector<float> weights(static_cast<size_t>(B * S)), context(static_cast<size_t>(B * E));
  const std::vector<float> d_context(context.size(), 1.f);
  std::vector<float> d_q(q.size()), d_k(k.size()), d_h(h.size()), d_v(v.size());
  const attention::AdditiveOperands<float> operands{
      matrix(q.data(), B, A), matrix(k.data(), n, A), matrix(h.data(), n, E), v.data(), offsets, {}};
  const auto forward = [&] {
    attention::additive_forward(operands, matrix(weights.data(), B, S), matrix(context.data(), B, E), &pool);
  };
  const auto both = [&] {
    forward();
    for (std::vector<float>* g : {&d_k, &d_h, &d_v}) std::memset(g->data(), 0, g->size() * sizeof(float));
    attention::additive_backward(operands, matrix<const float>(weights.data(), B, S),
                                 {.d_context = matrix(d_context.data(), B, E),
                                  .d_weights = {},
                                  .d_query = matrix(d_q.data(), B, A),
                                  .d_keys = matrix(d_k.data(), n, A),
                                  .d_values = matrix(d_h.data(), n, E),
                                  .d_v = d_v.data()},
                                 &pool);
  };
  const BestOfTwo best = best_of(time, forward, both);
  return {best.a, best.b, 2. * static_cast<double>(n * (A + E))};
}

}  // namespace regard::bench
