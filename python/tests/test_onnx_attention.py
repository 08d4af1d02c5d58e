"""ONNX's own cases of Attention, LinearAttention (without decay and beta) and FlexAttention (without modifiers).

Cases in float16 and bfloat16 are computed in float32 and rounded, and compared at the precision of their type.
"""

import warnings

import numpy as np
import pytest
import regard

onnx = pytest.importorskip("onnx", reason="onnx is missing (pip install onnx)")

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2}


def collect():
    node_cases = pytest.importorskip("onnx.backend.test.case.node", reason="this onnx has no test cases")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = node_cases.collect_testcases(None)
    found = {"Attention": [], "LinearAttention": [], "FlexAttention": []}
    for case in cases:
        node = case.model.graph.node[0]
        if node.op_type in found and "_expanded" not in case.name:
            found[node.op_type].append(case)
    found["LinearAttention"] = [c for c in found["LinearAttention"] if attributes(c).get("update_rule") == b"linear"]
    found["FlexAttention"] = [c for c in found["FlexAttention"]
                              if not {"score_mod", "prob_mod"} & attributes(c).keys()]
    return found


def attributes(case):
    return {a.name: onnx.helper.get_attribute_value(a) for a in case.model.graph.node[0].attribute}


CASES = collect()


def named(names, arrays):
    """The operands that the node names; computed in float32, or in float64 as given."""
    given = iter(arrays)
    values = {}
    for name in names:
        if name:
            x = np.asarray(next(given))
            values[name] = x.astype(np.float32) if x.dtype.name in TOLERANCE else x
    return values


def compare(case, results):
    """results: what was computed, by the position of the output."""
    expected = named_positions(case.model.graph.node[0].output, case.data_sets[0][1])
    assert expected, "a case without outputs proves nothing"
    for position, wanted in expected.items():
        name = wanted.dtype.name
        got = results[position]
        tolerance = {"rtol": 10 * TOLERANCE[name], "atol": TOLERANCE[name]} if name in TOLERANCE else {"rtol": 1e-4, "atol": 1e-5}
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got.astype(wanted.dtype).astype(np.float64), wanted.astype(np.float64), **tolerance,
                                   err_msg=f"output {position}")


def named_positions(names, arrays):
    given = iter(arrays)
    return {n: np.asarray(next(given)) for n, name in enumerate(names) if name}


def heads_apart(x, heads):
    """[B, T, H D] as [B, H, T, D], no copy."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def run_attention(inputs, given):
    """Attention-25 of ONNX by regard.attention. Outputs Y, present_key, present_value, qk_matmul_output."""
    q, k, v = inputs["Q"], inputs["K"], inputs["V"]
    flat = q.ndim == 3
    if flat:
        q = heads_apart(q, given["q_num_heads"])
        k, v = (heads_apart(x, given["kv_num_heads"]) for x in (k, v))
    past, lengths = 0, inputs.get("nonpad_kv_seqlen")
    if "past_key" in inputs:
        past = inputs["past_key"].shape[2]
        k, v = np.concatenate([inputs["past_key"], k], 2), np.concatenate([inputs["past_value"], v], 2)
    B, _, T, _ = q.shape
    S = k.shape[2]
    options = dict(scale=given.get("scale"), softcap=given.get("softcap", 0.0), causal=bool(given.get("is_causal", 0)),
                   window=(given.get("left_window_size", -1), given.get("right_window_size", -1)))
    # Without a cache ONNX counts from the top left, with one from what was there before these queries.
    options["alignment"] = [past] * B if lengths is None else (lengths - T).tolist()
    if lengths is not None:
        options.update(query_lengths=[T] * B, key_lengths=lengths)
    mask = inputs.get("attn_mask")
    if mask is not None:
        missing = [(0, 0)] * (mask.ndim - 1) + [(0, S - mask.shape[-1])]
        if mask.dtype == bool:
            options["mask"] = np.pad(mask, missing)
        else:
            options["bias"] = np.pad(mask, missing, constant_values=-np.inf)
    stage = ("scaled", "capped", "masked", None)[given.get("qk_matmul_output_mode", 0)]
    result = regard.attention(q, k, v, return_scores=stage or False, return_weights=True, **options)
    out = result.out.swapaxes(1, 2).reshape(B, T, -1) if flat else result.out
    return out, k, v, result.scores if stage else result.weights


def test_number_of_cases():
    if onnx.__version__.startswith("1.23"):
        assert {op: len(cases) for op, cases in CASES.items()} == {"Attention": 93, "LinearAttention": 2, "FlexAttention": 6}


@pytest.mark.parametrize("case", CASES["Attention"], ids=lambda case: case.name)
def test_attention(case):
    inputs, _ = case.data_sets[0]
    compare(case, run_attention(by_parameter(case, inputs), attributes(case)))


PARAMETERS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")


def by_parameter(case, arrays):
    """Operands by the operator's names, whatever the graph calls them."""
    names = list(case.model.graph.node[0].input)
    values = named(names, arrays)
    return {parameter: values[name] for parameter, name in zip(PARAMETERS, names) if name}


@pytest.mark.parametrize("case", CASES["FlexAttention"], ids=lambda case: case.name)
def test_flex_attention(case):
    x = by_parameter(case, case.data_sets[0][0])
    compare(case, [regard.attention(x["Q"], x["K"], x["V"], scale=attributes(case).get("scale"))])


@pytest.mark.parametrize("case", CASES["LinearAttention"], ids=lambda case: case.name)
def test_linear_attention(case):
    given = attributes(case)
    q, k, v = named(("q", "k", "v"), case.data_sets[0][0]).values()
    q, (k, v) = heads_apart(q, given["q_num_heads"]), (heads_apart(x, given["kv_num_heads"]) for x in (k, v))
    scale = given.get("scale") or 1 / np.sqrt(q.shape[3])
    for form in ("chunked", "recurrent", "quadratic"):
        out, state = regard.linear_attention(q, k, v, feature_map="identity", normalise=False, scale=scale, form=form,
                                             return_state=True)
        compare(case, [out.swapaxes(1, 2).reshape(*case.data_sets[0][1][0].shape), state.S])
