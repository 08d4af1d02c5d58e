"""Exact attention, its gradient, and the merging of parts."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Sequence, overload

import numpy as np

from . import _kernels
from ._arrays import (Array, Integers, as_numpy, broadcast, dimensions, dtype_name, give, give_all, numbers, real,
                      vector)

_NAME = "attention"


class AttentionResult(NamedTuple):
    """What `attention` returns if more than the output is asked for; None stands for what was not."""

    out: Any  #: [B, H, T, E]
    weights: Any = None  #: [B, H, T, S], before dropout
    log_sum_exp: Any = None  #: [B, H, T], natural, the sink included
    scores: Any = None  #: [B, H, T, S]
    column_sums: Any = None  #: [B, H, S], the sum of the weights over the queries


class AttentionGradients(NamedTuple):
    """What `attention_backward` returns; shapes and types are the operands'."""

    d_q: Any
    d_k: Any
    d_v: Any
    d_bias: Any = None  #: bias's own shape: summed where bias was broadcast
    d_sink: Any = None  #: [H]


class Dropout(NamedTuple):
    """Weights are zeroed with `probability`, the others multiplied by 1 / (1 - probability).

    What is zeroed follows from (seed, step, layer, stream of the item, head, i, j) alone: not from the batch or from
    threads. `streams` [B] gives each item an id, by default its index.
    """

    probability: float
    seed: int = 0
    step: int = 0
    layer: int = 0
    streams: Integers = None


class BlockSparse(NamedTuple):
    """Which blocks of scores exist: query block r attends to key_blocks[row_starts[r]:row_starts[r + 1]], ascending.

    The sizes need not divide the lengths. The same for every item and head.
    """

    query_block: int
    key_block: int
    row_starts: Integers
    key_blocks: Integers

    @classmethod
    def from_mask(cls, blocks: Any, query_block: int, key_block: int) -> "BlockSparse":
        """From a boolean matrix [query blocks, key blocks]."""
        kept = np.asarray(blocks, bool)
        return cls(query_block, key_block, np.concatenate([[0], np.cumsum(kept.sum(1))]), np.nonzero(kept)[1])


class _Call:
    """The operands as numpy arrays and the options as the kernels take them."""

    def __init__(self, q, k, v, *, scale, causal, window, softcap, mask, bias, alibi_slopes, sink, dropout, blocks,
                 query_lengths, key_lengths, query_starts, key_starts, alignment):
        self.q = numbers(_NAME, "q", q)
        self.k = numbers(_NAME, "k", k, self.q.dtype)
        self.v = numbers(_NAME, "v", v, self.q.dtype)
        for name, x in (("q", self.q), ("k", self.k), ("v", self.v)):
            dimensions(_NAME, name, x, 4)
        self.real = real(self.q.dtype)
        o = self.options = _kernels.Options()
        o.scale = None if scale is None else float(scale)
        o.softcap = float(softcap)
        o.causal = bool(causal)
        o.left, o.right = (-1, -1) if window is None else (int(window[0]), int(window[1]))
        if alignment not in ("bottom_right", "top_left"):
            o.offsets = vector(self._integers("alignment", alignment), np.int64)
        o.top_left = isinstance(alignment, str) and alignment == "top_left"
        o.query_lengths = vector(query_lengths, np.int64)
        o.key_lengths = vector(key_lengths, np.int64)
        o.query_starts = vector(query_starts, np.int64)
        o.key_starts = vector(key_starts, np.int64)
        self.pairs = self._pairs()
        if mask is not None:
            o.mask = broadcast(_NAME, "mask", self._mask(mask), self.pairs)
        self.bias = None if bias is None else numbers(_NAME, "bias", bias, self.real)
        if bias is not None:
            o.bias = broadcast(_NAME, "bias", self.bias, self.pairs)
        o.alibi_slopes = vector(alibi_slopes, self.real)
        o.sink = vector(sink, self.real)
        if dropout is not None:
            dropout = dropout if isinstance(dropout, Dropout) else Dropout(float(dropout))
            o.dropout, o.seed, o.step, o.layer = dropout[:4]
            o.streams = vector(dropout.streams, np.uint64)
        if blocks is not None:
            o.query_block, o.key_block = blocks.query_block, blocks.key_block
            o.row_starts = vector(blocks.row_starts, np.int64)
            o.key_blocks = vector(blocks.key_blocks, np.int64)

    @staticmethod
    def _integers(name, x):
        if isinstance(x, str):
            raise ValueError(f"[{_NAME}] {name} is '{x}', expected 'bottom_right', 'top_left' or offsets [B]")
        return x

    @staticmethod
    def _mask(mask):
        array = as_numpy(f"[{_NAME}] mask", mask)
        if array.dtype != np.bool_:
            raise TypeError(f"[{_NAME}] mask is {dtype_name(array.dtype)}, expected bool (True = may attend); "
                            "numbers that are added to the scores are a bias")
        return array

    def _pairs(self):
        """[B, H, longest T, longest S]: i and j count inside an item."""
        o = self.options
        B, H, T, S = self.q.shape[0], self.q.shape[1], self.q.shape[2], self.k.shape[2]
        if o.query_starts is not None:
            B = len(o.query_starts) - 1
            T = int(np.diff(o.query_starts).max(initial=0))
        if o.key_starts is not None:
            S = int(np.diff(o.key_starts).max(initial=0))
        return (max(B, 0), H, max(T, 0), max(S, 0))

    def out_shape(self):
        return (*self.q.shape[:3], self.v.shape[3])

    def statistics(self):
        return self.q.shape[:3]


