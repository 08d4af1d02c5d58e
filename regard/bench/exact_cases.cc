#include "regard/bench/exact_cases.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "regard/attention/attention.h"
#include "regard/bench/timing.h"
#include "regard/bench/yardsticks.h"

namespace regard::bench {
namespace {

constexpr Pass kForward = Pass::forward, kBackward = Pass::backward;
constexpr ExactCase kCases[] = {
    {kForward, {1, 8, 1024, 64}},
    {kForward, {1, 8, 4096, 64}},
    {kForward, {1, 8, 1024, 128}},
    {kForward, {1, 8, 1024, 32}},
    {kForward, {1, 8, 1024, 64}, {.causal = true}},
    {kForward, {1, 8, 4096, 64}, {.causal = true}},
    {kForward, {8, 8, 128, 64}},
    {kForward, {8, 8, 128, 64}, {.causal = true}},
    {kForward, {32, 8, 32, 32}},
    {kBackward, {1, 8, 1024, 64}},
    {kBackward, {1, 8, 1024, 64}, {.causal = true}},
    {kBackward, {1, 8, 1024, 128}},
    {kBackward, {8, 8, 128, 64}},
    {kForward, {1, 8, 1024, 64}, {.bf16 = true}},
    {kForward, {1, 1, 16384, 64}, {.causal = true}},
    {kForward, {1, 1, 16384, 64}, {.causal = true, .window = 256}},
    {kForward, {1, 8, 1024, 64}, {.extra = Extra::mask}},
    {kForward, {1, 8, 1024, 64}, {.extra = Extra::bias}},
    {kForward, {1, 8, 1024, 64}, {.causal = true, .extra = Extra::alibi}},
    {kForward, {1, 8, 1024, 64}, {.extra = Extra::softcap}},
    {kForward, {1, 8, 1024, 64}, {.extra = Extra::dropout}},
    {kForward, {1, 8, 1024, 64}, {.extra = Extra::weights}},
    {kBackward, {1, 8, 1024, 64}, {.extra = Extra::mask}},
    {kBackward, {1, 8, 1024, 64}, {.extra = Extra::bias}},
    {kBackward, {1, 8, 1024, 64}, {.extra = Extra::dropout}},
};

/// The arrays of a case and the calls on them.
template <class T>
class Problem {
 public:
  explicit Problem(const ExactCase& exact) : shape_(exact.shape), extra_(exact.variant.extra) {
    uint64_t seed = 0;
    for (std::vector<T>* x : {&q_, &k_, &v_, &d_out_}) {
      for (const float y : normal_numbers(size(), ++seed)) x->push_back(static_cast<T>(y));
    }
    for (std::vector<T>* x : {&out_, &d_q_, &d_k_, &d_v_}) x->resize(q_.size());
    log_sum_exp_.resize(static_cast<size_t>(shape_[0] * shape_[1] * shape_[2]));
    options_.causal = exact.variant.causal;
    options_.window = {exact.variant.window, -1};
    add_extra();
  }

  void forward(bool with_log_sum_exp, ThreadPool& pool) {
    attention::AttentionOutputs<T> outputs{.out = view(out_)};
    if (with_log_sum_exp) outputs.log_sum_exp = rows();
    if (extra_ == Extra::weights) outputs.weights = dense(weights_.data(), pairs());
    attention::attention_forward(view(q_), view(k_), view(v_), outputs, options_, &pool);
  }
  void backward(ThreadPool& pool) {
    attention::attention_backward(
        view(q_), view(k_), view(v_), view(out_), rows(),
        {.d_out = view(d_out_), .d_q = view(d_q_), .d_k = view(d_k_), .d_v = view(d_v_)}, options_, &pool);
  }

