#include "regard/attention/attention.h"

#include <cstdio>
#include <vector>

int main() {  // a batch of 1, 2 heads, 5 positions of width 4: every position attends to itself and what is
              // before it
  std::vector<float> x(1 * 2 * 5 * 4), out(x.size());
  for (size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n % 7) - 3;
  const auto view = regard::dense(x.data(), std::array<int64_t, 4>{1, 2, 5, 4});
  const auto result = regard::dense(out.data(), view.shape);
  regard::attention::attention_forward(view, view, view, {.out = result}, {.causal = true});
  for (const float y : out) std::printf("%g ", y);
}
