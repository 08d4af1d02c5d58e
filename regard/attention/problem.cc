// Checks of attention's operands, and what lengths, offsets and options mean for one head of one item.

#include "regard/attention/problem.h"

#include <cmath>
#include <string>

#include "regard/base/error.h"

namespace regard::attention {
namespace {

/// Lengths or starts: `count` numbers.
void expect_count(const char* name, std::span<const int64_t> x, int64_t count, const char* letters) {
  if (static_cast<int64_t>(x.size()) != count)
    throw ShapeError(std::string("[attention] ") + name + " [" + std::to_string(x.size()) + "], expected [" +
                     std::to_string(count) + "] (" + letters + ")");
}

void expect_lengths(const char* name, std::span<const int64_t> lengths, int64_t B, int64_t longest) {
  if (lengths.empty()) return;
  expect_count(name, lengths, B, "B");
  for (size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > longest)
      throw ShapeError(std::string("[attention] ") + name + "[" + std::to_string(b) + "] is " +
                       std::to_string(lengths[b]) + ", expected 0 to " + std::to_string(longest));
  }
}

void expect_starts(const char* name, std::span<const int64_t> starts, int64_t total) {
  if (starts.empty() || starts.front() < 0 || !std::is_sorted(starts.begin(), starts.end()) ||
      starts.back() > total)
    throw ShapeError(std::string("[attention] ") + name + " must hold B + 1 numbers from 0 to " +
                     std::to_string(total) + " that never fall");
}

/// At least `expected` in every dimension: masks may be longer than the longest item.
template <class T>
void expect_covers(const char* name, const View4<T>& x, const std::array<int64_t, 4>& expected, bool ragged) {
  if (!x) return;
  const bool fits = ragged ? x.shape[0] == expected[0] && x.shape[1] == expected[1] &&
                                 x.shape[2] >= expected[2] && x.shape[3] >= expected[3]
                           : x.shape == expected;
  if (!fits) expect_shape(name, x.shape, expected, "B, H, T, S");
}

void expect_blocks(const BlockSparse& blocks, int64_t queries, int64_t keys) {
  if (blocks.query_block == 0) return;
  if (blocks.query_block < 0 || blocks.key_block <= 0)
    throw ShapeError("[attention] blocks must have sizes above 0");
  const int64_t rows = (queries + blocks.query_block - 1) / blocks.query_block;
  const int64_t columns = (keys + blocks.key_block - 1) / blocks.key_block;
  const auto listed = static_cast<int64_t>(blocks.key_blocks.size());
  const auto& starts = blocks.row_starts;
  expect_count("blocks.row_starts", starts, rows + 1, "query blocks + 1");
  for (size_t r = 0; r + 1 < starts.size(); ++r) {
    if (starts[r] < 0 || starts[r] > starts[r + 1] || starts[r + 1] > listed)
      throw ShapeError("[attention] blocks.row_starts must not fall nor pass the " + std::to_string(listed) +
                       " listed blocks");
    for (int64_t n = starts[r]; n < starts[r + 1]; ++n) {
      const int64_t c = blocks.key_blocks[static_cast<size_t>(n)];
      if (c < 0 || c >= columns || (n > starts[r] && c <= blocks.key_blocks[static_cast<size_t>(n - 1)]))
        throw ShapeError("[attention] blocks of query block " + std::to_string(r) +
                         " must be ascending numbers below " + std::to_string(columns));
    }
  }
}

DropoutMask dropout_mask(const Dropout& dropout, int64_t b, int64_t h) {
  DropoutMask mask;
  if (dropout.probability == 0) return mask;
  const uint64_t stream =
      dropout.streams.empty() ? static_cast<uint64_t>(b) : dropout.streams[static_cast<size_t>(b)];
  const uint64_t key = mix(mix(mix(dropout.seed, dropout.step), dropout.layer), stream);
  mask.threshold = static_cast<uint64_t>(std::ceil(dropout.probability * 0x1p32));
  mask.factor = dropout.probability < 1 ? 1 / (1 - dropout.probability) : 0;
  mask.key = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  mask.head = static_cast<uint32_t>(h);
  return mask;
}

/// Row and column 0 of an item of a [B, H, T, S] view.
template <class T>
MatrixView<const T> scores_of(const View4<const T>& x, int64_t b, int64_t h, const Item& item) {
  if (!x) return {};
  MatrixView<const T> matrix = matrix_at(x, b, h);
  matrix.rows = item.queries;
  matrix.columns = item.keys;
  return matrix;
}

}  // namespace

void expect_shape(const char* name, std::span<const int64_t> shape, std::span<const int64_t> expected,
                  const char* letters) {
  if (!std::equal(shape.begin(), shape.end(), expected.begin(), expected.end()))
    throw ShapeError(std::string("[attention] ") + name + " " + shape_text(shape) + ", expected " +
                     shape_text(expected) + " (" + letters + ")");
}

template <class T>
Problem<T>::Problem(View4<const T> q, View4<const T> k, View4<const T> v, const AttentionOptions<R>& options)
    : q_(q), k_(k), v_(v), options_(options) {
  const std::array<int64_t, 4> k_expected = {q.shape[0], k.shape[1], k.shape[2], q.shape[3]};
  const std::array<int64_t, 4> v_expected = {q.shape[0], k.shape[1], k.shape[2], v.shape[3]};
  expect_shape("k", k.shape, k_expected, "B, Hkv, S, D");
  expect_shape("v", v.shape, v_expected, "B, Hkv, S, E");
  if (k.shape[1] > 0 ? q.shape[1] % k.shape[1] != 0 : q.shape[1] != 0)
    throw ShapeError("[attention] q " + shape_text(q.shape) + " has " + std::to_string(q.shape[1]) +
                     " heads, expected a multiple of the " + std::to_string(k.shape[1]) + " of k " +
                     shape_text(k.shape) + " (H, Hkv)");
  make_items();
  check_options();
}