@overload
def attention(q: Array, k: Array, v: Array, *, scale: float | None = ..., causal: bool = ...,
              window: tuple[int, int] | None = ..., softcap: float = ..., mask: Any = ..., bias: Any = ...,
              alibi_slopes: Any = ..., sink: Any = ..., dropout: float | Dropout | None = ...,
              blocks: BlockSparse | None = ..., query_lengths: Integers = ..., key_lengths: Integers = ...,
              query_starts: Integers = ..., key_starts: Integers = ...,
              alignment: Literal["bottom_right", "top_left"] | Sequence[int] = ...,
              return_weights: Literal[False] = ..., return_log_sum_exp: Literal[False] = ...,
              return_scores: Literal[False] = ..., return_column_sums: Literal[False] = ...,
              threads: int | None = ...) -> Array: ...
@overload
def attention(q: Array, k: Array, v: Array, *, scale: float | None = ..., causal: bool = ...,
              window: tuple[int, int] | None = ..., softcap: float = ..., mask: Any = ..., bias: Any = ...,
              alibi_slopes: Any = ..., sink: Any = ..., dropout: float | Dropout | None = ...,
              blocks: BlockSparse | None = ..., query_lengths: Integers = ..., key_lengths: Integers = ...,
              query_starts: Integers = ..., key_starts: Integers = ...,
              alignment: Literal["bottom_right", "top_left"] | Sequence[int] = ...,
              return_weights: bool = ..., return_log_sum_exp: bool = ...,
              return_scores: bool | Literal["scaled", "capped", "masked"] = ..., return_column_sums: bool = ...,
              threads: int | None = ...) -> AttentionResult: ...
