// Decoding: checks, the cut into parts, and the merge of their states.

#include "regard/attention/decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "regard/attention/decode_f32.h"
#include "regard/attention/decode_reference.h"
#include "regard/base/error.h"

namespace regard::attention {
namespace {

template <class Numbers>
void expect_count(const char* name, const Numbers& numbers, int64_t expected, const char* letter) {
  if (!numbers.empty())
    expect_shape(name, std::array{static_cast<int64_t>(numbers.size())}, std::array{expected}, letter);
}

/// The operands of a call, checked, and where its parts and states stand.
template <class Q, class T>
struct Call {
  const View4<const Q>& q;
  const DecodeCache<T>& cache;
  const DecodeOptions<Q>& options;
  int64_t B = q.shape[0], H = q.shape[1], queries = q.shape[2], D = q.shape[3];
  int64_t key_heads = cache.keys.shape[1], page_size = cache.keys.shape[2], E = cache.values.shape[3];

  int64_t group() const { return key_heads > 0 ? H / key_heads : 0; }
  int64_t capacity() const { return page_size * (cache.block_table.data ? cache.block_table.columns : 1); }
  int64_t length(int64_t b) const {
    return options.key_lengths.empty() ? capacity() : options.key_lengths[static_cast<size_t>(b)];
  }
  int64_t offset(int64_t b) const {
    return options.offsets.empty() ? length(b) - queries : options.offsets[static_cast<size_t>(b)];
  }
  Band band(int64_t b) const {
    const auto reach = [](int64_t window) {
      return window < 0 ? Band::kOpen : std::min(window, Band::kOpen);
    };
    const int64_t right = reach(options.window.right);
    return {length(b), offset(b), reach(options.window.left),
            options.causal ? std::min<int64_t>(right, 0) : right};
  }

  void check_shapes() const {
    const auto& k = cache.keys.shape;
    expect_shape("keys", k, std::array{k[0], k[1], k[2], D}, "pages, Hkv, page size, D");
    expect_shape("values", cache.values.shape, std::array{k[0], k[1], k[2], E}, "pages, Hkv, page size, E");
    if (H > 0 && (key_heads == 0 || H % key_heads != 0))
      throw ShapeError("[attention] q " + shape_text(q.shape) + " has " + std::to_string(H) +
                       " heads (H), expected a multiple of the keys' " + std::to_string(key_heads) +
                       " (Hkv)");
    expect_count("key_lengths", options.key_lengths, B, "B");
    expect_count("offsets", options.offsets, B, "B");
    expect_count("alibi_slopes", options.alibi_slopes, H, "H");
    expect_count("sink", options.sink, H, "H");
    if (cache.block_table.data)
      check_table();
    else
      expect_shape("keys", k, std::array{B, k[1], k[2], D}, "B, Hkv, S, D");
    for (int64_t b = 0; b < B; ++b) check_item(b);
  }
  void check_results(const View4<Q>& out, const View3<Q>& log_sum_exp) const {
    expect_shape("out", out.shape, std::array{B, H, queries, E}, "B, H, T, E");
    if (log_sum_exp) expect_shape("log_sum_exp", log_sum_exp.shape, std::array{B, H, queries}, "B, H, T");
  }

 private:
  void check_table() const {
    const MatrixView<const int32_t>& table = cache.block_table;
    expect_shape("block_table", std::array{table.rows, table.columns}, std::array{B, table.columns},
                 "B, pages of an item");
    if (table.columns > 1 && table.column_stride != 1)
      throw ShapeError("[attention] block_table has column stride " + std::to_string(table.column_stride) +
                       ", expected 1");
  }
  void check_item(int64_t b) const {
    if (length(b) < 0 || length(b) > capacity())
      throw ShapeError("[attention] key_lengths of item " + std::to_string(b) + " is " +
                       std::to_string(length(b)) + ", expected 0 to " + std::to_string(capacity()) + " (S)");
    if (!cache.block_table.data) return;
    const Band visible = band(b);
    const int64_t begin = visible.begin(0), end = visible.end(queries - 1);
    for (int64_t j = begin; j < end; j = (j / page_size + 1) * page_size) {
      const int32_t page = cache.block_table(b, j / page_size);
      if (page < 0 || page >= cache.keys.shape[0])
        throw ShapeError("[attention] block_table of item " + std::to_string(b) + " names page " +
                         std::to_string(page) + " of " + std::to_string(cache.keys.shape[0]));
    }
  }
};

/// The f32 computation: queries scaled into scratch, states of all parts, their merge.
template <class T>
class Decoding {
 public:
  Decoding(const Call<float, T>& call, std::span<float> scratch)
      : call_(call),
        rows_(call.group() * call.queries),
        splits_((call.capacity() + kDecodeSplit - 1) / kDecodeSplit),
        q_slots_(decode_slots<T>(call.D)),
        o_slots_(decode_slots<T>(call.E)),
        state_stride_(decode_state_size(o_slots_)),
        q_(scratch.data()),
        states_(scratch.data() + call.B * call.H * call.queries * q_slots_) {
    if (static_cast<int64_t>(scratch.size()) < size())
      throw ShapeError("[attention] scratch [" + std::to_string(scratch.size()) + "], expected at least [" +
                       std::to_string(size()) + "]");
  }

