#pragma once
// What scores gain by where a key stands from its query (Shaw, Raffel, Parikh and others), as a bias for
// the attention kernels: bias_ij = e[i, c(j - i)], with e = q a' / sqrt(D) or a table's column repeated.

#include <algorithm>
#include <cmath>
#include <vector>

#include "regard/autograd/multi_head.h"
#include "regard/base/view.h"
#include "regard/gemm/gemm.h"

namespace regard::autograd {

/// One sentence's queries: `rows` of them from row `first`, the first at position `offset` of `keys`.
struct QueryRows {
  int64_t first = 0, rows = 0, keys = 0, offset = 0;
};

template <class T>
class RelativeScores {
 public:
  RelativeScores(const HeadOptions& options, std::vector<QueryRows> items, int64_t head_width)
      : keys_(options.relative_keys),
        table_(the_table(options)),
        heads_(options.heads),
        causal_(options.causal),
        clips_(keys_.defined() || options.distance_bias.defined()),
        scale_(static_cast<T>(1 / std::sqrt(static_cast<double>(head_width)))),
        items_(std::move(items)) {
    if (!any()) return;
    const Shape expected = keys_.defined() ? Shape{table_.dim(0), head_width} : Shape{table_.dim(0), heads_};
    if (table_.shape() != expected || (clips_ && table_.dim(0) % 2 == 0))
      throw ShapeError("[attention] relative terms " + shape_text(table_.shape()) + ", expected " +
                       shape_text(expected) + " (an odd number of distances)");
    for (const QueryRows& item : items_) {
      longest_queries_ = std::max(longest_queries_, item.rows);
      longest_keys_ = std::max(longest_keys_, item.keys);
    }
    for (int64_t distance = -longest_keys_; distance <= longest_keys_; ++distance)
      column_.push_back(clips_ ? clipped(distance) : bucket(distance));
    bias_ = Tensor::zeros({count(), heads_, longest_queries_, longest_keys_}, dtype_of<T>());
  }

  bool any() const { return table_.defined(); }
  const Tensor& table() const { return table_; }
  /// [B, H, longest T, longest S], or none.
  View4<T> bias() const { return view(bias_); }
  View4<T> view(const Tensor& x) const {
    if (!any()) return {};
    return dense(x.data<T>(), std::array{count(), heads_, longest_queries_, longest_keys_});
  }
  Tensor empty_bias() const { return any() ? Tensor::empty(bias_.shape(), bias_.dtype()) : Tensor(); }

  /// Fills the bias from the queries, q(h) [T, D] of head h.
  template <class Queries>
  void forward(const Queries& q) const {
    if (!any()) return;
    for (int64_t h = 0; h < heads_; ++h) {
      const Tensor product = products(q(h).rows);
      if (keys_.defined()) {
        gemm::multiply(q(h), keys_.as_matrix<T>().transposed(), product.as_matrix<T>());
        for (T& e : product.values<T>()) e *= scale_;
      }
      const MatrixView<const T> e =
          keys_.defined() ? MatrixView<const T>(product.as_matrix<T>())
                          : MatrixView<const T>{table_.data<T>() + h, q(h).rows, table_.dim(0), 0, heads_};
      for_each(h, bias(), [&](int64_t row, int64_t c, T& bias_ij) { bias_ij = e(row, c); });
    }
  }

  /// From d bias: d_q(h) += and d_table +=.
  template <class Queries, class Gradients>
  void backward(const Queries& q, const Tensor& d_bias, const Gradients& d_q, const Tensor& d_table) const {
    if (!any()) return;
    for (int64_t h = 0; h < heads_; ++h) {
      const Tensor de = Tensor::zeros({q(h).rows, table_.dim(0)}, dtype_of<T>());
      const auto e = de.as_matrix<T>();
      for_each(h, view(d_bias), [&](int64_t row, int64_t c, T& d) { e(row, c) += d; });
      if (keys_.defined()) {
        for (T& d : de.values<T>()) d *= scale_;
        gemm::multiply(MatrixView<const T>(e), MatrixView<const T>(keys_.as_matrix<T>()), d_q(h),
                       {.accumulate = true});
        gemm::multiply(MatrixView<const T>(e.transposed()), q(h), d_table.as_matrix<T>(),
                       {.accumulate = true});
      } else {
        for (int64_t row = 0; row < e.rows; ++row)
          for (int64_t c = 0; c < e.columns; ++c) d_table.as_matrix<T>()(c, h) += e(row, c);
      }
    }
  }

 private:
  static Tensor the_table(const HeadOptions& options) {
    Tensor table;
    for (const Tensor& one : {options.relative_keys, options.relative_bias, options.distance_bias}) {
      if (!one.defined()) continue;
      if (table.defined()) throw UsageError("[attention] more than one kind of relative terms");
      table = one;
    }
    return table;
  }
  int64_t count() const { return static_cast<int64_t>(items_.size()); }
  Tensor products(int64_t rows) const {
    return keys_.defined() ? Tensor::empty({rows, table_.dim(0)}, dtype_of<T>()) : Tensor();
  }

  /// body(query's row, column, element of x) for what head h may look at.
  template <class Body>
  void for_each(int64_t h, const View4<T>& x, const Body& body) const {
    for (int64_t b = 0; b < count(); ++b) {
      const QueryRows& item = items_[static_cast<size_t>(b)];
      for (int64_t i = 0; i < item.rows; ++i) {
        const int64_t position = i + item.offset, end = causal_ ? position + 1 : item.keys;
        T* const row = &x(b, h, i, int64_t{0});
        const int32_t* const column = column_.data() + longest_keys_ - position;
        for (int64_t j = 0; j < end; ++j) body(item.first + i, column[j], row[j]);
      }
    }
  }

  int32_t clipped(int64_t distance) const {
    const int64_t k = table_.dim(0) / 2;
    return static_cast<int32_t>(std::clamp(distance, -k, k) + k);
  }
  int32_t bucket(int64_t distance) const {
    constexpr double kLargestDistance = 128;
    const int64_t buckets = causal_ ? table_.dim(0) : table_.dim(0) / 2, near = buckets / 2;
    const int64_t first = !causal_ && distance > 0 ? buckets : 0;
    const int64_t n = causal_ ? std::max<int64_t>(-distance, 0) : std::abs(distance);
    if (n < near) return static_cast<int32_t>(first + n);
    const double ratio = static_cast<double>(n) / static_cast<double>(near);
    const double share = std::log(ratio) / std::log(kLargestDistance / static_cast<double>(near));
    const auto far = near + static_cast<int64_t>(share * static_cast<double>(buckets - near));
    return static_cast<int32_t>(first + std::min(far, buckets - 1));
  }

  Tensor keys_, table_, bias_;
  int64_t heads_;
  bool causal_, clips_;
  T scale_;
  std::vector<QueryRows> items_;
  int64_t longest_queries_ = 0, longest_keys_ = 0;
  std::vector<int32_t> column_;  // of distances -longest .. longest
};

}  // namespace regard::autograd
