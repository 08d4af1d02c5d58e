"""Additive and linear attention and decoding against float64 references."""

import numpy as np
import pytest
import reference
import regard

TOLERANCE = {np.float64: 1e-11, np.float32: 2e-5}


def gradient_matches(loss, x, gradient):
    np.testing.assert_allclose(gradient, reference.numeric_gradient(loss, x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("lengths", [None, [7, 0, 3]])
def test_additive(dtype, lengths, normal):
    query, keys, values, v = (normal(*shape, dtype=dtype) for shape in ((3, 5, 9), (3, 7, 9), (3, 7, 6), (9,)))
    context, weights = regard.additive_attention(query, keys, values, v, key_lengths=lengths, return_weights=True)
    expected, alpha = reference.additive(*(x.astype(np.float64) for x in (query, keys, values, v)), lengths)
    np.testing.assert_allclose(context, expected, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(weights, alpha, atol=TOLERANCE[dtype])
    one = regard.additive_attention(query[:, 2], keys, values, v, key_lengths=lengths)  # a single step, the same bits
    np.testing.assert_array_equal(one, context[:, 2])
    strided = regard.additive_attention(query[:, ::2], np.asfortranarray(keys), values[..., ::-1][..., ::-1], v,
                                        key_lengths=lengths, threads=2)
    np.testing.assert_array_equal(strided, context[:, ::2])


@pytest.mark.parametrize("lengths", [None, [4, 0]])
def test_additive_backward(lengths, normal):
    query, keys, values, v = normal(2, 3, 5), normal(2, 4, 5), normal(2, 4, 2), normal(5)
    d_context, d_weights = normal(2, 3, 2), normal(2, 3, 4)

    def loss():
        context, alpha = reference.additive(query, keys, values, v, lengths)
        return (context * d_context).sum() + (alpha * d_weights).sum()

    _, weights = regard.additive_attention(query, keys, values, v, key_lengths=lengths, return_weights=True)
    got = regard.additive_attention_backward(query, keys, values, v, weights, d_context, d_weights=d_weights,
                                             key_lengths=lengths)
    for x, gradient in zip((query, keys, values, v), got):
        gradient_matches(loss, x, gradient)


MAPS = {"elu_plus_one": lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))), "relu": lambda x: np.maximum(x, 0),
        "identity": lambda x: x}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("feature_map", ["elu_plus_one", "relu"])
def test_linear(feature_map, causal, dtype, normal):
    q, k, v = (normal(*shape, dtype=dtype) for shape in ((2, 4, 130, 9), (2, 2, 130, 9), (2, 2, 130, 5)))
    wide = [x.astype(np.float64) for x in (q, k, v)]
    expected, S, z = reference.linear(*wide, MAPS[feature_map], causal)
    for form in ("chunked", "recurrent", "quadratic"):
        out, state = regard.linear_attention(q, k, v, feature_map=feature_map, causal=causal, form=form, return_state=True)
        np.testing.assert_allclose(out, expected, atol=TOLERANCE[dtype])
        np.testing.assert_allclose(state.S, S, rtol=1e-5, atol=20 * TOLERANCE[dtype])
        np.testing.assert_allclose(state.z, z, rtol=1e-5, atol=20 * TOLERANCE[dtype])


