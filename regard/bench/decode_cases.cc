#include "regard/bench/decode_cases.h"

#include <algorithm>
#include <array>
#include <vector>

#include "regard/attention/decode.h"
#include "regard/base/aligned_buffer.h"
#include "regard/base/bfloat16.h"
#include "regard/bench/timing.h"
#include "regard/bench/yardsticks.h"

namespace regard::bench {
namespace {

constexpr DecodeCase kCases[] = {{1, 8, 8, 4096, 64},       {64, 8, 8, 512, 64},     {1, 8, 8, 4096, 128},
                                 {1, 32, 8, 4096, 64},      {1, 64, 8, 4096, 64},    {1, 32, 8, 4096, 128},
                                 {1, 8, 8, 4096, 64, 0, 4}, {1, 8, 8, 4096, 64, 16}, {64, 8, 8, 512, 64, 16}};

/// Keys and values in arrays of their own, pages in a scattered order.
template <class T>
class Cache {
 public:
  explicit Cache(const DecodeCase& step)
      : page_(step.page_size ? step.page_size : step.S),
        pages_(step.B * step.S / page_),
        half_(step.B * step.Hkv * step.S * step.D),
        keys_(half_),
        values_(half_) {
    for (AlignedBuffer<T>* numbers : {&keys_, &values_})
      for (int64_t i = 0; i < half_; ++i)
        numbers->data()[i] = T(static_cast<float>((i * 2654435761) >> 8 & 1023) / 512 - 1);
    const std::array<int64_t, 4> shape{pages_, step.Hkv, page_, step.D};
    view_ = {dense<const T>(keys_.data(), shape), dense<const T>(values_.data(), shape), {}};
    if (step.page_size == 0) return;
    for (int64_t n = 0; n < pages_; ++n) table_.push_back(static_cast<int32_t>(n * 7919 % pages_));
    view_.block_table = matrix<const int32_t>(table_.data(), step.B, step.S / page_);
  }

  const attention::DecodeCache<T>& view() const { return view_; }
  /// The keys, then the values.
  std::array<const uint64_t*, 2> words() const {
    return {reinterpret_cast<const uint64_t*>(keys_.data()),
            reinterpret_cast<const uint64_t*>(values_.data())};
  }
  /// Of each of the two.
  int64_t bytes() const { return half_ * static_cast<int64_t>(sizeof(T)); }

 private:
  int64_t page_, pages_, half_;
  AlignedBuffer<T> keys_, values_;
  std::vector<int32_t> table_;
  attention::DecodeCache<T> view_;
};

template <class T>
DecodeTimes measure_in(const DecodeCase& step, double time, ThreadPool& pool) {
  const Cache<T> cache(step);
  const std::array<int64_t, 4> queries_shape{step.B, step.H, step.T, step.D};
  std::vector<float> q(static_cast<size_t>(step.B * step.H * step.T * step.D), 0.1f), out(q.size());
  const View4<const float> queries = dense<const float>(q.data(), queries_shape);
  std::vector<float> scratch(static_cast<size_t>(attention::decode_scratch_size(queries, cache.view())));
  const auto decode = [&] {
    attention::decode(queries, cache.view(), dense(out.data(), queries_shape), {}, scratch, {}, &pool);
  };
  constexpr int64_t kPart = 1 << 16;  // words
  const int64_t words = cache.bytes() / 8;
  const int64_t parts = (words + kPart - 1) / kPart;  // of each array
  std::vector<uint64_t> sums(static_cast<size_t>(2 * parts));
  const auto read = [&] {
    pool.parallel_for(static_cast<int64_t>(sums.size()), [&](int64_t n) {
      const int64_t begin = n % parts * kPart;
      sums[static_cast<size_t>(n)] =
          sum_of_words(cache.words()[static_cast<size_t>(n / parts)] + begin, std::min(kPart, words - begin));
    });
  };
  const BestOfTwo best = best_of(time, decode, read);
  return {best.a, best.b, static_cast<double>(2 * cache.bytes())};
}

}  // namespace

std::string DecodeCase::name() const {
  std::string text = "decode " + std::to_string(B) + "," + std::to_string(H);
  if (Hkv != H) text += "/" + std::to_string(Hkv);
  text += "," + std::to_string(S) + "," + std::to_string(D);
  if (T != 1) text += " queries " + std::to_string(T);
  return page_size ? text + " pages " + std::to_string(page_size) : text;
}

std::span<const DecodeCase> decode_cases() { return kCases; }

DecodeTimes measure(const DecodeCase& step, bool bf16, double time, ThreadPool& pool) {
  return bf16 ? measure_in<BFloat16>(step, time, pool) : measure_in<float>(step, time, pool);
}

}  // namespace regard::bench
