#include "regard/autograd/multi_head.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "regard/attention/attention.h"
#include "regard/autograd/contributions.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/relative_scores.h"
#include "regard/autograd/samples.h"

namespace regard::autograd {
namespace {

/// Columns begin .. begin + W of x [T, ...] as heads, [1, H, T, D].
template <class T>
View4<T> heads_of(const Tensor& x, int64_t begin, int64_t W, int64_t H) {
  const int64_t D = W / H;
  return {x.data<std::remove_const_t<T>>() + begin, {1, H, x.rows(), D}, {0, D, x.dim(-1), 1}};
}

std::vector<QueryRows> query_rows(const Ragged& queries, const Ragged& keys) {
  std::vector<QueryRows> items;
  for (int64_t b = 0; b < queries.count(); ++b)
    items.push_back({queries.begin(b), queries.length(b), keys.length(b), 0});
  return items;
}

/// The blocks of keys that blocks first .. first + count of queries attend to.
class BlockLists {
 public:
  BlockLists(int64_t block, int64_t first, int64_t count, int64_t keys, bool causal) {
    const int64_t last = (keys + block - 1) / block - 1;
    for (int64_t r = first; r < first + count; ++r) {
      if (r > 1) keys_.push_back(0);
      for (int64_t c = std::max<int64_t>(r - 1, 0); c <= std::min(causal ? r : r + 1, last); ++c)
        keys_.push_back(c);
      starts_.push_back(static_cast<int64_t>(keys_.size()));
    }
  }
  attention::BlockSparse lists(int64_t query_block, int64_t key_block) const {
    return {query_block, key_block, starts_, keys_};
  }

 private:
  std::vector<int64_t> starts_{0}, keys_;
};

/// A call's operands and all that backward needs of it.
template <class T>
struct AttentionTrace {
  Tensor q, kv;                // of self-attention the same tensor
  int64_t k_column, v_column;  // in kv
  int64_t W;
  Ragged queries, keys;
  HeadOptions options;
  RelativeScores<T> relative;
  std::vector<T> slopes;
  std::optional<BlockLists> blocks;
  Tensor out, log_sum_exp;

  AttentionTrace(const Tensor& q_, const Tensor& kv_, int64_t k_begin, int64_t width, const Ragged& q_rows,
                 const Ragged& k_rows, const HeadOptions& head_options)
      : q(q_),
        kv(kv_),
        k_column(k_begin),
        v_column(k_begin + width),
        W(width),
        queries(q_rows),
        keys(k_rows),
        options(head_options),
        relative(head_options, query_rows(q_rows, k_rows), width / head_options.heads),
        out(Tensor::empty({q_.rows(), width}, q_.dtype())),
        log_sum_exp(Tensor::empty({1, head_options.heads, q_.rows()}, q_.dtype())) {
    if (options.alibi)
      for (const double slope : alibi_slopes(options.heads)) slopes.push_back(static_cast<T>(slope));
    const int64_t longest = keys.longest();
    if (options.block > 0)
      blocks.emplace(options.block, 0, (longest + options.block - 1) / options.block, longest,
                     options.causal);
  }

  View4<const T> Q() const { return heads_of<T>(q, 0, W, options.heads); }
  View4<const T> K() const { return heads_of<T>(kv, k_column, W, options.heads); }
  View4<const T> V() const { return heads_of<T>(kv, v_column, W, options.heads); }
  View4<T> O() const { return heads_of<T>(out, 0, W, options.heads); }
  View3<T> L() const { return dense(log_sum_exp.data<T>(), std::array{int64_t{1}, options.heads, q.rows()}); }
  auto query_head() const {
    return [this](int64_t h) { return matrix_at(Q(), 0, h); };
  }

  attention::AttentionOptions<T> kernel_options() const {
    attention::AttentionOptions<T> o;
    o.causal = options.causal;
    if (options.window > 0) o.window = {options.window, options.causal ? 0 : options.window};
    if (blocks) o.blocks = blocks->lists(options.block, options.block);
    o.query_starts = queries.offsets;
    o.key_starts = keys.offsets;
    o.bias = relative.bias();
    o.alibi_slopes = slopes;
    const WeightDropout& d = options.dropout;
    o.dropout = {d.probability, d.seed, d.step, d.layer, d.streams};
    return o;
  }
};

void require_heads(const Tensor& x, int64_t parts, const HeadOptions& options) {
  if (options.heads < 1 || x.dim(-1) % (parts * options.heads))
    throw ShapeError("[attention] " + shape_text(x.shape()) + " does not divide into " +
                     std::to_string(parts) + " times " + std::to_string(options.heads) + " heads");
}

/// The gradient of an operand: where it goes, whole rows of `columns` numbers, and what it is added to.
template <class T>
struct OperandGradient {
  Tensor sum, written;

