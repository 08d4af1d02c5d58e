"""Arrays in and out: strides without copies, types, errors, threads."""

import os
import threading
import tracemalloc

import numpy as np
import pytest
import regard

B, H, T, D = 2, 3, 19, 11


def layouts(x):
    """The same [B, H, T, D] in other places of memory."""
    B, H, T, D = x.shape
    yield "[B, T, H, D]", np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
    yield "last stride not 1", np.ascontiguousarray(x.swapaxes(2, 3)).swapaxes(2, 3)
    wide = np.full((B, H, T, 2 * D + 1), np.nan, x.dtype)
    wide[..., 1::2][..., :D] = x
    yield "every second number", wide[..., 1::2][..., :D]
    yield "backwards", np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1]
    fixed = x.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed
    packed = np.zeros(x.shape, np.dtype([("pad", np.uint8), ("x", x.dtype)]))
    packed["x"] = x
    yield "unaligned", packed["x"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout_gives_the_same_bits(dtype, normal):
    q, k, v, d_out = (normal(B, H, T, D, dtype=dtype) for _ in range(4))
    plain = regard.attention(q, k, v, causal=True, return_log_sum_exp=True)
    gradients = regard.attention_backward(q, k, v, plain.out, plain.log_sum_exp, d_out, causal=True)
    for (name, q_), (_, k_), (_, v_), (_, d_) in zip(*(layouts(x) for x in (q, k, v, d_out))):
        np.testing.assert_array_equal(regard.attention(q_, k_, v_, causal=True), plain.out, err_msg=name)
        for mine, expected in zip(regard.attention_backward(q_, k_, v_, plain.out, plain.log_sum_exp, d_, causal=True),
                                  gradients):
            if expected is not None:
                np.testing.assert_array_equal(mine, expected, err_msg=name)


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_strided_operands_are_not_copied(normal):
    q = normal(2, 4, 512, 64, dtype=np.float32)  # 1 MiB
    for name, x in layouts(q):
        if name not in ("unaligned", "backwards"):
            assert peak_of(lambda: regard.attention(x, x, x, threads=1)) < q.nbytes + 64 * 1024, name


def test_masks_are_broadcast_without_copies(normal):
    q = normal(4, 8, 256, 8, dtype=np.float32)
    mask, bias = np.tri(256, dtype=bool), np.zeros((1, 1, 1, 256), np.float32)
    call = lambda: regard.attention(q, q, q, mask=mask, bias=bias, threads=1)  # noqa: E731
    assert peak_of(call) < q.nbytes + 64 * 1024


def test_bits_do_not_depend_on_threads(normal):
    q, k, v, d = (normal(3, 4, 130, 24, dtype=np.float32) for _ in range(4))
    one = regard.attention(q, k, v, causal=True, return_log_sum_exp=True, return_weights=True, threads=1)
    two = regard.attention(q, k, v, causal=True, return_log_sum_exp=True, return_weights=True, threads=2)
    for a, b in zip(one, two):
        if a is not None:
            np.testing.assert_array_equal(a, b)
    arguments = (q, k, v, one.out, one.log_sum_exp, d)
    for a, b in zip(regard.attention_backward(*arguments, causal=True, threads=1),
                    regard.attention_backward(*arguments, causal=True, threads=2)):
        if a is not None:
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(regard.attention(q[1:2], k[1:2], v[1:2], causal=True), one.out[1:2])


def test_calls_from_several_threads(normal):
    q = normal(2, 4, 200, 32, dtype=np.float32)
    expected, results = regard.attention(q, q, q, causal=True), [None] * 8

    def work(n):
        results[n] = regard.attention(q, q, q, causal=True, threads=1 + n % 2)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_the_lock_is_released(normal):
    """While a kernel works, another thread goes on."""
    q = normal(1, 4, 1500, 64)
    running, turns = threading.Event(), []

    def count():
        running.set()
        while running.is_set():
            turns.append(None)

    other = threading.Thread(target=count)
    other.start()
    running.wait()
    before = len(turns)
    regard.attention(q, q, q, threads=1)
    after = len(turns)
    running.clear()
    other.join()
    assert after > before + 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(normal):
    q = normal(2, 4, 64, 8, dtype=np.float32)
    expected = regard.attention(q, q, q, threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(regard.attention(q, q, q, threads=2), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_zero_lengths():
    for shape in ((0, 2, 3, 4), (2, 0, 3, 4), (2, 2, 0, 4)):
        x = np.zeros(shape, np.float32)
        assert regard.attention(x, x, x).shape == shape
    q, k = np.ones((1, 1, 3, 4), np.float32), np.ones((1, 1, 0, 4), np.float32)
    result = regard.attention(q, k, k, return_log_sum_exp=True, return_weights=True)
    assert not result.out.any() and np.isneginf(result.log_sum_exp).all() and result.weights.shape == (1, 1, 3, 0)


def test_bfloat16_of_ml_dtypes(normal):
    bfloat16 = pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing").bfloat16
    q, k, v = (normal(B, H, T, D).astype(bfloat16) for _ in range(3))
    exact = regard.attention(*(x.astype(np.float64) for x in (q, k, v)))
    got = regard.attention(q, k, v)
    assert got.dtype == bfloat16
    assert np.abs(got.astype(np.float64) - exact).max() <= np.abs(exact).max() * 2**-8


X = np.zeros((1, 2, 3, 4), np.float32)
BAD = {
    r"\[attention\] k \[1, 2, 3, 5\], expected \[1, 2, 3, 4\]": lambda: regard.attention(X, np.zeros((1, 2, 3, 5), np.float32), X),
    r"\[attention\] v \[1, 2, 2, 4\], expected \[1, 2, 3, 4\]": lambda: regard.attention(X, X, X[:, :, :2]),
    r"\[attention\] q \[3, 4\], expected 4 dimensions": lambda: regard.attention(X[0, 0], X, X),
    r"2 heads, expected a multiple": lambda: regard.attention(X, np.zeros((1, 3, 3, 4), np.float32), np.zeros((1, 3, 3, 4), np.float32)),
    r"\[attention\] mask \[3, 4\], expected to broadcast to \[1, 2, 3, 3\]": lambda: regard.attention(X, X, X, mask=np.ones((3, 4), bool)),
    r"key_lengths\[0\] is 4, expected 0 to 3": lambda: regard.attention(X, X, X, key_lengths=[4]),
    r"key_lengths": lambda: regard.attention(X, X, X, key_lengths=[1, 1]),
    r"sink \[3\], expected \[2\]": lambda: regard.attention(X, X, X, sink=[0, 0, 0]),
    r"softcap": lambda: regard.attention(X, X, X, softcap=-1),
    r"probability": lambda: regard.attention(X, X, X, dropout=1.5),
    r"alignment is 'middle'": lambda: regard.attention(X, X, X, alignment="middle"),
    r"return_scores is 'raw'": lambda: regard.attention(X, X, X, return_scores="raw"),
    r"threads is -1": lambda: regard.attention(X, X, X, threads=-1),
    r"return_d_bias needs a bias": lambda: regard.attention_backward(X, X, X, X, X[..., 0], X, return_d_bias=True),
    r"d_out \[1, 2, 3, 3\]": lambda: regard.attention_backward(X, X, X, X, X[..., 0], X[..., :3]),
    r"block_table": lambda: regard.decode(X, X, X, block_table=[[5]], causal=True),
    r"\[additive\] values \[2, 3, 4\]": lambda: regard.additive_attention(X[0, :1, 0], X[0, :1], X[0], X[0, 0, 0]),
    r"feature_map is 'exp'": lambda: regard.linear_attention(X, X, X, feature_map="exp"),
}


@pytest.mark.parametrize("message", BAD)
def test_what_does_not_fit_is_a_value_error(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


@pytest.mark.parametrize("call", [
    lambda: regard.attention(X.astype(np.float16), X, X),
    lambda: regard.attention(X, X.astype(np.float64), X),
    lambda: regard.attention(X.astype(np.int64), X, X),
    lambda: regard.attention(X.view(np.uint32).astype(np.uint16), X, X),
    lambda: regard.attention(X.astype(">f4"), X, X),
    lambda: regard.attention(X, X, X, mask=np.ones((3, 3))),
    lambda: regard.attention(X, X, X, key_lengths=[1.5]),
    lambda: regard.attention("abc", X, X),
    lambda: regard.attention(None, X, X),
])
def test_wrong_types(call):
    with pytest.raises(TypeError):
        call()


def test_documentation_and_types():
    for name in regard.__all__:
        assert getattr(regard, name).__doc__, name
    folder = os.path.dirname(regard.__file__)
    assert {"py.typed", "_kernels.pyi"} <= set(os.listdir(folder))
    from importlib import metadata
    try:
        assert metadata.version("regard") == regard.__version__
    except metadata.PackageNotFoundError:
        assert regard.__version__
