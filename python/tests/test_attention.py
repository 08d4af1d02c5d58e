"""regard.attention and its gradient against float64 references."""

import numpy as np
import pytest
import reference
import regard

B, H, HKV, T, S, D, E = 3, 4, 2, 21, 37, 17, 13
CASES = {
    "plain": {},
    "scale": {"scale": 0.3},
    "scale of 0": {"scale": 0.0},
    "causal": {"causal": True},
    "causal from the top left": {"causal": True, "alignment": "top_left"},
    "causal with offsets": {"causal": True, "alignment": [0, -2, 40]},
    "window": {"window": (5, 2)},
    "window open to the right": {"window": (3, -1)},
    "causal window": {"causal": True, "window": (8, 0)},
    "softcap": {"softcap": 1.5},
    "key lengths": {"key_lengths": [37, 0, 11], "causal": True},
    "both lengths": {"query_lengths": [21, 3, 0], "key_lengths": [5, 37, 11], "window": (4, 4)},
    "mask": {"mask": lambda r: r.random((B, H, T, S)) < 0.6},
    "mask of keys": {"mask": lambda r: r.random((B, 1, 1, S)) < 0.6},
    "mask of pairs": {"mask": lambda r: r.random((T, S)) < 0.2},
    "bias": {"bias": lambda r: r.standard_normal((B, H, T, S))},
    "relative bias": {"bias": lambda r: r.standard_normal((1, H, T, S)), "causal": True},
    "bias with -inf": {"bias": lambda r: np.where(r.random((H, 1, S)) < 0.5, 1.0, -np.inf)},
    "ALiBi": {"alibi_slopes": lambda r: r.random(H), "causal": True},
    "sink": {"sink": lambda r: r.standard_normal(H), "key_lengths": [37, 0, 11]},
    "all": {"scale": 0.4, "softcap": 2.0, "causal": True, "window": (20, 0), "key_lengths": [37, 30, 22],
            "mask": lambda r: r.random((B, 1, T, S)) < 0.9, "bias": lambda r: r.standard_normal((H, T, S)),
            "alibi_slopes": lambda r: r.random(H), "sink": lambda r: r.standard_normal(H)},
}


def options_of(name, random, dtype=np.float64):
    made = {key: value(random) if callable(value) else value for key, value in CASES[name].items()}
    return {key: value.astype(dtype) if key in ("bias", "alibi_slopes", "sink") else value for key, value in made.items()}


def operands(normal, dtype):
    return normal(B, H, T, D, dtype=dtype), normal(B, HKV, S, D, dtype=dtype), normal(B, HKV, S, E, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_forward(name, dtype, random, normal):
    q, k, v = operands(normal, dtype)
    options = options_of(name, random, dtype)
    got = regard.attention(q, k, v, return_weights=True, return_log_sum_exp=True, return_scores=True,
                           return_column_sums=True, **options)
    out, weights, log_sum_exp, scores = reference.attention(q, k, v, **options)
    tolerance = dict(rtol=1e-11, atol=1e-12) if dtype == np.float64 else dict(rtol=2e-5, atol=2e-6)
    assert got.out.dtype == got.weights.dtype == got.log_sum_exp.dtype == got.scores.dtype == dtype
    np.testing.assert_allclose(got.weights, weights, **tolerance)
    np.testing.assert_allclose(got.column_sums, weights.sum(2), **{**tolerance, "atol": 2e-5 if dtype == np.float32 else 1e-12})
    np.testing.assert_allclose(got.log_sum_exp, log_sum_exp, **tolerance)
    np.testing.assert_allclose(got.scores, scores, **{**tolerance, "atol": 1e-5 if dtype == np.float32 else 1e-12})
    largest = np.abs(scores[np.isfinite(scores)]).max(initial=1)
    bound = 1e-12 if dtype == np.float64 else 2e-6 * largest * np.abs(v).max()
    assert np.abs(got.out - out).max() <= bound
    again = regard.attention(q, k, v, **options)
    assert np.abs(again - out).max() <= bound


@pytest.mark.parametrize("name", CASES)
def test_backward_is_the_derivative(name, random):
    r = np.random.default_rng(5)
    options = options_of(name, random)
    q, k, v = r.standard_normal((B, H, T, 3)), r.standard_normal((B, HKV, S, 3)), r.standard_normal((B, HKV, S, 2))
    d_out, d_lse = r.standard_normal((B, H, T, 2)), r.standard_normal((B, H, T))

    def loss(q=q, k=k, v=v):
        out, _, lse, _ = reference.attention(q, k, v, **options)
        return (out * d_out).sum() + (np.where(np.isneginf(lse), 0, lse) * d_lse).sum()

    forward = regard.attention(q, k, v, return_log_sum_exp=True, **options)
    got = regard.attention_backward(q, k, v, forward.out, forward.log_sum_exp, d_out, d_log_sum_exp=d_lse,
                                    return_d_bias="bias" in options, **options)
    operands = {"q": (q, got.d_q), "k": (k, got.d_k), "v": (v, got.d_v)}
    if "bias" in options:
        operands["bias"] = (options["bias"], got.d_bias)
    if "sink" in options:
        operands["sink"] = (options["sink"], got.d_sink)
    for name, (x, gradient) in operands.items():
        assert gradient.shape == x.shape
        direction = np.where(np.isfinite(x), r.standard_normal(x.shape), 0)  # a directional derivative of each operand
        kept = x.copy()
        values = []
        for sign in (1, -1):
            x[...] = np.where(np.isfinite(kept), kept + sign * 1e-6 * direction, kept)
            values.append(loss())
        x[...] = kept
        expected = (values[0] - values[1]) / 2e-6
        assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-6, abs=1e-6), name


