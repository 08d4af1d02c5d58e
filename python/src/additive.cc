// Additive attention and its gradient.

#include "regard/attention/additive.h"

#include "python/src/arrays.h"

namespace regard::python {
namespace {

using attention::AdditiveGradients;
using attention::AdditiveOperands;

template <class T>
AdditiveOperands<T> operands(const In& query, const In& keys, const In& values, const In& v,
                             const In& offsets, const In& sentences) {
  const AdditiveOperands<T> o{matrix_view<T>("query", query),      matrix_view<T>("keys", keys),
                              matrix_view<T>("values", values),    data_of<T>("v", v),
                              vector<int64_t>("offsets", offsets), vector<int32_t>("sentences", sentences)};
  if (shape_of(v) != std::vector<int64_t>{o.query.columns})
    throw ShapeError("[additive] v " + shape_text(shape_of(v)) + ", expected [" +
                     std::to_string(o.query.columns) + "] (A)");
  return o;
}

void forward(const In& query, const In& keys, const In& values, const In& v, const In& offsets,
             const In& sentences, const Out& weights, const Out& context, int threads) {
  for_f32_f64(query, [&](auto zero) {
    using T = decltype(zero);
    const auto o = operands<T>(query, keys, values, v, offsets, sentences);
    const auto weights_ = matrix_view<T>("weights", weights), context_ = matrix_view<T>("context", context);
    const nb::gil_scoped_release released;
    attention::additive_forward(o, weights_, context_, pool(threads));
  });
}

void backward(const In& query, const In& keys, const In& values, const In& v, const In& offsets,
              const In& sentences, const In& weights, const In& d_context, const MaybeIn& d_weights,
              const Out& d_query, const Out& d_keys, const Out& d_values, const Out& d_v, int threads) {
  for_f32_f64(query, [&](auto zero) {
    using T = decltype(zero);
    const auto o = operands<T>(query, keys, values, v, offsets, sentences);
    const auto weights_ = matrix_view<T>("weights", weights);
    const AdditiveGradients<T> gradients{
        matrix_view<T>("d_context", d_context), matrix_view<T>("d_weights", d_weights),
        matrix_view<T>("d_query", d_query),     matrix_view<T>("d_keys", d_keys),
        matrix_view<T>("d_values", d_values),   data_of<T>("d_v", d_v)};
    const nb::gil_scoped_release released;
    attention::additive_backward(o, weights_, gradients, pool(threads));
  });
}

}  // namespace

void bind_additive(nb::module_& m) {
  m.def("additive_forward", &forward, nb::arg("query"), nb::arg("keys"), nb::arg("values"), nb::arg("v"),
        nb::arg("offsets"), nb::arg("sentences"), nb::arg("weights"), nb::arg("context"), nb::arg("threads"));
  m.def("additive_backward", &backward, nb::arg("query"), nb::arg("keys"), nb::arg("values"), nb::arg("v"),
        nb::arg("offsets"), nb::arg("sentences"), nb::arg("weights"), nb::arg("d_context"),
        nb::arg("d_weights").none(), nb::arg("d_query"), nb::arg("d_keys"), nb::arg("d_values"),
        nb::arg("d_v"), nb::arg("threads"));
}

}  // namespace regard::python
