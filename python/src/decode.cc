// Decoding on a cache.

#include "regard/attention/decode.h"

#include <memory>

#include "python/src/arrays.h"

namespace regard::python {
namespace {

using attention::DecodeCache;
using attention::DecodeOptions;

struct Options {
  std::optional<double> scale;
  double softcap;
  bool causal;
  int64_t left, right;
  const MaybeIn &key_lengths, &offsets, &alibi_slopes, &sink;

  template <class R>
  DecodeOptions<R> of() const {
    return {scale,
            softcap,
            causal,
            {left, right},
            vector<int64_t>("key_lengths", key_lengths),
            vector<int64_t>("offsets", offsets),
            vector<R>("alibi_slopes", alibi_slopes),
            vector<R>("sink", sink)};
  }
};

template <class T>
DecodeCache<T> cache_of(const In& keys, const In& values, const MaybeIn& block_table) {
  return {view<T, 4>("keys", keys), view<T, 4>("values", values),
          matrix_view<int32_t>("block_table", block_table)};
}

template <class T>
void run(const View4<const float>& q, const DecodeCache<T>& cache, const View4<float>& out,
         const View3<float>& log_sum_exp, const DecodeOptions<float>& options, int threads) {
  const auto size = static_cast<size_t>(attention::decode_scratch_size(q, cache));
  const std::unique_ptr<float[]> scratch(new float[size]);
  attention::decode(q, cache, out, log_sum_exp, {scratch.get(), size}, options, pool(threads));
}

/// out_ij = f(x_ij) for equal shapes.
template <class From, class To, class Function>
void copy(const View4<From>& x, const View4<To>& out, const Function& f) {
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t h = 0; h < x.shape[1]; ++h)
      for (int64_t i = 0; i < x.shape[2]; ++i)
        for (int64_t d = 0; d < x.shape[3]; ++d) out(b, h, i, d) = f(x(b, h, i, d));
}

/// Queries in bfloat16: few, so they are converted.
void decode_bfloat16(const In& q, const DecodeCache<BFloat16>& cache, const Out& out,
                     const View3<float>& log_sum_exp, const DecodeOptions<float>& options, int threads) {
  const auto q_ = view<BFloat16, 4>("q", q);
  const auto out_ = view<BFloat16, 4>("out", out);
  const nb::gil_scoped_release released;
  std::vector<float> q_f32(q.size()), out_f32(out.size());
  const auto q_view = dense(q_f32.data(), q_.shape), out_view = dense(out_f32.data(), out_.shape);
  copy(q_, q_view, [](BFloat16 x) { return static_cast<float>(x); });
  run<BFloat16>(q_view, cache, out_view, log_sum_exp, options, threads);
  copy(out_view, out_, [](float x) { return BFloat16(x); });
}

void decode(const In& q, const In& keys, const In& values, const MaybeIn& block_table, const Out& out,
            const MaybeOut& log_sum_exp, std::optional<double> scale, double softcap, bool causal,
            int64_t left, int64_t right, const MaybeIn& key_lengths, const MaybeIn& offsets,
            const MaybeIn& alibi_slopes, const MaybeIn& sink, int threads) {
  const Options options{scale, softcap, causal, left, right, key_lengths, offsets, alibi_slopes, sink};
  for_dtype(keys, [&](auto zero) {
    using T = decltype(zero);
    using R = attention::Real<T>;
    const auto cache = cache_of<T>(keys, values, block_table);
    const auto l = view<R, 3>("log_sum_exp", log_sum_exp);
    const auto o = options.of<R>();
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (q.dtype() == dtype_of<BFloat16>()) return decode_bfloat16(q, cache, out, l, o, threads);
    }
    const auto q_ = view<R, 4>("q", q);
    const auto out_ = view<R, 4>("out", out);
    const nb::gil_scoped_release released;
    if constexpr (std::is_same_v<T, double>)
      attention::decode(q_, cache, out_, l, o);
    else
      run<T>(q_, cache, out_, l, o, threads);
  });
}

}  // namespace

void bind_decode(nb::module_& m) {
  m.def("decode", &decode, nb::arg("q"), nb::arg("keys"), nb::arg("values"), nb::arg("block_table").none(),
        nb::arg("out"), nb::arg("log_sum_exp").none(), nb::arg("scale").none(), nb::arg("softcap"),
        nb::arg("causal"), nb::arg("left"), nb::arg("right"), nb::arg("key_lengths").none(),
        nb::arg("offsets").none(), nb::arg("alibi_slopes").none(), nb::arg("sink").none(),
        nb::arg("threads"));
}

}  // namespace regard::python