@pytest.mark.parametrize("name", CASES)
def test_backward_f32(name, random, normal):
    q, k, v = operands(normal, np.float32)
    options = options_of(name, random, np.float32)
    d_out = normal(B, H, T, E, dtype=np.float32)
    results = []
    for dtype in (np.float32, np.float64):
        a, b, c = (x.astype(dtype) for x in (q, k, v))
        o = {key: x.astype(dtype) if key in ("bias", "alibi_slopes", "sink") else x for key, x in options.items()}
        forward = regard.attention(a, b, c, return_log_sum_exp=True, **o)
        results.append(regard.attention_backward(a, b, c, forward.out, forward.log_sum_exp, d_out.astype(dtype),
                                                 return_d_bias="bias" in o, **o))
    for f32, f64 in zip(*results):
        if f64 is not None:
            assert np.abs(f32 - f64).max() <= 1e-5 * max(1, np.abs(f64).max())


def test_scores_at_each_stage(normal):
    q, k, v = operands(normal, np.float64)
    raw = (q @ k.repeat(H // HKV, 1).swapaxes(2, 3)) * 0.2
    options = dict(scale=0.2, softcap=0.7, causal=True, mask=np.arange(S) % 3 > 0)
    scores = {stage: regard.attention(q, k, v, return_scores=stage, **options).scores
              for stage in ("scaled", "capped", "masked", True)}
    np.testing.assert_allclose(scores["scaled"], raw, atol=1e-12)
    np.testing.assert_allclose(scores["capped"], 0.7 * np.tanh(raw / 0.7), atol=1e-12)
    np.testing.assert_array_equal(scores["masked"], scores[True])
    kept = (np.arange(S) % 3 > 0) & (np.arange(S) <= np.arange(T)[:, None] + S - T)
    np.testing.assert_array_equal(np.isneginf(scores["masked"]), np.broadcast_to(~kept, raw.shape))
    np.testing.assert_allclose(scores["masked"][..., kept], scores["capped"][..., kept], atol=1e-12)


def test_ragged_batch_is_its_items(normal):
    query_starts, key_starts = [0, 4, 4, 21], [0, 9, 20, 37]
    q, k, v = (x[:1] for x in operands(normal, np.float32))
    got = regard.attention(q, k, v, query_starts=query_starts, key_starts=key_starts, causal=True, return_weights=True)
    for b in range(3):
        rows, columns = slice(*query_starts[b:b + 2]), slice(*key_starts[b:b + 2])
        alone = regard.attention(q[:, :, rows], k[:, :, columns], v[:, :, columns], causal=True, return_weights=True)
        np.testing.assert_array_equal(got.out[:, :, rows], alone.out)
        t, s = alone.weights.shape[2:]
        np.testing.assert_array_equal(got.weights[b, :, :t, :s], alone.weights[0])
        assert not got.weights[b, :, t:].any() and not got.weights[b, :, :, s:].any()


def test_block_sparse_is_a_mask(random, normal):
    q, k, v = operands(normal, np.float32)
    blocks = random.random((3, 4)) < 0.5  # of 8 queries and 10 keys: neither divides its length
    mask = blocks.repeat(8, 0)[:T].repeat(10, 1)[:, :S]
    sparse = regard.attention(q, k, v, blocks=regard.BlockSparse.from_mask(blocks, 8, 10))
    np.testing.assert_allclose(sparse, regard.attention(q, k, v, mask=mask), atol=2e-6)


def test_dropout_is_a_function_of_position(normal):
    q, k, v = operands(normal, np.float32)
    v[:] = 1
    dropout = regard.Dropout(0.25, seed=3, step=1, layer=2, streams=[7, 8, 9])
    out = regard.attention(q, k, v, dropout=dropout)
    assert 0.9 < out.mean() < 1.1 and out.std() > 0.01
    np.testing.assert_array_equal(out[1:2], regard.attention(q[1:2], k[1:2], v[1:2], dropout=dropout._replace(streams=[8])))
    np.testing.assert_array_equal(out, regard.attention(q, k, v, dropout=dropout))
    assert np.abs(out - regard.attention(q, k, v, dropout=dropout._replace(step=2))).max() > 0.01
    mean = np.mean([regard.attention(q, k, v, dropout=regard.Dropout(0.25, seed=s)) for s in range(50)])
    assert mean == pytest.approx(1, abs=0.01)


def test_merge_of_parts_is_the_whole(normal):
    q, k, v = operands(normal, np.float32)
    sink = normal(H, dtype=np.float32)
    whole = regard.attention(q, k, v, sink=sink, return_log_sum_exp=True)
    parts = []
    for columns in (slice(0, 10), slice(10, 10), slice(10, 37)):
        part = regard.attention(q, k[:, :, columns], v[:, :, columns], return_log_sum_exp=True)
        parts.append((part.out, part.log_sum_exp))
    out, log_sum_exp = regard.merge(parts, sink=sink)
    np.testing.assert_allclose(out, whole.out, atol=2e-6)
    np.testing.assert_allclose(log_sum_exp, whole.log_sum_exp, rtol=1e-6)
    empty, minus_infinity = regard.merge([parts[1], parts[1]])
    assert not empty.any() and np.isneginf(minus_infinity).all()


def test_nothing_leaks_from_what_is_disallowed(normal):
    q, k, v = operands(normal, np.float32)
    k[:, :, 11:], v[:, :, 11:] = np.nan, np.inf
    expected, _, _, _ = reference.attention(q, k[:, :, :11], v[:, :, :11])
    np.testing.assert_allclose(regard.attention(q, k, v, key_lengths=[11] * B), expected, atol=5e-6)
    np.testing.assert_allclose(regard.attention(q, k, v, mask=np.arange(S) < 11), expected, atol=5e-6)
    assert np.isnan(regard.attention(q, k, v)).all()
