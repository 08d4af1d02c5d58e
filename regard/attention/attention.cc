// Exact attention: what the caller gave is checked, cut into parts that the pool shares out, and what lies
// behind an item's lengths is filled.

#include "regard/attention/attention.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "regard/attention/attention_f32.h"
#include "regard/attention/attention_reference.h"
#include "regard/attention/key_blocks.h"
#include "regard/attention/problem.h"
#include "regard/base/aligned_buffer.h"
#include "regard/base/error.h"

namespace regard::attention {
namespace {

template <class R>
constexpr R kInfinity = std::numeric_limits<R>::infinity();

void for_parts(int64_t parts, ThreadPool* pool, const std::function<void(int64_t)>& part) {
  if (pool) return pool->parallel_for(parts, part);
  for (int64_t n = 0; n < parts; ++n) part(n);
}

template <class T>
void fill(const MatrixView<T>& x, std::type_identity_t<T> value) {
  for (int64_t i = 0; i < x.rows; ++i) {
    if (x.column_stride == 1) {
      std::fill_n(x.row(i), x.columns, value);
    } else {
      for (int64_t j = 0; j < x.columns; ++j) x(i, j) = value;
    }
  }
}

template <class T, size_t N>
void expect_shape(const char* name, const View<T, N>& x, const std::array<int64_t, N>& expected,
                  const char* letters) {
  attention::expect_shape(name, x.shape, expected, letters);
}

/// Results over pairs are for items and may be longer than the longest.
template <class R, class T>
void expect_pairs(const char* name, const View4<R>& x, const Problem<T>& problem) {
  const auto least = problem.score_shape();
  const bool fits =
      x.shape[0] == least[0] && x.shape[1] == least[1] && x.shape[2] >= least[2] && x.shape[3] >= least[3];
  if (x && !fits) expect_shape(name, x, least, "B, H, at least the longest T and S");
}

/// Parts of a forward: tiles of queries, each of one head of one item; the last first, which are the longest
/// if causal.
template <class T>
class ForwardParts {
 public:
  ForwardParts(const Problem<T>& problem, const BlockSparse& blocks) : heads_(problem.heads()) {
    for (const Item& item : problem.items()) {
      tiles_.emplace_back(item.padded_queries, blocks);
      ends_.push_back(count() + heads_ * tiles_.back().count());
    }
  }
  int64_t count() const { return ends_.empty() ? 0 : ends_.back(); }

  /// body(item, head, first query, last query) of part n.
  template <class Body>
  void run(int64_t n, const Body& body) const {
    const auto item = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), n) - ends_.begin());
    const int64_t inside = n - (item > 0 ? ends_[item - 1] : 0);
    const Tiles& tiles = tiles_[item];
    const int64_t head = inside / tiles.count(), tile = tiles.count() - 1 - (inside - head * tiles.count());
    const auto [first, last] = tiles.queries(tile);
    if (first < last) body(static_cast<int64_t>(item), head, first, last);
  }

 private:
  int64_t heads_;
  std::vector<Tiles> tiles_;
  std::vector<int64_t> ends_;
};

/// A forward's work on one head of one item.
template <class T>
class ForwardHead {
 public:
  using R = Real<T>;

  ForwardHead(const Problem<T>& problem, const AttentionOutputs<T>& outputs, int64_t b, int64_t h)
      : outputs_(outputs), item_(problem.items()[static_cast<size_t>(b)]), head_(problem.head(item_, b, h)) {
    out_ = item_rows(outputs.out, item_, h, item_.first_query, item_.padded_queries);
    if (outputs.log_sum_exp) {
      log_sum_exp_ = item_column(outputs.log_sum_exp, item_, h, item_.first_query, item_.padded_queries);
    }
    weights_ = matrix_at(outputs.weights, b, h);
    scores_ = matrix_at(outputs.scores, b, h);
    if (outputs.column_sums) {
      column_sums_ = item_column(outputs.column_sums, item_, h, item_.first_key, item_.padded_keys);
    }
  }

