#pragma once
// The order in which a ragged batch is stepped through: sentences by falling length, steps time-major.

#include <algorithm>
#include <numeric>
#include <vector>

#include "regard/autograd/sequences.h"

namespace regard::autograd {

/// At step k the active sentences are order[0..active(k)); their rows are first(k) + rank in time-major
/// storage.
class Schedule {
 public:
  explicit Schedule(const Ragged& ragged) : order_(static_cast<size_t>(ragged.count())) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int32_t a, int32_t b) { return ragged.length(a) > ragged.length(b); });
    int64_t active = ragged.count();
    for (int64_t k = 0; k < ragged.longest(); ++k) {
      while (active > 0 && ragged.length(order_[static_cast<size_t>(active - 1)]) <= k) --active;
      first_.push_back(first_.back() + active);
    }
  }
  int64_t steps() const { return static_cast<int64_t>(first_.size()) - 1; }
  int64_t first(int64_t k) const { return first_[static_cast<size_t>(k)]; }
  int64_t active(int64_t k) const { return first(k + 1) - first(k); }
  int32_t sentence(int64_t rank) const { return order_[static_cast<size_t>(rank)]; }
  std::span<const int32_t> order() const { return order_; }

 private:
  std::vector<int32_t> order_;
  std::vector<int64_t> first_{0};
};

}  // namespace regard::autograd
