"""Decoding: new queries on a cache of keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _kernels
from ._arrays import Array, Integers, as_numpy, dimensions, give, numbers, real, vector

_NAME = "attention"


def decode(q: Array, keys: Array, values: Array, *, block_table: Any = None, key_lengths: Integers = None,
           scale: float | None = None, softcap: float = 0.0, causal: bool = False, window: tuple[int, int] | None = None,
           offsets: Integers = None, alibi_slopes: Any = None, sink: Any = None, return_log_sum_exp: bool = False,
           threads: int | None = None) -> Any:
    """Attention of one or few new queries on a long cache, contiguous or in pages.

    q [B, H, T, D]; keys [B, Hkv, S, D] and values [B, Hkv, S, E], or, with block_table [B, pages of an item] (int32),
    [pages, Hkv, page size, ..]: position j of item b stands in page block_table[b, j // page size]. The cache may be
    bfloat16 with float32 or bfloat16 queries; all is computed in float32.

    key_lengths [B] are the valid positions; the last query stands at the last of them unless offsets [B] say where query
    0 stands. The other options are those of `attention`. The cache is cut into parts of 1,024 positions which are attended
    to apart and merged in order (Dao et al. 2023, "Flash-Decoding"), whatever the number of threads; positions that no
    query may attend to are never read.

    Returns out [B, H, T, E], or (out, log_sum_exp [B, H, T]). Raises ShapeError, TypeError.
    """
    keys_ = numbers(_NAME, "keys", keys)
    q_ = numbers(_NAME, "q", q)
    R = real(keys_.dtype)
    if q_.dtype not in (keys_.dtype, R):
        numbers(_NAME, "q", q, keys_.dtype)
    values_ = numbers(_NAME, "values", values, keys_.dtype)
    dimensions(_NAME, "q", q_, 4)
    dimensions(_NAME, "values", values_, 4)
    table = None if block_table is None else np.ascontiguousarray(as_numpy("block_table", block_table), np.int32)
    out = np.empty((*q_.shape[:3], values_.shape[3]), q_.dtype)
    lse = np.empty(q_.shape[:3], R) if return_log_sum_exp else None
    left, right = (-1, -1) if window is None else window
    _kernels.decode(q_, keys_, values_, table, out, lse, scale, float(softcap), bool(causal), int(left), int(right),
                    vector(key_lengths, np.int64), vector(offsets, np.int64), vector(alibi_slopes, R), vector(sink, R),
                    threads or 0)
    return (give(out, q), give(lse, q)) if return_log_sum_exp else give(out, q)


class KVCache:
    """Keys and values of a batch, position after position, for `decode`.

        cache = KVCache(batch=2, heads=8, capacity=4096, width=64)
        cache.append(k, v)                          # [B, Hkv, T, D], [B, Hkv, T, E]: the prompt, then a token at a time
        out = cache.decode(q, causal=True)          # q [B, H, T, D], the last T positions

    `keys` [B, Hkv, capacity, D], `values` and `lengths` [B] are plain numpy arrays that may be read and written.
    """

    def __init__(self, batch: int, heads: int, capacity: int, width: int, value_width: int | None = None,
                 dtype: Any = np.float32) -> None:
        self.keys = np.zeros((batch, heads, capacity, width), dtype)
        self.values = np.zeros((batch, heads, capacity, width if value_width is None else value_width), dtype)
        self.lengths = np.zeros(batch, np.int64)

    def append(self, k: Any, v: Any) -> None:
        """Writes [B, Hkv, T, ..] behind what each item has. ValueError if the shapes do not fit or the cache is full."""
        k, v = (np.asarray(x) for x in (k, v))
        B, heads, capacity, D = self.keys.shape
        T = k.shape[2] if k.ndim == 4 else 0
        for name, x, width in (("k", k, D), ("v", v, self.values.shape[3])):
            if x.shape != (B, heads, T, width):
                raise _kernels.ShapeError(f"[cache] {name} {list(x.shape)}, expected {[B, heads, T, width]} (B, Hkv, T, width)")
        if B and int(self.lengths.max()) + T > capacity:
            raise ValueError(f"[cache] {int(self.lengths.max())} positions and {T} more, capacity {capacity}")
        for b, length in enumerate(self.lengths):
            self.keys[b, :, length:length + T] = k[b]
            self.values[b, :, length:length + T] = v[b]
        self.lengths += T

    def decode(self, q: Array, **options: Any) -> Any:
        """`decode` on this cache."""
        return decode(q, self.keys, self.values, key_lengths=self.lengths, **options)
