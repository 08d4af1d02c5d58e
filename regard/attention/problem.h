#pragma once
// What attention's kernels are given: the operands of one head of one item, and its masks as numbers.
// Problem checks the caller's shapes and cuts them into heads.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "regard/attention/attention.h"
#include "regard/base/random.h"
#include "regard/base/span.h"

namespace regard::attention {

/// The keys that positions allow: query i may attend to keys [begin(i), end(i)).
struct Band {
  static constexpr int64_t kOpen = int64_t{1} << 61;

  int64_t keys = 0;    ///< valid ones
  int64_t offset = 0;  ///< query i stands at i + offset
  int64_t left = kOpen, right = kOpen;

  int64_t begin(int64_t i) const { return std::clamp<int64_t>(i + offset - left, 0, keys); }
  int64_t end(int64_t i) const { return std::clamp<int64_t>(i + offset + right + 1, 0, keys); }
  bool open() const { return left == kOpen && right == kOpen; }
};

/// The weights that dropout keeps, as a function of the position alone.
struct DropoutMask {
  uint64_t threshold = 0;  ///< of 2^32; 0 keeps all
  double factor = 1;       ///< of what is kept
  std::array<uint32_t, 2> key{};
  uint32_t head = 0;

  bool active() const { return threshold > 0; }
  /// Four words, for keys 4 j4 .. 4 j4 + 3.
  std::array<uint32_t, 4> counter(int64_t i, int64_t j4) const {
    return {static_cast<uint32_t>(j4), static_cast<uint32_t>(i), head,
            static_cast<uint32_t>(i >> 32) ^ static_cast<uint32_t>(j4 >> 32) << 16};
  }
  /// What p_ij is multiplied by.
  double operator()(int64_t i, int64_t j) const {
    if (!active()) return 1;
    return philox(counter(i, j / 4), key)[static_cast<size_t>(j % 4)] >= threshold ? factor : 0;
  }
};

/// One head of one item. Rows of q are the valid queries; i and j count inside the item.
template <class T>
struct Head {
  MatrixView<const T> q, k, v;  ///< [T, D], [S, D], [S, E]
  Real<T> scale = 1, softcap = 0;
  Band band;
  MatrixView<const bool> mask;     ///< [T, S] or no data
  MatrixView<const Real<T>> bias;  ///< likewise
  Real<T> slope = 0;
  Real<T> sink = 0;
  bool has_sink = false;
  const BlockSparse* blocks = nullptr;  ///< or null
  DropoutMask dropout;
};

/// An item of the batch. Padded: positions [0, queries) of [0, padded_queries) are valid.
struct Item {
  int64_t batch = 0;  ///< where the operands hold it
  int64_t first_query = 0, first_key = 0;
  int64_t queries = 0, keys = 0;
  int64_t padded_queries = 0, padded_keys = 0;
  int64_t offset = 0;
};

/// A call of attention, checked. Refers to the caller's operands and options.
template <class T>
class Problem {
 public:
  using R = Real<T>;

  /// Throws ShapeError.
  Problem(View4<const T> q, View4<const T> k, View4<const T> v, const AttentionOptions<R>& options);

  const std::vector<Item>& items() const { return items_; }
  int64_t heads() const { return q_.shape[1]; }
  int64_t key_heads() const { return k_.shape[1]; }
  int64_t group() const { return key_heads() > 0 ? heads() / key_heads() : 1; }
  int64_t longest_queries() const { return longest_queries_; }
  int64_t longest_keys() const { return longest_keys_; }

  Head<T> head(const Item& item, int64_t b, int64_t h) const;

  /// The shapes that results and gradients must have.
  std::array<int64_t, 4> q_shape() const { return q_.shape; }
  std::array<int64_t, 4> k_shape() const { return k_.shape; }
  std::array<int64_t, 4> v_shape() const { return v_.shape; }
  std::array<int64_t, 4> out_shape() const { return {q_.shape[0], q_.shape[1], q_.shape[2], v_.shape[3]}; }
  std::array<int64_t, 4> score_shape() const {
    return {static_cast<int64_t>(items_.size()), heads(), longest_queries_, longest_keys_};
  }

 private:
  void make_items();
  void check_options() const;

  View4<const T> q_, k_, v_;
  const AttentionOptions<R>& options_;
  std::vector<Item> items_;
  int64_t longest_queries_ = 0, longest_keys_ = 0;
};

/// Throws "[attention] NAME [..], expected [..] (LETTERS)".
void expect_shape(const char* name, std::span<const int64_t> shape, std::span<const int64_t> expected,
                  const char* letters);

/// The rows of a view laid out as the queries (or keys) are: `count` of them from position `first`.
template <class T>
MatrixView<T> item_rows(const View4<T>& x, const Item& item, int64_t head, int64_t first, int64_t count) {
  return matrix_at(x, item.batch, head).row_range(first, first + count);
}

/// The same of [B, H, T]: a column.
template <class T>
MatrixView<T> item_column(const View3<T>& x, const Item& item, int64_t head, int64_t first, int64_t count) {
  T* const data = x.data + item.batch * x.stride[0] + head * x.stride[1] + first * x.stride[2];
  return {data, count, 1, x.stride[2], 1};
}

}  // namespace regard::attention