def attention(q, k, v, *, scale=None, causal=False, window=None, softcap=0.0, mask=None, bias=None, alibi_slopes=None,
              sink=None, dropout=None, blocks=None, query_lengths=None, key_lengths=None, query_starts=None,
              key_starts=None, alignment="bottom_right", return_weights=False, return_log_sum_exp=False,
              return_scores=False, return_column_sums=False, threads=None):
    """Scaled dot-product attention, tiled, in memory that does not grow with T times S.

        s_ij = scale q_i . k_j;  softcap tanh(s_ij / softcap);  + bias_ij - slope_h |i + offset - j|;  masks
        p_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(sink_h));     o_i = sum_j dropout(p_ij) v_j

    Vaswani et al. 2017, arXiv:1706.03762, 3.2; in one pass: Milakov and Gimelshein 2018, arXiv:1805.02867; in tiles:
    Dao et al. 2022, arXiv:2205.14135.

    q [B, H, T, D], k [B, Hkv, S, D], v [B, Hkv, S, E]: float32, bfloat16 (computed in float32) or float64 (from the
    definition; slow), with any strides, never copied. H is a multiple of Hkv; head h attends with head h // (H // Hkv).

    scale            default 1 / sqrt(D)
    causal           key j is allowed for query i if j <= i + offset
    window           (left, right): i + offset - left <= j <= i + offset + right; -1 = open
    alignment        the offset. "bottom_right": valid keys - valid queries of the item, "top_left": 0, or offsets [B]
    mask             bool, True = may attend;  bias: numbers that are added. Both broadcast to [B, H, T, S]
    alibi_slopes     [H];  sink [H]: a score that takes weight and has no value
    dropout          a probability or a Dropout;  blocks: a BlockSparse
    query_lengths    [B], valid positions, likewise key_lengths; key lengths alone, where T == S, are both
    query_starts     [B + 1], with key_starts: a ragged batch in operands of batch 1; i and j count inside an item
    return_scores    True or "masked": the scores as the softmax sees them; "scaled": scale q . k alone; "capped": after
                     softcap. The last two are another pass over the keys.
    threads          default: all processors. The result does not depend on it.

    Returns out [B, H, T, E], or an AttentionResult if something more is to be returned. Rows that may attend to nothing
    are 0, their log-sum-exp -inf. Results have q's library and type; statistics, weights and scores are float32
    (float64 for float64). Raises ShapeError (a ValueError) for shapes that do not fit, TypeError for types. The
    interpreter's lock is released; safe from several threads.
    """
    call = _Call(q, k, v, scale=scale, causal=causal, window=window, softcap=softcap, mask=mask, bias=bias,
                 alibi_slopes=alibi_slopes, sink=sink, dropout=dropout, blocks=blocks, query_lengths=query_lengths,
                 key_lengths=key_lengths, query_starts=query_starts, key_starts=key_starts, alignment=alignment)
    if return_scores not in (False, True, "scaled", "capped", "masked"):
        raise ValueError(f"[{_NAME}] return_scores is '{return_scores}', expected 'scaled', 'capped' or 'masked'")
    partial = return_scores in ("scaled", "capped")
    out = np.empty(call.out_shape(), call.q.dtype)
    lse = np.empty(call.statistics(), call.real) if return_log_sum_exp else None
    weights = np.zeros(call.pairs, call.real) if return_weights else None
    scores = np.full(call.pairs, -np.inf, call.real) if return_scores else None
    sums = np.zeros((call.q.shape[0], call.q.shape[1], call.k.shape[2]), call.real) if return_column_sums else None
    _kernels.attention_forward(call.q, call.k, call.v, out, lse, weights, None if partial else scores, sums, call.options,
                               threads or 0)
    if partial:
        _scores_before_masks(call, scores, softcap if return_scores == "capped" else 0.0, threads)
    result = AttentionResult(*give_all((out, weights, lse, scores, sums), q))
    return result if return_weights or return_log_sum_exp or return_scores or return_column_sums else result.out


def _scores_before_masks(call, scores, softcap, threads):
    o = _kernels.Options()
    for name in ("scale", "query_starts", "key_starts"):
        setattr(o, name, getattr(call.options, name))
    o.softcap = softcap
    _kernels.attention_forward(call.q, call.k, call.v, np.empty(call.out_shape(), call.q.dtype), None, None, scores, None, o,
                               threads or 0)


