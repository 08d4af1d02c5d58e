"""PyTorch's float64 math path as a witness, on random cases of every option that both have; and tensors in and out."""

import contextlib

import numpy as np
import pytest
import regard

torch = pytest.importorskip("torch", reason="torch is missing (pip install torch)")
F = torch.nn.functional


@contextlib.contextmanager
def math_path():
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


def draw(random):
    """Operands, the options here, and those there."""
    Hkv = int(random.integers(1, 4))
    H = Hkv * int(random.integers(1, 4))
    B, T, S, D, E = (int(n) for n in random.integers(1, (4, 40, 90, 40, 40)))
    q, k, v = (torch.from_numpy(random.standard_normal(shape)) for shape in ((B, H, T, D), (B, Hkv, S, D), (B, Hkv, S, E)))
    ours, theirs = {}, {"enable_gqa": H != Hkv}
    if random.random() < 0.5:
        ours["scale"] = theirs["scale"] = float(random.uniform(0, 1))
    kind = random.choice(["none", "causal", "bool", "float", "padding"])
    if kind == "causal":  # PyTorch counts from the top left
        ours.update(causal=True, alignment="top_left")
        theirs["is_causal"] = True
    if kind == "bool":
        mask = random.random((B, random.choice([1, H]), T, S)) < 0.7
        mask[..., 0] = True
        ours["mask"], theirs["attn_mask"] = mask, torch.from_numpy(mask)
    if kind == "float":
        ours["bias"] = random.standard_normal((B, 1, T, S))
        theirs["attn_mask"] = torch.from_numpy(ours["bias"]).requires_grad_()
    if kind == "padding":
        ours["key_lengths"] = random.integers(1, S + 1, B)
        ours["query_lengths"] = [T] * B
        theirs["attn_mask"] = torch.from_numpy(np.arange(S) < ours["key_lengths"][:, None])[:, None, None]
    return q, k, v, ours, theirs


@pytest.mark.parametrize("seed", range(60))
def test_forward_and_backward(seed):
    q, k, v, ours, theirs = draw(np.random.default_rng(seed))
    for x in (q, k, v):
        x.requires_grad_()
    with math_path():
        expected = F.scaled_dot_product_attention(q, k, v, **theirs)
    d_out = torch.from_numpy(np.random.default_rng(1).standard_normal(expected.shape))
    bias = theirs.get("attn_mask") if "bias" in ours else None
    wanted = torch.autograd.grad(expected, (q, k, v) if bias is None else (q, k, v, bias), d_out)
    got = regard.attention(q, k, v, return_log_sum_exp=True, **ours)
    gradients = regard.attention_backward(q, k, v, got.out, got.log_sum_exp, d_out, return_d_bias=bias is not None, **ours)
    assert isinstance(got.out, torch.Tensor)
    torch.testing.assert_close(got.out, expected.detach(), rtol=1e-10, atol=1e-11)
    for mine, theirs_ in zip(gradients, wanted):
        torch.testing.assert_close(mine, theirs_, rtol=1e-9, atol=1e-10)
    f32 = regard.attention(q.float(), k.float(), v.float(),
                           **{name: x.astype(np.float32) if name == "bias" else x for name, x in ours.items()})
    assert (f32.double() - expected).abs().max() < 2e-5


def test_bfloat16(normal):
    q, k, v = (torch.from_numpy(normal(2, 4, 33, 24)).bfloat16() for _ in range(3))
    with math_path():
        exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double())
    got = regard.attention(q, k, v, return_log_sum_exp=True)
    assert got.out.dtype == torch.bfloat16 and got.log_sum_exp.dtype == torch.float32
    assert (got.out.double() - exact).abs().max() <= exact.abs().max() * 2**-8
    gradients = regard.attention_backward(q, k, v, got.out, got.log_sum_exp, torch.ones_like(got.out))
    assert gradients.d_v.dtype == torch.bfloat16
    # The gradient of V sums a column of weights.
    weights = regard.attention(q, k, v, return_weights=True).weights
    torch.testing.assert_close(gradients.d_v[..., 0].float(), weights.sum(2), rtol=2**-7, atol=2**-7)


def test_softcap_by_the_definition(normal):
    q, k, v = (torch.from_numpy(normal(1, 2, 9, 5)) for _ in range(3))
    scores = 2 * torch.tanh((q @ k.mT) / 5**0.5 / 2)
    torch.testing.assert_close(regard.attention(q, k, v, softcap=2), torch.softmax(scores, -1) @ v, rtol=1e-11, atol=1e-12)


def test_memory_is_shared():
    x = torch.arange(24.0).reshape(2, 3, 4)
    from regard._arrays import as_numpy
    assert as_numpy("x", x).ctypes.data == x.data_ptr()
    assert as_numpy("x", x.bfloat16()).dtype == np.uint16
    y = x.bfloat16()
    assert as_numpy("y", y).ctypes.data == y.data_ptr()
    with pytest.raises(TypeError, match="meta"):
        regard.attention(*(torch.empty(1, 1, 2, 2, device="meta"),) * 3)
