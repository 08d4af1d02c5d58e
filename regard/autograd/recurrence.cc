#include "regard/autograd/recurrence.h"

namespace regard::autograd {

int64_t Ragged::longest() const {
  int64_t longest = 0;
  for (int64_t b = 0; b < count(); ++b) longest = std::max(longest, length(b));
  return longest;
}

void require_recurrence(const char* operation, const RecurrenceInputs& in, const Ragged& sentences, int64_t G,
                        int64_t S) {
  const auto fail = [&](const std::string& what) {
    throw ShapeError(std::string("[") + operation + "] " + what);
  };
  const int64_t N = in.U.rank() == 2 ? in.U.dim(1) : 0;
  if (in.U.rank() != 2 || in.U.dim(0) != G * N || in.x.rank() < 1 || in.x.dim(-1) != G * N ||
      in.b.size() != G * N)
    fail("x " + shape_text(in.x.shape()) + ", U " + shape_text(in.U.shape()) + ", b " +
         shape_text(in.b.shape()) + ", expected [D, " + std::to_string(G) + "N], [" + std::to_string(G) +
         "N, N], [" + std::to_string(G) + "N]");
  if (static_cast<int64_t>(in.index.size()) != sentences.total())
    fail("index [" + std::to_string(in.index.size()) + "], expected [" + std::to_string(sentences.total()) +
         "]");
  for (const int32_t row : in.index)
    if (row < 0 || row >= in.x.rows())
      fail("index " + std::to_string(row) + ", expected a row of x " + shape_text(in.x.shape()));
  if (in.initial.defined() && in.initial.shape() != Shape{sentences.count(), S * N})
    fail("initial " + shape_text(in.initial.shape()) + ", expected " +
         shape_text(Shape{sentences.count(), S * N}));
}

}  // namespace regard::autograd
