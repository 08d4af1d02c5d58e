#include "regard/nn/unrolled.h"

#include <vector>

#include "regard/autograd/operations.h"
#include "regard/autograd/schedule.h"

namespace regard::nn {

using autograd::concat_rows;
using autograd::Ragged;
using autograd::rows;

namespace {

void require(const char* operation, const Tensor& tensor, const Shape& expected) {
  if (tensor.shape() != expected)
    throw ShapeError(std::string("[") + operation + "] " + shape_text(tensor.shape()) + ", expected " +
                     shape_text(expected));
}

}  // namespace

Tensor unroll(const Ragged& sentences, bool reverse, const Tensor& initial, const UnrolledStep& step) {
  const int64_t B = sentences.count(), W = initial.dim(-1);
  require("unroll: initial", initial, {B, W});
  const autograd::Schedule schedule(sentences);
  std::vector<int32_t> row_of(static_cast<size_t>(sentences.total()));  // time-major row of each position
  std::vector<Tensor> states;
  Tensor state = rows(initial, schedule.order());
  for (int64_t k = 0; k < schedule.steps(); ++k) {
    const auto active = schedule.order().first(static_cast<size_t>(schedule.active(k)));
    std::vector<int32_t> positions;
    for (const int32_t sentence : active) {
      const int64_t position = sentences.position(sentence, k, reverse);
      row_of[static_cast<size_t>(position)] =
          static_cast<int32_t>(schedule.first(k)) + static_cast<int32_t>(positions.size());
      positions.push_back(static_cast<int32_t>(position));
    }
    state = step({k, active, positions}, autograd::row_range(state, 0, schedule.active(k)));
    require("unroll: a step's result", state, {schedule.active(k), W});
    states.push_back(state);
  }
  if (states.empty()) return Tensor::empty({0, W}, initial.dtype());
  return rows(concat_rows(states), row_of);
}

Tensor last_states(const Tensor& states, const Ragged& sentences, bool reverse, const Tensor& initial) {
  const int64_t B = sentences.count(), W = states.dim(-1);
  require("last_states: states", states, {sentences.total(), W});
  if (initial.defined()) require("last_states: initial", initial, {B, W});
  bool any_empty = false;
  std::vector<int32_t> last;
  for (int64_t b = 0; b < B; ++b) {
    const bool is_empty = sentences.length(b) == 0;
    last.push_back(static_cast<int32_t>(is_empty ? sentences.total() + b
                                                 : sentences.position(b, sentences.length(b) - 1, reverse)));
    any_empty |= is_empty;
  }
  if (!any_empty) return rows(states, last);
  const Tensor before = initial.defined() ? initial : Tensor::zeros({B, W}, states.dtype());
  return rows(concat_rows(std::vector{states, before}), last);
}

}  // namespace regard::nn