  /// Queries [first, last) of one tile; what they add to the column sums is added to `column_sums`, if not
  /// null.
  void run(int64_t first, int64_t last, double* column_sums) const {
    const int64_t valid = std::clamp(item_.queries, first, last);
    fill(out_.row_range(valid, last), T{});
    if (log_sum_exp_.data) fill(log_sum_exp_.row_range(valid, last), -kInfinity<R>);
    if (weights_.data) fill(weights_.row_range(first, last), R{0});
    if (scores_.data) fill(scores_.row_range(first, last), -kInfinity<R>);
    if (first == valid) return;
    const int64_t count = valid - first;
    const bool pairs = weights_.data || scores_.data || column_sums;
    TileStatistics statistics;
    forward_tile({head_, first, count, out_, log_sum_exp_.data || pairs ? &statistics : nullptr});
    for (int64_t n = 0; n < count && log_sum_exp_.data; ++n) {
      log_sum_exp_(first + n, 0) = statistics.log_sum_exp[n];
    }
    if (pairs) weights_tile({head_, first, count, statistics, weights_, scores_, column_sums});
  }

  /// All queries at once, by the definition.
  void run_reference() const requires(std::is_same_v<T, double>) {
    fill(out_, 0.);
    if (log_sum_exp_.data) fill(log_sum_exp_, -kInfinity<double>);
    if (weights_.data) fill(weights_, 0.);
    if (scores_.data) fill(scores_, -kInfinity<double>);
    if (column_sums_.data) fill(column_sums_, 0.);
    reference::forward(head_, {out_, log_sum_exp_, weights_, scores_, column_sums_});
  }

  /// Rows behind all items' queries, in results over pairs.
  void fill_rest(int64_t covered) const {
    if (weights_.data) fill(weights_.row_range(covered, weights_.rows), R{0});
    if (scores_.data) fill(scores_.row_range(covered, scores_.rows), -kInfinity<R>);
  }

  void set_column_sums(const std::vector<double>& sums) const {
    for (int64_t j = 0; j < column_sums_.rows; ++j)
      column_sums_(j, 0) = static_cast<R>(sums[static_cast<size_t>(j)]);
  }
  int64_t padded_queries() const { return item_.padded_queries; }
  int64_t padded_keys() const { return item_.padded_keys; }

 private:
  const AttentionOutputs<T>& outputs_;
  const Item& item_;
  Head<T> head_;
  MatrixView<T> out_;
  MatrixView<R> log_sum_exp_, weights_, scores_, column_sums_;
};

template <class T>
void check_outputs(const Problem<T>& problem, const AttentionOutputs<T>& outputs) {
  const auto [B, H, T_all, E] = problem.out_shape();
  expect_shape("out", outputs.out, problem.out_shape(), "B, H, T, E");
  if (outputs.log_sum_exp) expect_shape("log_sum_exp", outputs.log_sum_exp, {B, H, T_all}, "B, H, T");
  if (outputs.column_sums) {
    expect_shape("column_sums", outputs.column_sums, {B, H, problem.k_shape()[2]}, "B, H, S");
  }
  expect_pairs("weights", outputs.weights, problem);
  expect_pairs("scores", outputs.scores, problem);
}

template <class T>
void forward(View4<const T> q, View4<const T> k, View4<const T> v, const AttentionOutputs<T>& outputs,
             const AttentionOptions<Real<T>>& options, ThreadPool* pool) {
  const Problem<T> problem(q, k, v, options);
  check_outputs(problem, outputs);
  const auto items = static_cast<int64_t>(problem.items().size()), H = problem.heads();
  const bool pairs = outputs.weights || outputs.scores;
  if constexpr (std::is_same_v<T, double>) {
    for_parts(items * H, pool,
              [&](int64_t n) { ForwardHead<T>(problem, outputs, n / H, n % H).run_reference(); });
  } else if (outputs.column_sums) {  // a sum over the tiles, in their order
    for_parts(items * H, pool, [&](int64_t n) {
      const ForwardHead<T> head(problem, outputs, n / H, n % H);
      const Tiles tiles(head.padded_queries(), options.blocks);
      std::vector<double> sums(static_cast<size_t>(head.padded_keys()));
      for (int64_t t = 0; t < tiles.count(); ++t) {
        const auto [first, last] = tiles.queries(t);
        if (first < last) head.run(first, last, sums.data());
      }
      head.set_column_sums(sums);
      head.fill_rest(head.padded_queries());
    });
  } else {
    const ForwardParts<T> parts(problem, options.blocks);
    for_parts(parts.count(), pool, [&](int64_t n) {
      parts.run(n, [&](int64_t b, int64_t h, int64_t first, int64_t last) {
        ForwardHead<T>(problem, outputs, b, h).run(first, last, nullptr);
      });
    });
    for (int64_t n = 0; n < items * H && pairs; ++n) {
      const ForwardHead<T> head(problem, outputs, n / H, n % H);
      head.fill_rest(head.padded_queries());
    }
  }
}

