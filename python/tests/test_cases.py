"""Twenty-two inputs that broke other attention kernels, and the right answer, by number.

Tests of the C++ library name these numbers too ("Case 5."). Shapes are (batch, head, position, width).
"""

import numpy as np
import pytest
import reference
import regard

NAN, INFINITY = np.nan, np.inf
pytestmark = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def close(dtype):
    return dict(rtol=0, atol=3e-6 if dtype == np.float32 else 1e-12)


def gradients(q, k, v, d_out, **options):
    forward = regard.attention(q, k, v, return_log_sum_exp=True, **options)
    return forward, regard.attention_backward(q, k, v, forward.out, forward.log_sum_exp, d_out, **options)


def test_01_fully_masked_row(dtype, normal):
    q, k, v = normal(1, 2, 6, 8, dtype=dtype), normal(1, 2, 10, 8, dtype=dtype), normal(1, 2, 10, 8, dtype=dtype)
    mask = np.tril(np.ones((6, 10), bool))
    mask[5] = False
    got = regard.attention(q, k, v, mask=mask, return_log_sum_exp=True, return_weights=True)
    assert not got.out[:, :, 5].any() and not got.weights[:, :, 5].any()
    assert np.isneginf(got.log_sum_exp[:, :, 5]).all()
    for i in range(5):
        dense, _, _, _ = reference.attention(q[:, :, i:i + 1], k[:, :, :i + 1], v[:, :, :i + 1])
        np.testing.assert_allclose(got.out[:, :, i:i + 1], dense, **close(dtype))


def test_02_its_gradients(dtype, normal):
    """Item 1 has keys 0 and 1 alone; the band {0}, {0,1}, {1,2}, {2,3} leaves its row 3 empty."""
    q, k, v, d_out = (normal(2, 1, 4, 5, dtype=dtype) for _ in range(4))
    k[1, :, 2:], v[1, :, 2:] = NAN, INFINITY
    band = np.eye(4, dtype=bool) | np.eye(4, k=-1, dtype=bool)
    options = dict(query_lengths=[4, 4], key_lengths=[4, 2], mask=band)
    _, got = gradients(q, k, v, d_out, **options)
    assert all(np.isfinite(x).all() for x in (got.d_q, got.d_k, got.d_v))
    assert not got.d_q[1, :, 3].any()
    _, without = gradients(q[1:, :, :3], k[1:], v[1:], d_out[1:, :, :3], query_lengths=[3], key_lengths=[2],
                           alignment="top_left", mask=band[:3])
    np.testing.assert_array_equal(got.d_k[1:], without.d_k)
    np.testing.assert_array_equal(got.d_v[1:], without.d_v)


@pytest.mark.parametrize("window", [1, 10, 63, 95, 127])
def test_03_blocks_of_minus_infinity_before_the_first_score(window, dtype):
    S = 600
    i, j = np.arange(S)[:, None], np.arange(S)
    bias = np.where((j <= i) & (j > i - window), 0, -INFINITY).astype(dtype)
    q = np.ones((1, 1, S, 2), dtype)
    v = np.broadcast_to(np.array([3, -2], dtype), q.shape)
    np.testing.assert_allclose(regard.attention(q, q, v, bias=bias), v, **close(dtype))


def test_04_nan_is_not_an_empty_row(dtype, normal):
    q = np.full((2, 4, 16, 8), NAN, dtype)
    assert np.isnan(regard.attention(q, normal(2, 4, 16, 8, dtype=dtype), normal(2, 4, 16, 8, dtype=dtype))).all()


def test_05_a_large_finite_mask_does_not_disable(dtype, normal):
    q, k, v = normal(1, 1, 3, 4, dtype=dtype), normal(1, 1, 3, 4, dtype=dtype), normal(1, 1, 3, 4, dtype=dtype)
    bias = np.zeros((3, 3), dtype)
    bias[0] = -3.4028e38
    np.testing.assert_allclose(regard.attention(q, k, v, bias=bias)[0, 0, 0], v[0, 0].mean(0), **close(dtype))