  int64_t size() const { return call_.B * call_.H * call_.queries * (q_slots_ + splits_ * state_stride_); }
  int64_t parts() const { return call_.B * call_.key_heads * splits_; }

  void scale_queries() const {
    const double scale = call_.options.scale.value_or(1 / std::sqrt(static_cast<double>(call_.D)));
    float* to = q_;
    for (int64_t b = 0; b < call_.B; ++b)
      for (int64_t h = 0; h < call_.H; ++h)
        for (int64_t t = 0; t < call_.queries; ++t, to += q_slots_) {
          std::fill_n(to, q_slots_, 0.f);
          const float* const q = call_.q.data + call_.q.offset({b, h, t, 0});
          for (int64_t c = 0; c < call_.D; ++c)
            to[decode_slot<T>(c, q_slots_)] = static_cast<float>(scale) * q[c * call_.q.stride[3]];
        }
  }

  /// Attends to split n % splits of head n / splits of the cache.
  void attend(int64_t n) const {
    const int64_t split = n % splits_, head = n / splits_, b = head / call_.key_heads,
                  h = head % call_.key_heads;
    const Band band = call_.band(b);
    const int64_t begin = std::max(split * kDecodeSplit, band.begin(0));
    const int64_t end = std::min((split + 1) * kDecodeSplit, band.end(call_.queries - 1));
    if (begin >= end || rows_ == 0) return;
    const auto& slopes = call_.options.alibi_slopes;
    decode_part({.keys = rows_of(call_.cache.keys, b, h),
                 .values = rows_of(call_.cache.values, b, h),
                 .D = call_.D,
                 .Dv = call_.E,
                 .heads = call_.group(),
                 .queries = call_.queries,
                 .q = q_ + head * rows_ * q_slots_,
                 .slopes = slopes.empty() ? nullptr : slopes.data() + h * call_.group(),
                 .softcap = static_cast<float>(call_.options.softcap),
                 .band = band,
                 .begin = begin,
                 .end = end,
                 .states = state(head, split, 0),
                 .q_slots = q_slots_,
                 .o_slots = o_slots_});
  }

