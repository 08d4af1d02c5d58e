// Decoding allocates nothing: this file counts what the test program takes from operator new. Sanitizers have
// an operator new of their own, which this one would hide.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "regard/attention/decode.h"

namespace {
std::atomic<int64_t> allocations{0};
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace regard::attention {
namespace {

TEST(Decode, AllocatesNothing) {
  const std::array<int64_t, 4> one{2, 4, 1, 40}, pages{9, 2, 256, 40};
  const std::vector<float> q(2 * 4 * 40, 0.5f), keys(9 * 2 * 256 * 40, 0.25f);
  const std::vector<int32_t> table = {8, 1, 3, 7, 0, 2, 4, 6};
  const std::vector<int64_t> lengths = {1000, 1024};
  const std::vector<float> slopes = {1, 0.5f, 0.25f, 0.125f};
  std::vector<float> out(q.size()), lse(8);
  const DecodeCache<float> cache{dense(keys.data(), pages), dense(keys.data(), pages),
                                 matrix<const int32_t>(table.data(), 2, 4)};
  std::vector<float> scratch(static_cast<size_t>(decode_scratch_size(dense(q.data(), one), cache)));
  DecodeOptions<float> options;
  options.causal = true;
  options.softcap = 30;
  options.key_lengths = lengths;
  options.alibi_slopes = slopes;
  const int64_t before = allocations;
  decode(dense(q.data(), one), cache, dense(out.data(), one),
         dense(lse.data(), std::array<int64_t, 3>{2, 4, 1}), scratch, options);
  EXPECT_EQ(allocations, before);
  EXPECT_NEAR(out[0], 0.25, 1e-6);
}

}  // namespace
}  // namespace regard::attention

#endif