def test_06_very_negative_scores(dtype, normal):
    q, k, v = (np.array(x, dtype).reshape(1, 1, -1, 1) for x in ([1], [-60000, -60001], [1, 3]))
    assert regard.attention(q, k, v, scale=1.0).item() == pytest.approx(1.5378828, abs=1e-6)
    q, k, v = normal(1, 1, 20, 3, dtype=dtype), normal(1, 1, 110, 3, dtype=dtype), normal(1, 1, 110, 3, dtype=dtype)
    plain = regard.attention(q, k, v, return_log_sum_exp=True)
    moved = regard.attention(q, k, v, bias=np.full((20, 110), 1000, dtype), return_log_sum_exp=True)
    tolerance = 4 * 1000 * 2**-24 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(moved.out, plain.out, rtol=0, atol=tolerance)
    np.testing.assert_allclose(moved.log_sum_exp - 1000, plain.log_sum_exp, rtol=0, atol=tolerance)


def test_07_causal_with_a_negative_offset(dtype, normal):
    q, k, v = (normal(1, 1, 4, 3, dtype=dtype) for _ in range(3))
    out = regard.attention(q, k, v, causal=True, query_lengths=[4], key_lengths=[2])
    assert not out[0, 0, :2].any()
    np.testing.assert_array_equal(out[0, 0, 2], v[0, 0, 0])


def test_08_a_boolean_mask_selects(dtype, normal):
    q, k, v = (normal(1, 1, 2, 3, dtype=dtype) for _ in range(3))
    out = regard.attention(q, k, v, causal=True, mask=np.array([[True, False], [True, True]]))
    assert np.isfinite(out).all()
    np.testing.assert_array_equal(out[0, 0, 0], v[0, 0, 0])


def test_09_softcap_before_the_mask(dtype, normal):
    q, k, v = normal(1, 1, 4, 3, dtype=dtype), normal(1, 1, 6, 3, dtype=dtype), normal(1, 1, 6, 2, dtype=dtype)
    v[:, :, 4:] = 1e30
    bias = np.array([0, 0, 0, 0, -INFINITY, -INFINITY], dtype)
    got = regard.attention(q, k, v, softcap=0.5, bias=np.broadcast_to(bias, (4, 6)), return_weights=True)
    assert np.abs(got.out).max() < 10 and not got.weights[..., 4:].any()
    one, keys = np.ones((1, 1, 1, 1), dtype), np.array([1, 100, 1000, 5000, -10000], dtype).reshape(1, 1, 5, 1)
    capped = regard.attention(one, keys, keys, scale=1.0, softcap=50.0, return_scores=True).scores.ravel()
    np.testing.assert_allclose(capped, [0.99986669, 48.201379, 50, 50, -50], rtol=5e-6)


def pattern(T, S, dtype, **options):
    """Which keys each query attends to."""
    zeros = np.zeros((1, 1, T, 1), dtype), np.zeros((1, 1, S, 1), dtype), np.ones((1, 1, S, 1), dtype)
    weights = regard.attention(*zeros, return_weights=True, **options).weights[0, 0]
    return ["".join("01"[int(w > 0)] for w in row) for row in weights]


def test_10_causal_with_unequal_lengths(dtype):
    assert pattern(2, 5, dtype, causal=True) == ["11110", "11111"]
    assert pattern(5, 2, dtype, causal=True) == ["00", "00", "00", "10", "11"]
    assert pattern(1, 8, dtype, causal=True, alignment="top_left") == ["10000000"]


def test_11_windows_are_inclusive(dtype, normal):
    q, v = np.zeros((1, 1, 5, 1), dtype), np.arange(5, dtype=dtype).reshape(1, 1, 5, 1)
    assert regard.attention(q, q, v, window=(2, 0))[0, 0, 4, 0] == pytest.approx(3)
    np.testing.assert_allclose(regard.attention(q, q, v, window=(1, 2)).ravel(), [1, 1.5, 2.5, 3, 3.5], **close(dtype))
    for S in (1, 2, 17, 97, 200):
        q, k, v = (normal(1, 1, S, 3, dtype=dtype) for _ in range(3))
        causal = regard.attention(q, k, v, causal=True)
        np.testing.assert_array_equal(regard.attention(q, k, v, window=(S - 1, 0)), causal)
        np.testing.assert_array_equal(regard.attention(q, k, v, window=(-1, 0)), causal)


