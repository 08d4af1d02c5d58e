// Linear attention and its gradient.

#include "regard/attention/linear.h"

#include "python/src/arrays.h"

namespace regard::python {
namespace {

using attention::FeatureMap;
using attention::LinearForm;
using attention::LinearGradients;
using attention::LinearOptions;
using attention::LinearState;

template <class T>
LinearState<const T> state_in(const MaybeIn& S, const MaybeIn& z) {
  return {view<T, 4>("state.S", S), view<T, 3>("state.z", z)};
}
template <class T>
LinearState<T> state_out(const MaybeOut& S, const MaybeOut& z) {
  return {view<T, 4>("state.S", S), view<T, 3>("state.z", z)};
}

void forward(const In& q, const In& k, const In& v, const MaybeIn& S, const MaybeIn& z, const Out& out,
             const MaybeOut& S_after, const MaybeOut& z_after, FeatureMap map, bool causal, bool normalise,
             double scale, LinearForm form, int threads) {
  for_f32_f64(q, [&](auto zero) {
    using T = decltype(zero);
    const auto q_ = view<T, 4>("q", q), k_ = view<T, 4>("k", k), v_ = view<T, 4>("v", v);
    const auto out_ = view<T, 4>("out", out);
    const auto before = state_in<T>(S, z);
    const auto after = state_out<T>(S_after, z_after);
    const nb::gil_scoped_release released;
    attention::linear_attention_forward(q_, k_, v_, before, out_, after,
                                        LinearOptions{map, causal, normalise, scale, form}, pool(threads));
  });
}

void backward(const In& q, const In& k, const In& v, const MaybeIn& S, const MaybeIn& z, const In& d_out,
              const MaybeIn& d_S_after, const MaybeIn& d_z_after, const Out& d_q, const Out& d_k,
              const Out& d_v, const MaybeOut& d_S, const MaybeOut& d_z, FeatureMap map, bool causal,
              bool normalise, double scale, int threads) {
  for_f32_f64(q, [&](auto zero) {
    using T = decltype(zero);
    const auto q_ = view<T, 4>("q", q), k_ = view<T, 4>("k", k), v_ = view<T, 4>("v", v);
    const auto before = state_in<T>(S, z);
    const LinearGradients<T> gradients{view<T, 4>("d_out", d_out), state_in<T>(d_S_after, d_z_after),
                                       view<T, 4>("d_q", d_q),     view<T, 4>("d_k", d_k),
                                       view<T, 4>("d_v", d_v),     state_out<T>(d_S, d_z)};
    const nb::gil_scoped_release released;
    attention::linear_attention_backward(q_, k_, v_, before, gradients,
                                         LinearOptions{map, causal, normalise, scale}, pool(threads));
  });
}

}  // namespace

void bind_linear(nb::module_& m) {
  nb::enum_<FeatureMap>(m, "FeatureMap")
      .value("elu_plus_one", FeatureMap::elu_plus_one)
      .value("relu", FeatureMap::relu)
      .value("identity", FeatureMap::identity);
  nb::enum_<LinearForm>(m, "LinearForm")
      .value("chunked", LinearForm::chunked)
      .value("recurrent", LinearForm::recurrent)
      .value("quadratic", LinearForm::quadratic);
  m.def("linear_forward", &forward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("S").none(),
        nb::arg("z").none(), nb::arg("out"), nb::arg("S_after").none(), nb::arg("z_after").none(),
        nb::arg("map"), nb::arg("causal"), nb::arg("normalise"), nb::arg("scale"), nb::arg("form"),
        nb::arg("threads"));
  m.def("linear_backward", &backward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("S").none(),
        nb::arg("z").none(), nb::arg("d_out"), nb::arg("d_S_after").none(), nb::arg("d_z_after").none(),
        nb::arg("d_q"), nb::arg("d_k"), nb::arg("d_v"), nb::arg("d_S").none(), nb::arg("d_z").none(),
        nb::arg("map"), nb::arg("causal"), nb::arg("normalise"), nb::arg("scale"), nb::arg("threads"));
}

}  // namespace regard::python
