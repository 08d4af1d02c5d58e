#include "regard/attention/attention.h"

#include <cstdio>
#include <vector>

int main() {  // one item, 2 heads, 5 positions of width 4, each of which attends to those up to itself
  std::vector<float> x(1 * 2 * 5 * 4), out(x.size());
  for (size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n % 7) - 3;
  const auto in = regard::dense<const float, 4>(x.data(), {1, 2, 5, 4});
  const auto result = regard::dense<float, 4>(out.data(), in.shape);
  regard::attention::attention_forward(in, in, in, {.out = result}, {.causal = true});
  for (const float y : out) std::printf("%g ", y);
}