def attention_backward(q: Array, k: Array, v: Array, out: Array, log_sum_exp: Array, d_out: Array, *,
                       d_log_sum_exp: Any = None, return_d_bias: bool = False, scale: float | None = None,
                       causal: bool = False, window: tuple[int, int] | None = None, softcap: float = 0.0, mask: Any = None,
                       bias: Any = None, alibi_slopes: Any = None, sink: Any = None, dropout: float | Dropout | None = None,
                       blocks: BlockSparse | None = None, query_lengths: Integers = None, key_lengths: Integers = None,
                       query_starts: Integers = None, key_starts: Integers = None,
                       alignment: Literal["bottom_right", "top_left"] | Sequence[int] = "bottom_right",
                       threads: int | None = None) -> AttentionGradients:
    """Gradients of a loss L from d_out = dL/d out [B, H, T, E] and, unless None, d_log_sum_exp [B, H, T].

    Operands, options, `out` and `log_sum_exp` are those of `attention(..., return_log_sum_exp=True)`; scores are
    recomputed tile by tile (Dao et al. 2022, arXiv:2205.14135):

        dP = dO V'   dS = P (dP - sum_e dO O + d_log_sum_exp)   dQ = scale dS K   dK = scale dS' Q   dV = P' dO

    return_d_bias asks for bias's gradient; a sink's is always given. Errors as of `attention`. The result does not
    depend on the number of threads.
    """
    call = _Call(q, k, v, scale=scale, causal=causal, window=window, softcap=softcap, mask=mask, bias=bias,
                 alibi_slopes=alibi_slopes, sink=sink, dropout=dropout, blocks=blocks, query_lengths=query_lengths,
                 key_lengths=key_lengths, query_starts=query_starts, key_starts=key_starts, alignment=alignment)
    if return_d_bias and bias is None:
        raise ValueError(f"[{_NAME}] return_d_bias needs a bias")
    out_, d_out_ = numbers(_NAME, "out", out, call.q.dtype), numbers(_NAME, "d_out", d_out, call.q.dtype)
    lse = numbers(_NAME, "log_sum_exp", log_sum_exp, call.real)
    d_lse = None if d_log_sum_exp is None else numbers(_NAME, "d_log_sum_exp", d_log_sum_exp, call.real)
    d_q, d_k, d_v = (np.empty(x.shape, x.dtype) for x in (call.q, call.k, call.v))
    d_bias = np.zeros(call.bias.shape, call.real) if return_d_bias else None
    d_sink = None if sink is None else np.zeros(call.options.sink.shape, call.real)
    d_bias_view = None if d_bias is None else broadcast(_NAME, "bias", d_bias, call.pairs, writable=True)
    _kernels.attention_backward(call.q, call.k, call.v, out_, lse, d_out_, d_lse, d_q, d_k, d_v, d_bias_view, d_sink,
                                call.options, threads or 0)
    return AttentionGradients(*give_all((d_q, d_k, d_v, d_bias, d_sink), q))


def merge(parts: Sequence[tuple[Array, Array]], *, sink: Any = None) -> tuple[Array, Array]:
    """Attention over all keys from attention over parts of them: pairs of out [B, H, T, E] and log_sum_exp [B, H, T].

        l = log(sum_p exp(l_p) + exp(sink));   out = sum_p exp(l_p - l) out_p

    The parts must have been computed without the sink [H], which is added once. Empty parts (-inf) add nothing. float32
    and float64. Milakov and Gimelshein 2018, arXiv:1805.02867. Raises ShapeError.
    """
    if not parts:
        raise ValueError("[attention] merge needs at least one part")
    first = numbers(_NAME, "out", parts[0][0])
    if first.dtype != real(first.dtype):
        raise TypeError("[attention] merge takes float32 or float64")
    arrays = [(numbers(_NAME, "out", o, first.dtype), numbers(_NAME, "log_sum_exp", l, first.dtype)) for o, l in parts]
    dimensions(_NAME, "out", first, 4)
    out, lse = np.empty(first.shape, first.dtype), np.empty(first.shape[:3], first.dtype)
    _kernels.merge(arrays, vector(sink, first.dtype), out, lse)
    return give(out, parts[0][0]), give(lse, parts[0][0])