template <class T>
void Problem<T>::make_items() {
  const AttentionOptions<R>& o = options_;
  const bool ragged = !o.query_starts.empty() || !o.key_starts.empty();
  const int64_t T_all = q_.shape[2], S_all = k_.shape[2];
  int64_t B = q_.shape[0];
  if (ragged) {
    expect_starts("query_starts", o.query_starts, T_all);
    expect_starts("key_starts", o.key_starts, S_all);
    expect_count("key_starts", o.key_starts, static_cast<int64_t>(o.query_starts.size()), "B + 1");
    if (B != 1 || !o.query_lengths.empty() || !o.key_lengths.empty())
      throw ShapeError("[attention] ragged operands have a batch of 1 and no lengths, q is " +
                       shape_text(q_.shape));
    B = static_cast<int64_t>(o.query_starts.size()) - 1;
  }
  expect_lengths("query_lengths", o.query_lengths, B, T_all);
  expect_lengths("key_lengths", o.key_lengths, B, S_all);
  if (o.alignment == Alignment::explicit_offsets) expect_count("offsets", o.offsets, B, "B");
  const auto query_lengths = o.query_lengths.empty() && T_all == S_all ? o.key_lengths : o.query_lengths;
  for (int64_t b = 0; b < B; ++b) {
    const auto at = static_cast<size_t>(b);
    Item x;
    if (ragged) {
      x.first_query = o.query_starts[at], x.first_key = o.key_starts[at];
      x.queries = x.padded_queries = o.query_starts[at + 1] - x.first_query;
      x.keys = x.padded_keys = o.key_starts[at + 1] - x.first_key;
    } else {
      x.batch = b;
      x.padded_queries = T_all, x.padded_keys = S_all;
      x.queries = query_lengths.empty() ? T_all : query_lengths[at];
      x.keys = o.key_lengths.empty() ? S_all : o.key_lengths[at];
    }
    if (o.alignment == Alignment::bottom_right) x.offset = x.keys - x.queries;
    if (o.alignment == Alignment::explicit_offsets) x.offset = o.offsets[at];
    if (std::abs(x.offset) > Band::kOpen / 4)
      throw ShapeError("[attention] offset " + std::to_string(x.offset) + " of item " + std::to_string(b) +
                       " is out of range");
    longest_queries_ = std::max(longest_queries_, x.padded_queries);
    longest_keys_ = std::max(longest_keys_, x.padded_keys);
    items_.push_back(x);
  }
}

template <class T>
void Problem<T>::check_options() const {
  const AttentionOptions<R>& o = options_;
  const bool ragged = !o.query_starts.empty();
  expect_covers("mask", o.mask, score_shape(), ragged);
  expect_covers("bias", o.bias, score_shape(), ragged);
  const std::array<int64_t, 1> per_head = {heads()};
  const auto expect_per_head = [&](const char* name, std::span<const R> x) {
    const std::array<int64_t, 1> shape = {static_cast<int64_t>(x.size())};
    if (!x.empty()) expect_shape(name, shape, per_head, "H");
  };
  expect_per_head("alibi_slopes", o.alibi_slopes);
  expect_per_head("sink", o.sink);
  if (!(o.softcap >= 0)) throw ShapeError("[attention] softcap must not be negative");
  if (!(o.dropout.probability >= 0 && o.dropout.probability <= 1))
    throw ShapeError("[attention] dropout's probability must lie in [0, 1]");
  if (!o.dropout.streams.empty()) {
    const std::array<int64_t, 1> shape = {static_cast<int64_t>(o.dropout.streams.size())};
    const std::array<int64_t, 1> expected = {static_cast<int64_t>(items_.size())};
    expect_shape("dropout.streams", shape, expected, "B");
  }
  expect_blocks(o.blocks, longest_queries_, longest_keys_);
}

template <class T>
Head<T> Problem<T>::head(const Item& item, int64_t b, int64_t h) const {
  const AttentionOptions<R>& o = options_;
  const int64_t kv = h / group(), D = q_.shape[3];
  const auto per_head = static_cast<size_t>(h);
  Head<T> x;
  x.q = item_rows(q_, item, h, item.first_query, item.queries);
  x.k = item_rows(k_, item, kv, item.first_key, item.keys);
  x.v = item_rows(v_, item, kv, item.first_key, item.keys);
  x.scale = static_cast<R>(o.scale.value_or(D > 0 ? 1 / std::sqrt(static_cast<double>(D)) : 1));
  x.softcap = static_cast<R>(o.softcap);
  const auto reach = [](int64_t side) { return side < 0 ? Band::kOpen : std::min(side, Band::kOpen); };
  x.band = {item.keys, item.offset, reach(o.window.left), o.causal ? 0 : reach(o.window.right)};
  x.mask = scores_of(o.mask, b, h, item);
  x.bias = scores_of(o.bias, b, h, item);
  if (!o.alibi_slopes.empty()) x.slope = o.alibi_slopes[per_head];
  x.has_sink = !o.sink.empty();
  if (x.has_sink) x.sink = o.sink[per_head];
  if (o.blocks.query_block > 0) x.blocks = &o.blocks;
  x.dropout = dropout_mask(o.dropout, b, h);
  return x;
}

template class Problem<float>;
template class Problem<double>;
template class Problem<BFloat16>;

}  // namespace regard::attention