/// Rows that gradients of keys or values are added to: the caller's own where the kernel can, else a copy in
/// f32.
template <class T>
class KeyGradients {
 public:
  using R = Real<T>;

  explicit KeyGradients(const MatrixView<T>& to) : to_(to) {
    fill(to, T{});
    if constexpr (std::is_same_v<T, R>) {
      rows_ = to;
      if (std::is_same_v<T, double> || (to.column_stride == 1 && to.columns % kGradientPad == 0)) return;
    }
    const int64_t stride = (to.columns + kGradientPad - 1) / kGradientPad * kGradientPad;
    rows_ = {copy_.grow(std::max<int64_t>(1, to.rows * stride)), to.rows, to.columns, stride, 1};
    std::fill_n(rows_.data, to.rows * stride, R{0});
  }
  const MatrixView<R>& rows() const { return rows_; }
  void write(int64_t keys) const {
    if (!copy_.data()) return;
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t c = 0; c < to_.columns; ++c) to_(j, c) = static_cast<T>(rows_(j, c));
    }
  }

 private:
  MatrixView<T> to_;
  MatrixView<R> rows_;
  AlignedBuffer<R> copy_;
};

/// A backward's operands, and its work on all heads of queries that share one head of keys of one item.
template <class T>
struct Backward {
  using R = Real<T>;
  const Problem<T>& problem;
  View4<const T> out;
  View3<const R> log_sum_exp;
  const AttentionGradients<T>& gradients;
  std::vector<double>& d_sink;  ///< [items, H]

  void check() const;
  void run(int64_t b, int64_t kv) const;
};

template <class T>
void Backward<T>::check() const {
  const auto [B, H, T_all, E] = problem.out_shape();
  const AttentionGradients<T>& g = gradients;
  expect_shape("out", out, problem.out_shape(), "B, H, T, E");
  expect_shape("log_sum_exp", log_sum_exp, {B, H, T_all}, "B, H, T");
  expect_shape("d_out", g.d_out, problem.out_shape(), "B, H, T, E");
  if (g.d_log_sum_exp) expect_shape("d_log_sum_exp", g.d_log_sum_exp, {B, H, T_all}, "B, H, T");
  expect_shape("d_q", g.d_q, problem.q_shape(), "B, H, T, D");
  expect_shape("d_k", g.d_k, problem.k_shape(), "B, Hkv, S, D");
  expect_shape("d_v", g.d_v, problem.v_shape(), "B, Hkv, S, E");
  expect_pairs("d_bias", g.d_bias, problem);
  const std::array<int64_t, 1> sinks = {static_cast<int64_t>(g.d_sink.size())}, heads = {H};
  if (!g.d_sink.empty()) attention::expect_shape("d_sink", sinks, heads, "H");
}

template <class T>
void Backward<T>::run(int64_t b, int64_t kv) const {
  const Item& x = problem.items()[static_cast<size_t>(b)];
  const AttentionGradients<T>& g = gradients;
  const KeyGradients<T> d_k(item_rows(g.d_k, x, kv, x.first_key, x.padded_keys));
  const KeyGradients<T> d_v(item_rows(g.d_v, x, kv, x.first_key, x.padded_keys));
  for (int64_t h = kv * problem.group(); h < (kv + 1) * problem.group(); ++h) {
    const auto rows = [&](const auto& view) {
      return item_rows(view, x, h, x.first_query, x.padded_queries);
    };
    const auto column = [&](const auto& view) {
      return view ? item_column(view, x, h, x.first_query, x.padded_queries) : MatrixView<const R>{};
    };
    const Head<T> head = problem.head(x, b, h);
    const MatrixView<T> d_q = rows(g.d_q);
    fill(d_q.row_range(x.queries, x.padded_queries), T{});
    double* const sink = g.d_sink.empty() ? nullptr : &d_sink[static_cast<size_t>(b * problem.heads() + h)];
    const MatrixView<R> d_bias = matrix_at(g.d_bias, b, h);
    if constexpr (std::is_same_v<T, double>) {
      reference::backward(head, {rows(out), column(log_sum_exp), rows(g.d_out), column(g.d_log_sum_exp), d_q,
                                 d_k.rows(), d_v.rows(), d_bias, sink});
    } else {
      backward_head({head, rows(out), rows(g.d_out), column(log_sum_exp), column(g.d_log_sum_exp), d_q,
                     d_k.rows(), d_v.rows(), d_bias, sink});
    }
  }
  d_k.write(x.keys);
  d_v.write(x.keys);
}

