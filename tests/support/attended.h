#pragma once

#include "regard/attention/attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/every_target.h"

namespace regard::tests {

/// A case whose options and numbers a test may change before it runs.
template <class T>
struct Attended : AttentionNumbers<T> {
  explicit Attended(const AttentionCase& c) : AttentionNumbers<T>(c), changed(this->options()) {}
  void forward(bool all = true) {
    attention::attention_forward(this->q_view(), this->k_view(), this->v_view(), this->outputs(all), changed);
  }
  void backward() {
    attention::attention_backward(this->q_view(), this->k_view(), this->v_view(), this->out_view(this->out),
                                  this->row_view(this->lse), this->gradients(), changed);
  }
  T* row(std::vector<T>& x, int64_t i, int64_t width) { return x.data() + i * width; }
  attention::AttentionOptions<T> changed;
};

/// `test` takes a zero of the type: float on every instruction set, then double.
template <class Test>
void on_every_path(const Test& test) {
  on_every_target([&] { test(float{}); });
  test(double{});
}

}  // namespace regard::tests
