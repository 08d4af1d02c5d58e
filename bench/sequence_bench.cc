// What a recurrence and self-attention cost over 1,024 steps: a layer of LSTM cells and one of self-attention
// in 8 heads, width 256, input projection and (attention) output projection included, forward, and forward
// with backward, in the shapes of scripts/sequence_torch.py. Threads share the sentences of the batch, or, of
// one sentence, nothing: an LSTM is serial, and a tape belongs to a thread. One JSON object a line, the best
// of several runs in milliseconds.
//
//   sequence_bench [threads, 1 unless given] [seconds a case, 1 unless given]

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <vector>

#include "regard/base/random.h"
#include "regard/base/thread_pool.h"
#include "regard/bench/timing.h"
#include "regard/nn/attention.h"
#include "regard/nn/cells.h"

namespace {

using regard::Tensor;
using regard::autograd::Ragged;

constexpr int64_t kLength = 1024, kWidth = 256, kHeads = 8;

Tensor normal(const regard::Shape& shape, double deviation, uint64_t stream) {
  return regard::nn::Initial::normal(deviation).draw(shape, 1, stream);
}

/// A layer over the sentences' rows x, and the tensors that its gradient is wanted for.
struct Layer {
  std::function<Tensor(const Tensor& x, const Ragged& sentences)> run;
  std::vector<Tensor> weights;
};

Layer lstm() {
  const Tensor W = normal({4 * kWidth, kWidth}, 0.05, 1), U = normal({4 * kWidth, kWidth}, 0.05, 2),
               b = normal({4 * kWidth}, 0.05, 3), c = normal({4 * kWidth}, 0.05, 4);
  return {[=](const Tensor& x, const Ragged& sentences) {
            std::vector<int32_t> index(static_cast<size_t>(sentences.total()));
            for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(i);
            return regard::autograd::lstm_sequence({regard::autograd::linear(x, W, b), index, U, c},
                                                   sentences, false);
          },
          {W, U, b, c}};
}

Layer self_attention() {
  const Tensor W = normal({3 * kWidth, kWidth}, 0.05, 5), b = normal({3 * kWidth}, 0.05, 6),
               O = normal({kWidth, kWidth}, 0.05, 7), c = normal({kWidth}, 0.05, 8);
  return {[=](const Tensor& x, const Ragged& sentences) {
            const Tensor qkv = regard::autograd::linear(x, W, b);
            return regard::autograd::linear(
                regard::autograd::self_attention(qkv, sentences, {.heads = kHeads}), O, c);
          },
          {W, b, O, c}};
}

void run(const char* name, const Layer& layer, int64_t batch, int threads, double time) {
  regard::ThreadPool pool(threads);
  const int64_t shards = std::min<int64_t>(batch, threads), each = batch / shards;
  std::vector<Tensor> inputs;
  Ragged sentences;
  for (int64_t i = 0; i < each; ++i) sentences.push_back(kLength);
  for (int64_t s = 0; s < shards; ++s)
    inputs.push_back(normal({each * kLength, kWidth}, 1, static_cast<uint64_t>(100 + s)));
  const double forward = regard::bench::best(time, [&] {
    pool.parallel_for(shards, [&](int64_t s) { layer.run(inputs[static_cast<size_t>(s)], sentences); });
  });
  const double both = regard::bench::best(time, [&] {
    std::deque<regard::autograd::Tape> tapes(static_cast<size_t>(shards));
    pool.parallel_for(shards, [&](int64_t s) {
      auto& tape = tapes[static_cast<size_t>(s)];
      const Tensor& x = inputs[static_cast<size_t>(s)];
      tape.watch(x);
      for (const Tensor& weight : layer.weights) tape.watch(weight);
      const regard::autograd::Tape::Recording recording(tape);
      tape.backward(regard::autograd::sum(layer.run(x, sentences)));
    });
  });
  std::printf(
      "{\"system\": \"regard\", \"case\": \"%s, batch %d\", \"threads\": %d, \"forward_ms\": %.3f, "
      "\"forward_backward_ms\": %.3f}\n",
      name, static_cast<int>(batch), threads, forward * 1e3, both * 1e3);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const double time = argc > 2 ? std::atof(argv[2]) : 1;
  const Layer recurrent = lstm(), attentive = self_attention();
  for (const int64_t batch : {1, 16}) run("lstm", recurrent, batch, threads, time);
  for (const int64_t batch : {1, 16}) run("self-attention", attentive, batch, threads, time);
}