/// Zeros; dimensions of stride 0 are visited once.
template <class R>
void clear(View4<R> x) {
  for (size_t n = 0; n < 4; ++n) {
    if (x.stride[n] == 0) x.shape[n] = std::min<int64_t>(x.shape[n], 1);
  }
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    for (int64_t h = 0; h < x.shape[1]; ++h) fill(matrix_at(x, b, h), R{0});
  }
}

template <class T>
void backward(View4<const T> q, View4<const T> k, View4<const T> v, View4<const T> out,
              View3<const Real<T>> log_sum_exp, const AttentionGradients<T>& gradients,
              const AttentionOptions<Real<T>>& options, ThreadPool* pool) {
  const Problem<T> problem(q, k, v, options);
  const auto items = static_cast<int64_t>(problem.items().size()), H = problem.heads(),
             Hkv = problem.key_heads();
  std::vector<double> d_sink(static_cast<size_t>(items * H));
  const Backward<T> work{problem, out, log_sum_exp, gradients, d_sink};
  work.check();
  const View4<Real<T>>& d_bias = gradients.d_bias;
  if (d_bias) clear(d_bias);
  // Items or heads whose bias is the same add to the same numbers: one part, in order.
  const int64_t items_joined = d_bias && d_bias.stride[0] == 0 ? items : 1;
  const int64_t heads_joined = d_bias && d_bias.stride[1] == 0 ? Hkv : 1;
  if (items == 0 || Hkv == 0) return;
  const int64_t columns = Hkv / heads_joined;
  for_parts(items / items_joined * columns, pool, [&](int64_t n) {
    for (int64_t b = n / columns * items_joined; b < (n / columns + 1) * items_joined; ++b) {
      for (int64_t h = n % columns * heads_joined; h < (n % columns + 1) * heads_joined; ++h) work.run(b, h);
    }
  });
  for (size_t h = 0; h < gradients.d_sink.size(); ++h) {
    double sum = 0;
    for (int64_t b = 0; b < items; ++b) sum += d_sink[static_cast<size_t>(b * H) + h];
    gradients.d_sink[h] = static_cast<Real<T>>(sum);
  }
}

}  // namespace

void attention_forward(View4<const float> q, View4<const float> k, View4<const float> v,
                       const AttentionOutputs<float>& outputs, const AttentionOptions<float>& options,
                       ThreadPool* pool) {
  forward(q, k, v, outputs, options, pool);
}
void attention_forward(View4<const BFloat16> q, View4<const BFloat16> k, View4<const BFloat16> v,
                       const AttentionOutputs<BFloat16>& outputs, const AttentionOptions<float>& options,
                       ThreadPool* pool) {
  forward(q, k, v, outputs, options, pool);
}
void attention_forward(View4<const double> q, View4<const double> k, View4<const double> v,
                       const AttentionOutputs<double>& outputs, const AttentionOptions<double>& options,
                       ThreadPool* pool) {
  forward(q, k, v, outputs, options, pool);
}

void attention_backward(View4<const float> q, View4<const float> k, View4<const float> v,
                        View4<const float> out, View3<const float> log_sum_exp,
                        const AttentionGradients<float>& gradients, const AttentionOptions<float>& options,
                        ThreadPool* pool) {
  backward(q, k, v, out, log_sum_exp, gradients, options, pool);
}
void attention_backward(View4<const BFloat16> q, View4<const BFloat16> k, View4<const BFloat16> v,
                        View4<const BFloat16> out, View3<const float> log_sum_exp,
                        const AttentionGradients<BFloat16>& gradients, const AttentionOptions<float>& options,
                        ThreadPool* pool) {
  backward(q, k, v, out, log_sum_exp, gradients, options, pool);
}
void attention_backward(View4<const double> q, View4<const double> k, View4<const double> v,
                        View4<const double> out, View3<const double> log_sum_exp,
                        const AttentionGradients<double>& gradients, const AttentionOptions<double>& options,
                        ThreadPool* pool) {
  backward(q, k, v, out, log_sum_exp, gradients, options, pool);
}

}  // namespace regard::attention
