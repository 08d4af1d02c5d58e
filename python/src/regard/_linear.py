"""Linear attention and its gradient."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from . import _kernels
from ._arrays import Array, dimensions, give, give_all, numbers, real

_NAME = "attention"
FeatureMap = Literal["elu_plus_one", "relu", "identity"]
LinearForm = Literal["chunked", "recurrent", "quadratic"]


class LinearState(NamedTuple):
    """What has been attended to: S = sum phi(k) v' [B, Hkv, D, E] and z = sum phi(k) [B, Hkv, D]."""

    S: Any
    z: Any


class LinearGradients(NamedTuple):
    d_q: Any
    d_k: Any
    d_v: Any
    d_state: LinearState | None = None


def _operands(q, k, v):
    q_ = numbers(_NAME, "q", q)
    if q_.dtype != real(q_.dtype):
        raise TypeError(f"[{_NAME}] linear attention takes float32 or float64")
    arrays = (q_, numbers(_NAME, "k", k, q_.dtype), numbers(_NAME, "v", v, q_.dtype))
    for name, x in zip("qkv", arrays):
        dimensions(_NAME, name, x, 4)
    return arrays


def _state(name, state, dtype):
    return (None, None) if state is None else (numbers(_NAME, f"{name}.S", state[0], dtype),
                                               numbers(_NAME, f"{name}.z", state[1], dtype))


def _named(enum, name, what):
    try:
        return getattr(enum, name)
    except (AttributeError, TypeError):
        raise ValueError(f"[{_NAME}] {what} is '{name}'") from None


def _new_state(k, v):
    return (np.empty((*k.shape[:2], k.shape[3], v.shape[3]), k.dtype), np.empty((*k.shape[:2], k.shape[3]), k.dtype))


def linear_attention(q: Array, k: Array, v: Array, *, feature_map: FeatureMap = "elu_plus_one", causal: bool = True,
                     normalise: bool = True, scale: float = 1.0, state: LinearState | None = None,
                     return_state: bool = False, form: LinearForm = "chunked", threads: int | None = None) -> Any:
    """Linear attention: Katharopoulos et al. 2020, arXiv:2006.16236, 3.2 to 3.4.

        S_i = S_0 + sum_j phi(k_j) v_j'     z_i = z_0 + sum_j phi(k_j)       over j <= i (causal), or over all j
        o_i = scale phi(q_i)' S_i / (phi(q_i)' z_i);   a denominator of 0 gives 0;   normalise=False: no denominator

    q [B, H, T, D], k [B, Hkv, T, D], v [B, Hkv, T, E]: float32 or float64, any strides. `state` is S_0 and z_0. The forms
    chunked, recurrent and quadratic agree up to rounding. Returns out [B, H, T, E], or (out, LinearState) to go on with:

        out, state = linear_attention(q, k, v, return_state=True)
        more, state = linear_attention(q2, k2, v2, state=state, return_state=True)

    Raises ShapeError, TypeError. The result does not depend on the number of threads.
    """
    q_, k_, v_ = _operands(q, k, v)
    before = _state("state", state, q_.dtype)
    after = _new_state(k_, v_) if return_state else (None, None)
    out = np.empty((*q_.shape[:3], v_.shape[3]), q_.dtype)
    _kernels.linear_forward(q_, k_, v_, *before, out, *after, _named(_kernels.FeatureMap, feature_map, "feature_map"),
                            bool(causal), bool(normalise), float(scale), _named(_kernels.LinearForm, form, "form"),
                            threads or 0)
    return (give(out, q), LinearState(*give_all(after, q))) if return_state else give(out, q)


def linear_attention_backward(q: Array, k: Array, v: Array, d_out: Array, *, feature_map: FeatureMap = "elu_plus_one",
                              causal: bool = True, normalise: bool = True, scale: float = 1.0,
                              state: LinearState | None = None, d_state: LinearState | None = None,
                              threads: int | None = None) -> LinearGradients:
    """Gradients of a loss from d_out [B, H, T, E] and, unless None, the gradient d_state of the state that was returned.

    Options are those of `linear_attention`. With `state`, its gradient is returned too.
    """
    q_, k_, v_ = _operands(q, k, v)
    before, d_after = _state("state", state, q_.dtype), _state("d_state", d_state, q_.dtype)
    d_before = (None, None) if state is None else _new_state(k_, v_)
    d_q, d_k, d_v = (np.empty(x.shape, x.dtype) for x in (q_, k_, v_))
    _kernels.linear_backward(q_, k_, v_, *before, numbers(_NAME, "d_out", d_out, q_.dtype), *d_after, d_q, d_k, d_v,
                             *d_before, _named(_kernels.FeatureMap, feature_map, "feature_map"), bool(causal),
                             bool(normalise), float(scale), threads or 0)
    return LinearGradients(*give_all((d_q, d_k, d_v), q),
                           None if state is None else LinearState(*give_all(d_before, q)))