  /// Merges the states of the parts that a row attends to, in order, and adds the sink.
  void merge(const View4<float>& out, const View3<float>& log_sum_exp, int64_t b, int64_t h,
             int64_t t) const {
    const Band band = call_.band(b);
    const int64_t begin = band.begin(t), end = band.end(t);
    const int64_t head = b * call_.key_heads + h / call_.group(), row = h % call_.group() * call_.queries + t;
    const int64_t first = begin / kDecodeSplit, last = begin < end ? (end - 1) / kDecodeSplit + 1 : first;
    const auto& sink = call_.options.sink;
    double m = sink.empty() ? -kInfinity : static_cast<double>(sink[static_cast<size_t>(h)]);
    for (int64_t split = first; split < last; ++split) {
      const auto largest = static_cast<double>(state(head, split, row)[0]);
      if (largest > m || std::isnan(largest)) m = largest;
    }
    double sum =
        sink.empty() || m == -kInfinity ? 0 : std::exp(static_cast<double>(sink[static_cast<size_t>(h)]) - m);
    for (int64_t split = first; split < last && m != -kInfinity; ++split) {
      float* const part = state(head, split, row);
      const double share = std::exp(static_cast<double>(part[0]) - m);
      sum += share * static_cast<double>(part[1]);
      part[2] = static_cast<float>(share);
    }
    const MatrixView<float> to{out.data + out.offset({b, h, t, 0}), 1, call_.E, 0, out.stride[3]};
    if (first == last || m == -kInfinity)
      for (int64_t c = 0; c < call_.E; ++c) to(0, c) = 0;
    else
      for (int64_t split = first; split < last; ++split) {
        const float* const part = state(head, split, row);
        const auto share = static_cast<float>(static_cast<double>(part[2]) / sum);
        if (to.column_stride == 1)
          add_share<1>(share, part + kDecodeStateHeader, split == first, to);
        else
          add_share<0>(share, part + kDecodeStateHeader, split == first, to);
      }
    if (log_sum_exp) log_sum_exp(b, h, t) = static_cast<float>(m == -kInfinity ? m : m + std::log(sum));
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  float* state(int64_t head, int64_t split, int64_t row) const {
    return states_ + ((head * splits_ + split) * rows_ + row) * state_stride_;
  }
  /// to = share o of a state, or that more. kStride: of to's columns, 0 for any.
  template <int64_t kStride>
  void add_share(float share, const float* o, bool first, const MatrixView<float>& to) const {
    const int64_t stride = kStride ? kStride : to.column_stride, columns = to.columns;
    for (int64_t u = 0; u < kDecodeParts<T>; ++u, o += o_slots_ / kDecodeParts<T>) {
      float* const x = to.data + u * stride;
      const int64_t step = kDecodeParts<T> * stride,
                    n = (columns - u + kDecodeParts<T> - 1) / kDecodeParts<T>;
      if (first)
        for (int64_t i = 0; i < n; ++i) x[i * step] = share * o[i];
      else
        for (int64_t i = 0; i < n; ++i) x[i * step] += share * o[i];
    }
  }
  CacheRows<T> rows_of(const View4<const T>& x, int64_t b, int64_t h) const {
    const MatrixView<const int32_t>& table = call_.cache.block_table;
    return {.data = x.data + (table.data ? 0 : b * x.stride[0]) + h * x.stride[1],
            .table = table.data ? table.row(b) : nullptr,
            .page_size = x.shape[2],
            .page_stride = x.stride[0],
            .position_stride = x.stride[2],
            .column_stride = x.stride[3]};
  }

  const Call<float, T>& call_;
  int64_t rows_, splits_, q_slots_, o_slots_, state_stride_;
  float *q_, *states_;
};

template <class T>
int64_t scratch_size(const View4<const float>& q, const DecodeCache<T>& cache) {
  const DecodeOptions<float> options;
  const Call<float, T> call{q, cache, options};
  const int64_t splits = (call.capacity() + kDecodeSplit - 1) / kDecodeSplit;
  return call.B * call.H * call.queries *
         (decode_slots<T>(call.D) + splits * decode_state_size(decode_slots<T>(call.E)));
}

template <class T>
void run(const View4<const float>& q, const DecodeCache<T>& cache, const View4<float>& out,
         const View3<float>& log_sum_exp, std::span<float> scratch, const DecodeOptions<float>& options,
         ThreadPool* pool) {
  const Call<float, T> call{q, cache, options};
  call.check_shapes();
  call.check_results(out, log_sum_exp);
  const Decoding<T> decoding(call, scratch);
  decoding.scale_queries();
  if (pool)
    pool->parallel_for(decoding.parts(), [&decoding](int64_t part) { decoding.attend(part); });
  else
    for (int64_t part = 0; part < decoding.parts(); ++part) decoding.attend(part);
  for (int64_t b = 0; b < call.B; ++b)
    for (int64_t h = 0; h < call.H; ++h)
      for (int64_t t = 0; t < call.queries; ++t) decoding.merge(out, log_sum_exp, b, h, t);
}

}  // namespace

int64_t decode_scratch_size(const View4<const float>& q, const DecodeCache<float>& cache) {
  return scratch_size(q, cache);
}
int64_t decode_scratch_size(const View4<const float>& q, const DecodeCache<BFloat16>& cache) {
  return scratch_size(q, cache);
}

void decode(const View4<const float>& q, const DecodeCache<float>& cache, const View4<float>& out,
            const View3<float>& log_sum_exp, std::span<float> scratch, const DecodeOptions<float>& options,
            ThreadPool* pool) {
  run(q, cache, out, log_sum_exp, scratch, options, pool);
}
void decode(const View4<const float>& q, const DecodeCache<BFloat16>& cache, const View4<float>& out,
            const View3<float>& log_sum_exp, std::span<float> scratch, const DecodeOptions<float>& options,
            ThreadPool* pool) {
  run(q, cache, out, log_sum_exp, scratch, options, pool);
}
void decode(const View4<const double>& q, const DecodeCache<double>& cache, const View4<double>& out,
            const View3<double>& log_sum_exp, const DecodeOptions<double>& options) {
  const Call<double, double> call{q, cache, options};
  call.check_shapes();
  call.check_results(out, log_sum_exp);
  reference::decode(q, cache, options, out, log_sum_exp);
}

}  // namespace regard::attention
