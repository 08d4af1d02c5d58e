"""Additive attention and its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _kernels
from ._arrays import Array, Integers, give, give_all, numbers, real, vector

_NAME = "additive"


class AdditiveGradients(NamedTuple):
    d_query: Any
    d_keys: Any
    d_values: Any
    d_v: Any


class _Call:
    """Sources [B, S, ..] as one table of B S rows, of which item b's first key_lengths[b] are its sentence."""

    def __init__(self, query, keys, values, v, key_lengths):
        q = numbers(_NAME, "query", query)
        if q.dtype != real(q.dtype):
            raise TypeError(f"[{_NAME}] additive attention takes float32 or float64")
        k, h = numbers(_NAME, "keys", keys, q.dtype), numbers(_NAME, "values", values, q.dtype)
        self.v = np.ascontiguousarray(numbers(_NAME, "v", v, q.dtype))
        if q.ndim not in (2, 3) or k.ndim != 3 or k.shape[0] != q.shape[0] or k.shape[2] != q.shape[-1]:
            raise _kernels.ShapeError(f"[{_NAME}] query {list(q.shape)} and keys {list(k.shape)}, expected [B, A] or [B, T, A] and "
                             "[B, S, A]")
        if h.ndim != 3 or h.shape[:2] != k.shape[:2]:
            raise _kernels.ShapeError(f"[{_NAME}] values {list(h.shape)}, expected {[*k.shape[:2], 'E']} (B, S, E)")
        B, S = k.shape[:2]
        T = q.shape[1] if q.ndim == 3 else 1
        lengths = np.full(B, S, np.int64) if key_lengths is None else vector(key_lengths, np.int64)
        if lengths.shape != (B,) or (B and (lengths.min() < 0 or lengths.max() > S)):
            raise _kernels.ShapeError(f"[{_NAME}] key_lengths {lengths.tolist()}, expected {B} numbers from 0 to {S} (B, S)")
        self.query, self.keys, self.values = rows(q), rows(k), rows(h)
        # Sentence 2 b is item b, sentence 2 b + 1 the padding behind it, which no row looks at.
        starts = np.arange(B, dtype=np.int64) * S
        self.offsets = np.append(np.stack([starts, starts + lengths], 1).reshape(-1), B * S).astype(np.int64)
        self.sentences = np.repeat(np.arange(B, dtype=np.int32) * 2, T)
        self.weights_shape = (*q.shape[:-1], S)
        self.context_shape = (*q.shape[:-1], h.shape[2])
        self.shapes = (q.shape, k.shape, h.shape, self.v.shape)

    def operands(self):
        return self.query, self.keys, self.values, self.v, self.offsets, self.sentences


def rows(x: np.ndarray) -> np.ndarray:
    """[.., columns] as [rows, columns] with columns side by side; copied only where strides do not allow that."""
    if x.shape[-1] > 1 and x.strides[-1] != x.itemsize:
        x = np.ascontiguousarray(x)
    return x.reshape(-1, x.shape[-1]) if x.size else np.empty((int(np.prod(x.shape[:-1])), x.shape[-1]), x.dtype)


def additive_attention(query: Array, keys: Array, values: Array, v: Array, *, key_lengths: Integers = None,
                       return_weights: bool = False, threads: int | None = None) -> Any:
    """Additive attention: Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, A.1.2.

        e_ij = v' tanh(q_i + k_j)     alpha_ij = exp(e_ij) / sum_j exp(e_ij)     c_i = sum_j alpha_ij h_j

    query [B, A] or [B, T, A] (W_a s_{i-1}), keys [B, S, A] (U_a h_j, projected once a sentence), values [B, S, E] (h_j), v
    [A]: float32 or float64. key_lengths [B] are the valid positions of each source. Luong's concat is the same with
    query = W_s s and keys = W_h h.

    Returns the context [B, E] or [B, T, E], or (context, weights [B, S] or [B, T, S]). An empty source gives 0. Fused: no
    tensor of [B, T, S, A]. Raises ShapeError (a ValueError), TypeError.
    """
    call = _Call(query, keys, values, v, key_lengths)
    weights, context = np.zeros(call.weights_shape, call.v.dtype), np.empty(call.context_shape, call.v.dtype)
    _kernels.additive_forward(*call.operands(), rows(weights), rows(context), threads or 0)
    return (give(context, query), give(weights, query)) if return_weights else give(context, query)


def additive_attention_backward(query: Array, keys: Array, values: Array, v: Array, weights: Array, d_context: Array, *,
                                d_weights: Any = None, key_lengths: Integers = None,
                                threads: int | None = None) -> AdditiveGradients:
    """Gradients of a loss from d_context and, unless None, d_weights, in the shapes of context and weights.

    Operands are the forward's, `weights` what it returned; tanh is computed again, not kept.
    """
    call = _Call(query, keys, values, v, key_lengths)
    given = {"weights": (weights, call.weights_shape), "d_context": (d_context, call.context_shape)}
    if d_weights is not None:
        given["d_weights"] = (d_weights, call.weights_shape)
    arrays = {name: numbers(_NAME, name, x, call.v.dtype) for name, (x, _) in given.items()}
    for name, (_, shape) in given.items():
        if arrays[name].shape != shape:
            raise _kernels.ShapeError(f"[{_NAME}] {name} {list(arrays[name].shape)}, expected {list(shape)}")
    gradients = [np.zeros(shape, call.v.dtype) for shape in call.shapes]
    _kernels.additive_backward(*call.operands(), rows(arrays["weights"]), rows(arrays["d_context"]),
                               rows(arrays["d_weights"]) if d_weights is not None else None,
                               *(rows(x) for x in gradients[:3]), gradients[3], threads or 0)
    return AdditiveGradients(*give_all(gradients, query))
