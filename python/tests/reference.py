"""Attention in float64, written like the formulas. Slow; the oracle of these tests."""

import numpy as np

INFINITY = np.inf


def softmax(scores, sink=None):
    """Rows of zeros where no score is above -inf. Weights and natural log-sum-exp."""
    largest = scores.max(-1, keepdims=True, initial=-INFINITY)
    if sink is not None:
        largest = np.maximum(largest, sink)
    largest = np.where(np.isneginf(largest), 0, largest)
    e = np.exp(scores - largest)
    total = e.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - largest)
    with np.errstate(divide="ignore"):
        return e / np.where(total == 0, 1, total), (largest + np.log(total))[..., 0]


def allowed(B, T, S, *, causal=False, window=None, mask=None, query_lengths=None, key_lengths=None,
            alignment="bottom_right"):
    """[B, 1 or H, T, S], and the offsets."""
    if query_lengths is None:
        query_lengths = key_lengths if key_lengths is not None and T == S else [T] * B
    if key_lengths is None:
        key_lengths = [S] * B
    query_lengths, key_lengths = np.asarray(query_lengths), np.asarray(key_lengths)
    if isinstance(alignment, str):
        offsets = key_lengths - query_lengths if alignment == "bottom_right" else np.zeros(B, int)
    else:
        offsets = np.asarray(alignment)
    i, j = np.arange(T)[None, :, None], np.arange(S)[None, None, :]
    stands = i + offsets[:, None, None]
    kept = (i < query_lengths[:, None, None]) & (j < key_lengths[:, None, None])
    if causal:
        kept &= j <= stands
    left, right = window or (-1, -1)
    if left >= 0:
        kept &= j >= stands - left
    if right >= 0:
        kept &= j <= stands + right
    kept = kept[:, None]
    return (kept if mask is None else kept & mask), np.abs(stands - j)[:, None]


def attention(q, k, v, *, scale=None, softcap=0, bias=None, alibi_slopes=None, sink=None, **masks):
    """out, weights, log-sum-exp, scores as the softmax sees them."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    s = (1 / np.sqrt(q.shape[3]) if scale is None else scale) * (q @ k.swapaxes(2, 3))
    if softcap > 0:
        s = softcap * np.tanh(s / softcap)
    if bias is not None:
        s = s + np.asarray(bias, np.float64)
    kept, distance = allowed(q.shape[0], q.shape[2], k.shape[2], **masks)
    if alibi_slopes is not None:
        s = s - np.asarray(alibi_slopes, np.float64)[None, :, None, None] * distance
    s = np.where(kept, s, -INFINITY)
    p, log_sum_exp = softmax(s, None if sink is None else np.asarray(sink, np.float64)[None, :, None, None])
    return p @ v, p, log_sum_exp, s


def additive(query, keys, values, v, key_lengths=None):
    """context, weights of query [B, T, A]."""
    e = np.tanh(query[:, :, None] + keys[:, None]) @ v
    if key_lengths is not None:
        e = np.where(np.arange(keys.shape[1]) < np.asarray(key_lengths)[:, None, None], e, -INFINITY)
    p, _ = softmax(e)
    return p @ values, p


def linear(q, k, v, phi, causal=True, normalise=True, scale=1.0, S=0.0, z=0.0):
    """out, S, z by the recurrence, or over all positions."""
    group = q.shape[1] // k.shape[1]
    q, k = phi(q), phi(k)
    B, H, T, D = q.shape
    S = np.zeros((B, k.shape[1], D, v.shape[3])) + S
    z = np.zeros((B, k.shape[1], D)) + z
    out = np.zeros((B, H, T, v.shape[3]))
    if not causal:
        S, z = S + k.swapaxes(2, 3) @ v, z + k.sum(2)
    for t in range(T):
        if causal:
            S, z = S + k[:, :, t, :, None] * v[:, :, t, None, :], z + k[:, :, t]
        numerator = np.einsum("bhd,bhde->bhe", q[:, :, t], S.repeat(group, 1))
        denominator = np.einsum("bhd,bhd->bh", q[:, :, t], z.repeat(group, 1))[..., None]
        out[:, :, t] = scale * (numerator / np.where(denominator == 0, np.inf, denominator) if normalise else numerator)
    return out, S, z


def numeric_gradient(loss, x, step=1e-6):
    """Central differences of loss() with respect to the array x, in place."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        kept = x[index]
        x[index] = kept + step
        above = loss()
        x[index] = kept - step
        gradient[index] = (above - loss()) / (2 * step)
        x[index] = kept
    return gradient