  OperandGradient(const Tensor& g, bool more)
      : sum(g), written(more ? Tensor::empty(g.shape(), g.dtype()) : g) {}
  ~OperandGradient() {
    if (sum.bytes() != written.bytes())
      simd::add(sum.data<T>(), written.data<T>(), sum.data<T>(), sum.size());
  }
};

/// Writes the gradients of the queries into d_q and of the keys and values into d_kv, which may be one
/// tensor.
template <class T>
void attention_backward_into(const AttentionTrace<T>& t, const Tensor& d_out, const Tensor& d_q,
                             const Tensor& d_kv, const std::shared_ptr<Node>& table) {
  const int64_t H = t.options.heads;
  const Tensor d_bias = t.relative.empty_bias();
  attention::AttentionGradients<T> g;
  g.d_out = heads_of<T>(d_out, 0, t.W, H);
  g.d_q = heads_of<T>(d_q, 0, t.W, H);
  g.d_k = heads_of<T>(d_kv, t.k_column, t.W, H);
  g.d_v = heads_of<T>(d_kv, t.v_column, t.W, H);
  if (t.relative.any()) g.d_bias = t.relative.view(d_bias);
  attention::attention_backward(t.Q(), t.K(), t.V(), View4<const T>(t.O()), View3<const T>(t.L()), g,
                                t.kernel_options());
  if (!t.relative.any()) return;
  const Tensor d_table = Tensor::zeros(t.relative.table().shape(), d_out.dtype());
  t.relative.backward(
      t.query_head(), d_bias, [&](int64_t h) { return matrix_at(g.d_q, 0, h); }, d_table);
  add_to<T>(table, d_table);
}

/// Sets the mean over the heads, [T, longest S].
template <class T>
Tensor mean_weights(const Tensor& weights, const Ragged& queries) {
  const int64_t H = weights.dim(1), longest = weights.dim(2), S = weights.dim(3);
  const Tensor mean = Tensor::zeros({queries.total(), S}, weights.dtype());
  const auto rows = mean.as_matrix<T>();
  for (int64_t b = 0; b < queries.count(); ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < queries.length(b); ++i)
        simd::axpy(T{1} / static_cast<T>(H), weights.data<T>() + ((b * H + h) * longest + i) * S,
                   rows.row(queries.begin(b) + i), S);
  return mean;
}

template <class T>
void attention_forward_of(const AttentionTrace<T>& t, Tensor* weights) {
  t.relative.forward(t.query_head());
  attention::AttentionOutputs<T> outputs;
  outputs.out = t.O();
  outputs.log_sum_exp = t.L();
  Tensor all;
  if (weights) {
    const std::array shape{t.queries.count(), t.options.heads, t.queries.longest(), t.keys.longest()};
    all = Tensor::zeros(Shape(shape.begin(), shape.end()), t.q.dtype());
    outputs.weights = dense(all.data<T>(), shape);
  }
  attention::attention_forward(t.Q(), t.K(), t.V(), outputs, t.kernel_options());
  if (weights) *weights = mean_weights<T>(all, t.queries);
}

Operation::Sample self_sample(std::string name, std::initializer_list<Shape> shapes, HeadOptions options,
                              Tensor HeadOptions::*table = nullptr) {
  return sample(std::move(name), shapes, [options, table](std::span<const Tensor> in) {
    HeadOptions o = options;
    if (table) o.*table = in[1];
    return self_attention(in[0], {{0, 4, 4, 5, 7}}, o);
  });
}

}  // namespace

std::vector<double> alibi_slopes(int64_t heads) {
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  const auto slope = [](int64_t h, int64_t H) {
    return std::exp2(-8 * static_cast<double>(h) / static_cast<double>(H));
  };
  for (int64_t h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
  for (int64_t h = 1; static_cast<int64_t>(slopes.size()) < heads; h += 2)
    slopes.push_back(slope(h, 2 * power));
  return slopes;
}

const Operation kSelfAttention("self_attention", [] {
  const HeadOptions plain{.heads = 2}, causal{.heads = 2, .causal = true};
  HeadOptions sloping = causal, near = plain, dropped = causal, blocks = plain, causal_blocks = causal;
  blocks.block = 1;
  causal_blocks.block = 2;
  sloping.alibi = true;
  near.window = 1;
  dropped.dropout = {.probability = 0.3, .seed = 3, .streams = {4, 5, 6, 7}};
  return std::vector{
      self_sample("open", {{7, 12}}, plain),
      self_sample("causal", {{7, 12}}, causal),
      self_sample("causal, ALiBi", {{7, 12}}, sloping),
      self_sample("window", {{7, 12}}, near),
      self_sample("block-sparse", {{7, 12}}, blocks),
      self_sample("causal, block-sparse", {{7, 12}}, causal_blocks),
      self_sample("dropout", {{7, 12}}, dropped),
      self_sample("relative keys", {{7, 12}, {5, 2}}, plain, &HeadOptions::relative_keys),
      self_sample("causal, relative keys", {{7, 12}, {3, 2}}, causal, &HeadOptions::relative_keys),
      self_sample("relative bias", {{7, 12}, {4, 2}}, plain, &HeadOptions::relative_bias),
      self_sample("causal, relative bias", {{7, 12}, {4, 2}}, causal, &HeadOptions::relative_bias),
      self_sample("distance bias", {{7, 12}, {3, 2}}, plain, &HeadOptions::distance_bias)};
});

Tensor self_attention(const Tensor& qkv, const Ragged& sentences, const HeadOptions& options,
                      Tensor* weights) {
  require_heads(qkv, 3, options);
  if (qkv.rows() != sentences.total())
    throw ShapeError("[self_attention] qkv " + shape_text(qkv.shape()) + " for " +
                     std::to_string(sentences.total()) + " positions");
  return dispatch(qkv.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t W = qkv.dim(-1) / 3;
    const auto trace =
        std::make_shared<const AttentionTrace<T>>(qkv, qkv, W, W, sentences, sentences, options);
    attention_forward_of(*trace, weights);
    const auto node = input(qkv), table = input(trace->relative.table());
    if (!node && !table) return trace->out;
    return record(kSelfAttention, trace->out, [trace, node, table](const Tensor& d) {
      if (!node) {
        const Tensor unused = Tensor::empty(trace->q.shape(), d.dtype());
        return attention_backward_into(*trace, d, unused, unused, table);
      }
      node->contribute([&](const Tensor& g, bool more) {
        const OperandGradient<T> d_qkv(g, more);
        attention_backward_into(*trace, d, d_qkv.written, d_qkv.written, table);
      });
    });
  });
}

const Operation kCrossAttention("cross_attention", [] {
  return std::vector{sample("three sentences", {{5, 4}, {6, 8}}, [](auto in) {
    return cross_attention(in[0], in[1], {{0, 2, 2, 5}}, {{0, 3, 5, 6}}, {.heads = 2});
  })};
});

Tensor cross_attention(const Tensor& q, const Tensor& kv, const Ragged& queries, const Ragged& keys,
                       const HeadOptions& options, Tensor* weights) {
  require_heads(q, 1, options);
  if (kv.dim(-1) != 2 * q.dim(-1) || q.rows() != queries.total() || kv.rows() != keys.total() ||
      queries.count() != keys.count())
    throw ShapeError("[cross_attention] q " + shape_text(q.shape()) + ", kv " + shape_text(kv.shape()) +
                     " for " + std::to_string(queries.total()) + " and " + std::to_string(keys.total()) +
                     " positions");
  if (options.causal || options.alibi || options.window > 0 || options.relative_keys.defined() ||
      options.relative_bias.defined())
    throw UsageError("[cross_attention] positions of two sentences have no distance");
  return dispatch(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto trace = std::make_shared<const AttentionTrace<T>>(q, kv, 0, q.dim(-1), queries, keys, options);
    attention_forward_of(*trace, weights);
    const auto nq = input(q), nkv = input(kv);
    if (!nq && !nkv) return trace->out;
    return record(kCrossAttention, trace->out, [trace, nq, nkv](const Tensor& d) {
      const Tensor d_q = Tensor::empty(trace->q.shape(), d.dtype());
      const Tensor d_kv = Tensor::empty(trace->kv.shape(), d.dtype());
      attention_backward_into(*trace, d, d_q, d_kv, nullptr);
      add_to<T>(nq, d_q);
      add_to<T>(nkv, d_kv);
    });
  });
}