def test_linear_goes_on_from_a_state(normal):
    q, k, v = normal(1, 2, 90, 6), normal(1, 2, 90, 6), normal(1, 2, 90, 4)
    whole = regard.linear_attention(q, k, v)
    first, state = regard.linear_attention(q[:, :, :33], k[:, :, :33], v[:, :, :33], return_state=True)
    second = regard.linear_attention(q[:, :, 33:], k[:, :, 33:], v[:, :, 33:], state=state)
    np.testing.assert_allclose(np.concatenate([first, second], 2), whole, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
def test_linear_backward(causal, normal):
    q, k, v, d_out = normal(1, 2, 5, 3), normal(1, 1, 5, 3), normal(1, 1, 5, 2), normal(1, 2, 5, 2)
    state = regard.LinearState(np.abs(normal(1, 1, 3, 2)), np.abs(normal(1, 1, 3)))
    d_state = regard.LinearState(normal(1, 1, 3, 2), normal(1, 1, 3))

    def loss():
        out, S, z = reference.linear(q, k, v, MAPS["elu_plus_one"], causal, S=state.S, z=state.z)
        return (out * d_out).sum() + (S * d_state.S).sum() + (z * d_state.z).sum()

    got = regard.linear_attention_backward(q, k, v, d_out, causal=causal, state=state, d_state=d_state)
    for x, gradient in ((q, got.d_q), (k, got.d_k), (v, got.d_v), (state.S, got.d_state.S), (state.z, got.d_state.z)):
        gradient_matches(loss, x, gradient)


@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}, {"window": (700, 0)}, {"alibi_slopes": [0.5, 0.25, 0.1, 0.0]},
                                     {"sink": [0.0, 1.0, -1.0, 3.0]}])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_decode(options, dtype, normal):
    q, k, v = (normal(*shape, dtype=dtype) for shape in ((3, 4, 2, 16), (3, 2, 1500, 16), (3, 2, 1500, 8)))
    lengths = [1500, 3, 1024]
    out, log_sum_exp = regard.decode(q, k, v, key_lengths=lengths, causal=True, return_log_sum_exp=True, **options)
    expected, _, lse, _ = reference.attention(q, k, v, query_lengths=[2] * 3, key_lengths=lengths, causal=True, **options)
    np.testing.assert_allclose(out, expected, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(log_sum_exp, lse, rtol=1e-5)
    np.testing.assert_array_equal(out, regard.decode(q, k, v, key_lengths=lengths, causal=True, threads=2, **options))
    # The same positions in shuffled pages of 100: the same bits.
    pages = np.random.default_rng(1).permutation(45).reshape(3, 15).astype(np.int32)
    paged = [np.full((45, 2, 100, x.shape[3]), np.nan, dtype) for x in (k, v)]
    for x, pool in zip((k, v), paged):
        for b in range(3):
            for page in range(15):
                pool[pages[b, page]] = x[b, :, page * 100:(page + 1) * 100]
    np.testing.assert_array_equal(
        out, regard.decode(q, *paged, block_table=pages, key_lengths=lengths, causal=True, **options))


def test_a_cache_that_grows_equals_causal_attention(normal):
    q, k, v = (normal(2, heads, 40, 8, dtype=np.float32) for heads in (4, 2, 2))
    whole = regard.attention(q, k, v, causal=True)
    cache = regard.KVCache(batch=2, heads=2, capacity=40, width=8)
    at = 0
    for step in (13, 1, 1, 7, 18):
        rows = slice(at, at + step)
        cache.append(k[:, :, rows], v[:, :, rows])
        np.testing.assert_allclose(cache.decode(q[:, :, rows], causal=True), whole[:, :, rows], atol=2e-6)
        at += step
    with pytest.raises(ValueError, match=r"\[cache\] 40 positions and 1 more, capacity 40"):
        cache.append(k[:, :, :1], v[:, :, :1])
    with pytest.raises(ValueError, match=r"\[cache\] v \[2, 2, 1, 7\], expected \[2, 2, 1, 8\]"):
        cache.append(k[:, :, :1], v[:, :, :1, :7])


def test_decode_bfloat16(normal):
    bfloat16 = pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing").bfloat16
    q, k, v = normal(2, 4, 1, 16, dtype=np.float32), normal(2, 2, 300, 16).astype(bfloat16), normal(2, 2, 300, 16).astype(bfloat16)
    expected, _, _, _ = reference.attention(q, k.astype(np.float64), v.astype(np.float64))
    np.testing.assert_allclose(regard.decode(q, k, v), expected, atol=2e-6)
    rounded = regard.decode(q.astype(bfloat16), k, v)
    assert rounded.dtype == bfloat16
    np.testing.assert_allclose(rounded.astype(np.float64), expected, atol=5e-3)