@pytest.mark.parametrize("heads", [(4, 2), (6, 2), (28, 4), (9, 3), (65, 5)])
def test_12_grouped_heads(heads, dtype, normal):
    H, HKV = heads
    q, k, d_out = normal(1, H, 2, 1, dtype=dtype), normal(1, HKV, 3, 1, dtype=dtype), normal(1, H, 2, 1, dtype=dtype)
    v = np.broadcast_to(np.arange(HKV, dtype=dtype)[None, :, None, None], (1, HKV, 3, 1))
    forward, got = gradients(q, k, v, d_out)
    expected = np.arange(H) // (H // HKV)
    np.testing.assert_allclose(forward.out, np.broadcast_to(expected[None, :, None, None], forward.out.shape), rtol=1e-5, atol=1e-6)
    v = normal(1, HKV, 3, 1, dtype=dtype)
    forward, got = gradients(q, k, v, d_out)
    _, apart = gradients(q, k.repeat(H // HKV, 1), v.repeat(H // HKV, 1), d_out)  # of each head alone
    for mine, theirs in ((got.d_k, apart.d_k), (got.d_v, apart.d_v)):
        np.testing.assert_allclose(mine, theirs.reshape(1, HKV, H // HKV, 3, 1).sum(2), rtol=1e-5, atol=2e-5)


def test_13_any_strides(dtype, normal):
    transposed = normal(1, 1, 4, 8, dtype=dtype).swapaxes(2, 3)
    q, k, v = transposed, normal(1, 1, 8, 4, dtype=dtype), normal(1, 8, 6, dtype=dtype).reshape(1, 8, 1, 6).swapaxes(1, 2)
    assert q.strides[3] != q.itemsize
    np.testing.assert_array_equal(regard.attention(q, k, v), regard.attention(q.copy(), k, v.copy()))
    q, k, v, d_out = (normal(2, 2, 49, 32, dtype=dtype) for _ in range(4))
    _, expected = gradients(q, k, v, d_out)
    _, got = gradients(q, k, v, np.ascontiguousarray(d_out.swapaxes(1, 2)).swapaxes(1, 2))
    for mine, theirs in zip(got[:3], expected[:3]):
        np.testing.assert_array_equal(mine, theirs)


def test_14_zero_lengths(dtype, normal):
    empty = np.zeros((0, 0, 2, 0), dtype)
    assert regard.attention(empty, empty, empty).shape == (0, 0, 2, 0)
    q, k, v = normal(1, 9, 2, 64, dtype=dtype), normal(1, 3, 8, 64, dtype=dtype), normal(1, 3, 8, 64, dtype=dtype)
    out = regard.attention(q, k, v, query_starts=[0, 1, 1, 2], key_starts=[0, 3, 3, 8])
    first = regard.attention(q[:, :, :1], k[:, :, :3], v[:, :, :3])
    np.testing.assert_array_equal(out[:, :, :1], first)
    nothing = regard.attention(q, k[:, :, :0], v[:, :, :0], return_log_sum_exp=True)
    assert not nothing.out.any() and np.isneginf(nothing.log_sum_exp).all()


def test_15_dropout(dtype):
    zero, v = np.zeros((1, 1, 2, 1), dtype), np.array([3, 10], dtype).reshape(1, 1, 2, 1)
    d_out = np.ones((1, 1, 1, 1), dtype)
    seen, total = set(), 0
    for seed in range(400):
        forward, got = gradients(zero[:, :, :1], zero, v, d_out, dropout=regard.Dropout(0.5, seed=seed))
        kept = got.d_v.ravel() != 0  # each weight is 1/2, and counts twice where it is kept
        assert forward.out.item() == pytest.approx(v.ravel() @ kept)
        seen.add(tuple(kept))
        total += forward.out.item() / 400
        tenth = regard.attention(zero[:, :, :1], zero, np.array([1, 0], dtype).reshape(v.shape), dropout=regard.Dropout(0.1, seed=seed))
        assert min(abs(tenth.item()), abs(tenth.item() - 0.5 * 1.1111111)) < 1e-6
    assert len(seen) == 4
    assert total == pytest.approx(6.5, abs=0.8)


def test_16_log_sum_exp_is_natural(dtype):
    one = np.ones((1, 1, 1, 1), dtype)
    for keys, expected in (([2.5], 2.5), ([2.5, 2.5], 2.5 + 0.693147)):
        k = np.array(keys, dtype).reshape(1, 1, -1, 1)
        assert regard.attention(one, k, k, scale=1.0, return_log_sum_exp=True).log_sum_exp.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("D", [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40, 63, 65, 72, 80, 96, 112, 129, 160, 192, 257])
def test_17_every_width(D, dtype, normal):
    q, k, v = normal(1, 2, 6, D, dtype=dtype), normal(1, 2, 35, D, dtype=dtype), normal(1, 2, 35, D, dtype=dtype)
    out, _, _, scores = reference.attention(q, k, v)
    bound = 2e-6 * max(1, np.abs(scores).max()) * np.abs(v).max() if dtype == np.float32 else 1e-12
    assert np.abs(regard.attention(q, k, v) - out).max() <= bound


def test_18_a_block_and_one(dtype, normal):
    S = 1025 if dtype == np.float32 else 129
    q, k, v, d_out = (normal(1, 1, S, 4, dtype=dtype) for _ in range(4))
    distance = (np.arange(S)[:, None] - np.arange(S)).astype(dtype)
    forward, got = gradients(q, k, v, d_out, causal=True, bias=distance)
    assert all(np.isfinite(x).all() for x in (forward.out, got.d_q, got.d_k, got.d_v))


@pytest.mark.parametrize("steps", [[40], [1] * 40, [13, 1, 1, 7, 18]])
def test_19_a_cache_in_any_chunking(steps, dtype, normal):
    q, k, v = normal(2, 4, 40, 8, dtype=dtype), normal(2, 2, 40, 8, dtype=dtype), normal(2, 2, 40, 8, dtype=dtype)
    whole = regard.attention(q, k, v, causal=True)
    at = 0
    for step in steps:
        rows = slice(at, at + step)
        at += step
        got = regard.decode(q[:, :, rows], k[:, :, :at], v[:, :, :at], causal=True)
        np.testing.assert_allclose(got, whole[:, :, rows], **close(dtype))
        # The tiled kernel, asked for these rows alone, gives the bits of the whole.
        np.testing.assert_array_equal(regard.attention(q[:, :, rows], k[:, :, :at], v[:, :, :at], causal=True), whole[:, :, rows])


@pytest.mark.parametrize("T", [1, 63, 64, 130])
def test_20_linear_forms_agree(T, dtype, normal):
    q, k, v = normal(1, 2, T, 6, dtype=dtype), normal(1, 2, T, 6, dtype=dtype), normal(1, 2, T, 5, dtype=dtype)
    state = regard.LinearState(normal(1, 2, 6, 5, dtype=dtype), np.abs(normal(1, 2, 6, dtype=dtype)) + 1)
    forms = [regard.linear_attention(q, k, v, state=state, form=form, return_state=True)
             for form in ("recurrent", "chunked", "quadratic")]
    for out, after in forms[1:]:
        np.testing.assert_allclose(out, forms[0][0], rtol=0, atol=2e-5 if dtype == np.float32 else 1e-11)
        np.testing.assert_allclose(after.S, forms[0][1].S, rtol=1e-5, atol=1e-4 if dtype == np.float32 else 1e-11)
        np.testing.assert_allclose(after.z, forms[0][1].z, rtol=1e-5)
    if dtype == np.float64:  # the gradient of all forms, which is one
        d_out = normal(1, 2, T, 5)
        got = regard.linear_attention_backward(q, k, v, d_out, state=state)
        direction, step = normal(1, 2, T, 6), 1e-6
        values = [(regard.linear_attention(q, k + sign * step * direction, v, state=state, form="recurrent") * d_out).sum()
                  for sign in (1, -1)]
        assert (got.d_k * direction).sum() == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-6, abs=1e-7)


def test_21_empty_states_merge_to_an_empty_one(dtype):
    out, log_sum_exp = np.zeros((1, 1, 2, 3), dtype), np.full((1, 1, 2), -INFINITY, dtype)
    merged, l = regard.merge([(out, log_sum_exp), (out, log_sum_exp)])
    assert not merged.any() and np.isneginf(l).all()


def test_22_an_essays_example(dtype):
    random = np.random.RandomState(42)
    h, s = random.randn(10, 256) * 0.1, random.randn(256) * 0.1
    W_s, W_h, v = random.randn(128, 256) * 0.05, random.randn(128, 256) * 0.05, random.randn(128) * 0.05
    operands = [x.astype(dtype) for x in ((W_s @ s)[None], (h @ W_h.T)[None], h[None], v)]
    context, weights = regard.additive_attention(*operands, return_weights=True)
    tolerance = 5e-9 if dtype == np.float64 else 2e-7
    assert weights.sum() == pytest.approx(1, abs=1e-6) and weights.argmax() == 8
    np.testing.assert_allclose(weights[0, :3], [0.09403933, 0.10337516, 0.10163641], rtol=0, atol=tolerance)
    np.testing.assert_allclose(context[0, :3], [0.04926574, 0.03790324, 0.02441743], rtol=0, atol=tolerance)