Tensor cached_attention(const Tensor& q, const Tensor& cache, const HeadOptions& options) {
  require_heads(q, 1, options);
  const int64_t R = q.rows(), W = q.dim(-1), H = options.heads, D = W / H;
  if (cache.rank() != 3 || cache.dim(0) != R || cache.dim(2) != 2 * W)
    throw ShapeError("[cached_attention] q " + shape_text(q.shape()) + ", cache " +
                     shape_text(cache.shape()) + ", expected [R, W] and [R, t, 2W]");
  return dispatch(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t t = cache.dim(1);
    const Tensor out = Tensor::empty({R, W}, q.dtype());
    const auto rows = [&](const Tensor& x) { return View4<T>{x.data<T>(), {R, H, 1, D}, {W, D, W, 1}}; };
    const auto cached = [&](int64_t begin) {
      return View4<const T>{cache.data<T>() + begin, {R, H, t, D}, {2 * t * W, D, 2 * W, 1}};
    };
    std::vector<QueryRows> items;
    for (int64_t r = 0; r < R; ++r) items.push_back({r, 1, t, t - 1});
    const RelativeScores<T> relative(options, std::move(items), D);
    relative.forward([&](int64_t h) { return MatrixView<const T>{q.data<T>() + h * D, R, D, W, 1}; });
    attention::AttentionOptions<T> o;
    o.bias = relative.bias();
    std::vector<T> slopes;
    if (options.alibi)
      for (const double slope : alibi_slopes(H)) slopes.push_back(static_cast<T>(slope));
    o.alibi_slopes = slopes;
    o.causal = true;
    if (options.window > 0) o.window = {options.window, 0};
    std::optional<BlockLists> blocks;
    if (options.block > 0) {
      blocks.emplace(options.block, (t - 1) / options.block, 1, t, true);
      o.blocks = blocks->lists(1, options.block);
    }
    attention::attention_forward(View4<const T>(rows(q)), cached(0), cached(W), {.out = rows(out)}, o);
    return out;
  });
}

}  // namespace regard::autograd