 private:
  int64_t size() const { return shape_[0] * shape_[1] * shape_[2] * shape_[3]; }
  std::array<int64_t, 4> pairs() const { return {shape_[0], shape_[1], shape_[2], shape_[2]}; }
  View4<T> view(std::vector<T>& x) { return dense(x.data(), shape_); }
  View3<float> rows() {
    return dense(log_sum_exp_.data(), std::array<int64_t, 3>{shape_[0], shape_[1], shape_[2]});
  }
  /// Mask and bias are one matrix for all heads.
  void add_extra() {
    const int64_t T_ = shape_[2];
    const std::array<int64_t, 4> one_matrix = {0, 0, T_, 1};
    if (extra_ == Extra::mask) {
      mask_ = std::make_unique<bool[]>(static_cast<size_t>(T_ * T_));
      std::fill_n(mask_.get(), T_ * T_, true);
      options_.mask = {mask_.get(), pairs(), one_matrix};
    }
    if (extra_ == Extra::bias) {
      bias_ = normal_numbers(T_ * T_);
      options_.bias = {bias_.data(), pairs(), one_matrix};
    }
    if (extra_ == Extra::alibi) {
      slopes_.assign(static_cast<size_t>(shape_[1]), 0.5f);
      options_.alibi_slopes = slopes_;
    }
    if (extra_ == Extra::softcap) options_.softcap = 30;
    if (extra_ == Extra::dropout) options_.dropout.probability = 0.1;
    if (extra_ == Extra::weights) weights_.resize(static_cast<size_t>(shape_[0] * shape_[1] * T_ * T_));
  }

  std::array<int64_t, 4> shape_;
  Extra extra_;
  attention::AttentionOptions<float> options_;
  std::vector<T> q_, k_, v_, d_out_, out_, d_q_, d_k_, d_v_;
  std::vector<float> log_sum_exp_, bias_, slopes_, weights_;
  std::unique_ptr<bool[]> mask_;
};

template <class T>
double measure_in(const ExactCase& exact, double time, ThreadPool& pool) {
  const bool backward = exact.pass == Pass::backward;
  const Clock clock = pool.threads() == 1 ? Clock::thread : Clock::wall;
  Problem<T> problem(exact);
  problem.forward(backward, pool);
  if (backward)
    return best(
        time, [&] { problem.backward(pool); }, clock);
  return best(
      time, [&] { problem.forward(false, pool); }, clock);
}

}  // namespace

const char* ExactCase::extra_name() const {
  switch (variant.extra) {
    case Extra::mask:
      return "mask";
    case Extra::bias:
      return "bias";
    case Extra::alibi:
      return "ALiBi";
    case Extra::softcap:
      return "softcap";
    case Extra::dropout:
      return "dropout";
    case Extra::weights:
      return "weights";
    case Extra::none:
      break;
  }
  return "";
}

std::string ExactCase::name() const {
  std::string text = std::string(pass_name()) + " ";
  for (size_t n = 0; n < shape.size(); ++n) text += (n ? "," : "") + std::to_string(shape[n]);
  if (variant.causal) text += " causal";
  if (variant.window >= 0) text += " window " + std::to_string(variant.window);
  if (variant.bf16) text += " bf16";
  return variant.extra == Extra::none ? text : text + " " + extra_name();
}

double ExactCase::operations() const {
  const auto [B, H, T, D] = shape;
  double pairs = 0;
  for (int64_t i = 0; i < T; ++i) {
    const int64_t end = variant.causal ? i + 1 : T;
    const int64_t begin = variant.window < 0 ? 0 : std::max<int64_t>(0, i - variant.window);
    pairs += static_cast<double>(end - begin);
  }
  return (pass == Pass::forward ? 4. : 10.) * static_cast<double>(B * H * D) * pairs;
}

std::span<const ExactCase> exact_cases() { return kCases; }

double measure(const ExactCase& exact, double time, ThreadPool& pool) {
  return exact.variant.bf16 ? measure_in<BFloat16>(exact, time, pool) : measure_in<float>(exact, time, pool);
}

}  // namespace regard::bench
