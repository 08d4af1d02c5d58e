// Decoding: one or four queries on a long cache, alone or in groups of heads that share keys, beside a plain
// read of the same memory, in turns. One JSON object a line: the best time of each in milliseconds, GB/s of
// the cache, and "of_read", the share of the read's bandwidth.
//
//   decode_bench [seconds a case, 0.3 unless given]

#include <cstdio>
#include <cstdlib>

#include "regard/bench/decode_cases.h"

namespace {

void run(const regard::bench::DecodeCase& s, bool bf16, int threads, double time) {
  regard::ThreadPool pool(threads);
  const regard::bench::DecodeTimes best = measure(s, bf16, time, pool);
  std::printf(
      "{\"system\": \"regard\", \"bench\": \"decode\", \"b\": %d, \"heads\": %d, \"kv_heads\": %d, "
      "\"queries\": %d, \"keys\": %d, \"width\": %d, \"page\": %d, \"stored\": \"%s\", \"threads\": %d, "
      "\"ms\": %.4f, \"gb_per_s\": %.1f, \"read_gb_per_s\": %.1f, \"of_read\": %.3f}\n",
      static_cast<int>(s.B), static_cast<int>(s.H), static_cast<int>(s.Hkv), static_cast<int>(s.T),
      static_cast<int>(s.S), static_cast<int>(s.D), static_cast<int>(s.page_size), bf16 ? "bf16" : "f32",
      threads, best.decode * 1e3, best.bytes / best.decode / 1e9, best.bytes / best.read / 1e9,
      best.read / best.decode);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double time = argc > 1 ? std::atof(argv[1]) : 0.3;
  for (const int threads : {1, 2})
    for (const regard::bench::DecodeCase& each : regard::bench::decode_cases())
      for (const bool bf16 : {false, true}) run(each, bf16, threads, time);
}
