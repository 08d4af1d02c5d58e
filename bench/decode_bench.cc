// Decoding: one or four queries on a long cache, alone or in groups of heads that share keys, beside a plain
// read of the same memory, in turns. One JSON object a line: the best time of each in milliseconds, GB/s of
// the cache, and "of_read", the share of the read's bandwidth.
//
//   decode_bench [seconds a case, 0.3 unless given]

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/best_of.h"
#include "regard/attention/decode.h"
#include "regard/base/aligned_buffer.h"

namespace {

using regard::BFloat16;
using regard::dense;

struct Shape {
  int64_t B, H, Hkv, S, D;
  int64_t page_size = 0;  // 0: contiguous
  int64_t T = 1;
};
constexpr Shape kShapes[] = {{1, 8, 8, 4096, 64},       {64, 8, 8, 512, 64},     {1, 8, 8, 4096, 128},
                             {1, 32, 8, 4096, 64},      {1, 64, 8, 4096, 64},    {1, 32, 8, 4096, 128},
                             {1, 8, 8, 4096, 64, 0, 4}, {1, 8, 8, 4096, 64, 16}, {64, 8, 8, 512, 64, 16}};

/// The sum of all words, in the widest vectors that the processor has.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t read(const uint64_t* x, int64_t n) {
  typedef uint64_t Words __attribute__((vector_size(64)));
  Words sums[4] = {};
  for (int64_t i = 0; i + 32 <= n; i += 32)
    for (int64_t j = 0; j < 4; ++j) sums[j] += *reinterpret_cast<const Words*>(x + i + 8 * j);
  const Words all = sums[0] + sums[1] + sums[2] + sums[3];
  uint64_t sum = 0;
  for (int j = 0; j < 8; ++j) sum += all[j];
  return sum;
}

template <class T>
void run(const Shape& s, int threads, double time) {
  const int64_t page = s.page_size ? s.page_size : s.S, pages = s.B * s.S / page,
                half = s.B * s.Hkv * s.S * s.D;
  regard::AlignedBuffer<T> cache(2 * half);
  for (int64_t i = 0; i < 2 * half; ++i)
    cache.data()[i] = T(static_cast<float>((i * 2654435761) >> 8 & 1023) / 512 - 1);
  std::vector<float> q(static_cast<size_t>(s.B * s.H * s.T * s.D), 0.1f), out(q.size());
  std::vector<int32_t> table;
  for (int64_t n = 0; n < pages; ++n) table.push_back(static_cast<int32_t>(n * 7919 % pages));
  const std::array<int64_t, 4> shape{pages, s.Hkv, page, s.D}, one{s.B, s.H, s.T, s.D};
  regard::attention::DecodeCache<T> view{
      dense<const T>(cache.data(), shape), dense<const T>(cache.data() + half, shape), {}};
  if (s.page_size) view.block_table = regard::matrix<const int32_t>(table.data(), s.B, s.S / page);
  const regard::View4<const float> queries = dense<const float>(q.data(), one);
  std::vector<float> scratch(static_cast<size_t>(decode_scratch_size(queries, view)));
  regard::ThreadPool pool(threads);
  const auto decode = [&] {
    regard::attention::decode(queries, view, dense(out.data(), one), {}, scratch, {}, &pool);
  };
  const int64_t words = 2 * half * static_cast<int64_t>(sizeof(T)) / 8, part = 1 << 16;
  std::vector<uint64_t> sums(static_cast<size_t>((words + part - 1) / part));
  const auto plain = [&] {
    pool.parallel_for(static_cast<int64_t>(sums.size()), [&](int64_t i) {
      sums[static_cast<size_t>(i)] =
          read(reinterpret_cast<const uint64_t*>(cache.data()) + i * part, std::min(part, words - i * part));
    });
  };
  const regard::bench::BestOfTwo best = regard::bench::best_of(time, decode, plain);
  const double bytes = static_cast<double>(2 * half) * sizeof(T);
  std::printf(
      "{\"system\": \"regard\", \"bench\": \"decode\", \"b\": %d, \"heads\": %d, \"kv_heads\": %d, "
      "\"queries\": %d, \"keys\": %d, \"width\": %d, \"page\": %d, \"stored\": \"%s\", \"threads\": %d, "
      "\"ms\": %.4f, \"gb_per_s\": %.1f, "
      "\"read_gb_per_s\": %.1f, \"of_read\": %.3f}\n",
      static_cast<int>(s.B), static_cast<int>(s.H), static_cast<int>(s.Hkv), static_cast<int>(s.T),
      static_cast<int>(s.S), static_cast<int>(s.D), static_cast<int>(s.page_size),
      sizeof(T) == 2 ? "bf16" : "f32", threads, best.a * 1e3, bytes / best.a / 1e9, bytes / best.b / 1e9,
      best.b / best.a);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double time = argc > 1 ? std::atof(argv[1]) : 0.3;
  for (const int threads : {1, 2})
    for (const Shape& shape : kShapes) {
      run<float>(shape, threads, time);
      run<BFloat16>(shape, threads, time);
    }
}
