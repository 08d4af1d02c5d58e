// Exact attention, its gradient, and merging.

#include "regard/attention/attention.h"

#include "python/src/arrays.h"

namespace regard::python {
namespace {

using attention::Alignment;
using attention::AttentionOptions;
using attention::Real;

/// AttentionOptions with arrays that Python owns. biases, slopes and sinks have the operands' Real type.
struct Options {
  std::optional<double> scale;
  double softcap = 0;
  bool causal = false;
  int64_t left = -1, right = -1;
  bool top_left = false;
  MaybeIn offsets, query_lengths, key_lengths, query_starts, key_starts;
  MaybeIn mask, bias, alibi_slopes, sink;
  int64_t query_block = 0, key_block = 0;
  MaybeIn row_starts, key_blocks;
  double dropout = 0;
  uint64_t seed = 0, step = 0, layer = 0;
  MaybeIn streams;

  template <class R>
  AttentionOptions<R> of() const {
    AttentionOptions<R> o;
    o.scale = scale;
    o.softcap = softcap;
    o.causal = causal;
    o.window = {left, right};
    o.alignment = offsets    ? Alignment::explicit_offsets
                  : top_left ? Alignment::top_left
                             : Alignment::bottom_right;
    o.offsets = vector<int64_t>("offsets", offsets);
    o.query_lengths = vector<int64_t>("query_lengths", query_lengths);
    o.key_lengths = vector<int64_t>("key_lengths", key_lengths);
    o.query_starts = vector<int64_t>("query_starts", query_starts);
    o.key_starts = vector<int64_t>("key_starts", key_starts);
    o.mask = view<bool, 4>("mask", mask);
    o.bias = view<R, 4>("bias", bias);
    o.alibi_slopes = vector<R>("alibi_slopes", alibi_slopes);
    o.sink = vector<R>("sink", sink);
    o.blocks = {query_block, key_block, vector<int64_t>("blocks.row_starts", row_starts),
                vector<int64_t>("blocks.key_blocks", key_blocks)};
    o.dropout = {dropout, seed, step, layer, vector<uint64_t>("dropout.streams", streams)};
    return o;
  }
};

void forward(const In& q, const In& k, const In& v, const Out& out, const MaybeOut& log_sum_exp,
             const MaybeOut& weights, const MaybeOut& scores, const MaybeOut& column_sums,
             const Options& options, int threads) {
  for_dtype(q, [&](auto zero) {
    using T = decltype(zero);
    using R = Real<T>;
    const auto q_ = view<T, 4>("q", q), k_ = view<T, 4>("k", k), v_ = view<T, 4>("v", v);
    const attention::AttentionOutputs<T> outputs{
        view<T, 4>("out", out), view<R, 3>("log_sum_exp", log_sum_exp), view<R, 4>("weights", weights),
        view<R, 4>("scores", scores), view<R, 3>("column_sums", column_sums)};
    const auto o = options.of<R>();
    const nb::gil_scoped_release released;
    attention::attention_forward(q_, k_, v_, outputs, o, pool(threads));
  });
}

void backward(const In& q, const In& k, const In& v, const In& out, const In& log_sum_exp, const In& d_out,
              const MaybeIn& d_log_sum_exp, const Out& d_q, const Out& d_k, const Out& d_v,
              const MaybeOut& d_bias, const MaybeOut& d_sink, const Options& options, int threads) {
  for_dtype(q, [&](auto zero) {
    using T = decltype(zero);
    using R = Real<T>;
    const auto q_ = view<T, 4>("q", q), k_ = view<T, 4>("k", k), v_ = view<T, 4>("v", v),
               o_ = view<T, 4>("out", out);
    const auto l = view<R, 3>("log_sum_exp", log_sum_exp);
    const attention::AttentionGradients<T> gradients{
        view<T, 4>("d_out", d_out), view<R, 3>("d_log_sum_exp", d_log_sum_exp),
        view<T, 4>("d_q", d_q),     view<T, 4>("d_k", d_k),
        view<T, 4>("d_v", d_v),     view<R, 4>("d_bias", d_bias),
        vector<R>("d_sink", d_sink)};
    const auto o = options.of<R>();
    const nb::gil_scoped_release released;
    attention::attention_backward(q_, k_, v_, o_, l, gradients, o, pool(threads));
  });
}

void merge(const std::vector<std::pair<In, In>>& parts, const MaybeIn& sink, const Out& out,
           const Out& log_sum_exp) {
  for_f32_f64(In(out), [&](auto zero) {
    using R = decltype(zero);
    std::vector<attention::PartialState<R>> states;
    for (const auto& [part, l] : parts)
      states.push_back({view<R, 4>("part", part), view<R, 3>("log_sum_exp", l)});
    const auto s = vector<R>("sink", sink);
    const auto o = view<R, 4>("out", out);
    const auto l = view<R, 3>("log_sum_exp", log_sum_exp);
    const nb::gil_scoped_release released;
    attention::merge(std::span<const attention::PartialState<R>>(states), s, o, l);
  });
}

}  // namespace

void bind_attention(nb::module_& m) {
  auto options = nb::class_<Options>(m, "Options").def(nb::init<>());
  const auto optional = [&](const char* name, auto member) {
    options.def_rw(name, member, nb::arg().none());
  };
  options.def_rw("softcap", &Options::softcap)
      .def_rw("causal", &Options::causal)
      .def_rw("left", &Options::left)
      .def_rw("right", &Options::right)
      .def_rw("top_left", &Options::top_left)
      .def_rw("query_block", &Options::query_block)
      .def_rw("key_block", &Options::key_block)
      .def_rw("dropout", &Options::dropout)
      .def_rw("seed", &Options::seed)
      .def_rw("step", &Options::step)
      .def_rw("layer", &Options::layer);
  optional("scale", &Options::scale);
  optional("offsets", &Options::offsets);
  optional("query_lengths", &Options::query_lengths);
  optional("key_lengths", &Options::key_lengths);
  optional("query_starts", &Options::query_starts);
  optional("key_starts", &Options::key_starts);
  optional("mask", &Options::mask);
  optional("bias", &Options::bias);
  optional("alibi_slopes", &Options::alibi_slopes);
  optional("sink", &Options::sink);
  optional("row_starts", &Options::row_starts);
  optional("key_blocks", &Options::key_blocks);
  optional("streams", &Options::streams);

  m.def("attention_forward", &forward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("out"),
        nb::arg("log_sum_exp").none(), nb::arg("weights").none(), nb::arg("scores").none(),
        nb::arg("column_sums").none(), nb::arg("options"), nb::arg("threads"));
  m.def("attention_backward", &backward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("out"),
        nb::arg("log_sum_exp"), nb::arg("d_out"), nb::arg("d_log_sum_exp").none(), nb::arg("d_q"),
        nb::arg("d_k"), nb::arg("d_v"), nb::arg("d_bias").none(), nb::arg("d_sink").none(),
        nb::arg("options"), nb::arg("threads"));
  m.def("merge", &merge, nb::arg("parts"), nb::arg("sink").none(), nb::arg("out"), nb::arg("log_sum_exp"));
}

}  // namespace regard::python
