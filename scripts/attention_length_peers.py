#!/usr/bin/env python3
"""PyTorch's or ONNX Runtime's attention against the length of its sequence, as bench/attention_length_bench.cc measures ours.

usage: attention_length_peers.py torch|onnxruntime exact|causal LENGTH [SECONDS [THREADS]]

One head of 64. Of ONNX Runtime's two operators (Attention, MultiHeadAttention) the faster one counts. Prints one JSON object.
"""

import json
import sys
import time

D = 64
system, kind, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
limit = float(sys.argv[4]) if len(sys.argv) > 4 else 1.0
threads = int(sys.argv[5]) if len(sys.argv) > 5 else 1


def peak_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(call):
    """Seconds of the best run, and MiB of the first one without its output, which ours is given."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = peak_kib()
    best = spent = seconds(call)
    memory = max(0, peak_kib() - before - n * D * 4 // 1024) / 1024
    while spent < limit:
        t = seconds(call)
        best, spent = min(best, t), spent + t
    return best, memory


def torch_call(length):
    import torch
    torch.set_num_threads(threads)
    q, k, v = torch.randn(3, 1, 1, length, D)

    def call():
        with torch.no_grad():
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=kind == "causal")
    return call


def onnxruntime_call(operator, length):
    import numpy
    import onnxruntime
    from onnx import TensorProto, helper
    causal = int(kind == "causal")
    shape = [1, 1, length, D] if operator == "Attention" else [1, length, D]
    if operator == "Attention":
        node = helper.make_node(operator, ["q", "k", "v"], ["o"], is_causal=causal)
    else:
        node = helper.make_node(operator, ["q", "k", "v"], ["o"], domain="com.microsoft", num_heads=1, unidirectional=causal)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape) for x in "qkv"],
                              [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=11).SerializeToString(),
                                           options, providers=["CPUExecutionProvider"])
    operands = {x: numpy.random.randn(*shape).astype(numpy.float32) for x in "qkv"}
    return lambda: session.run(None, operands)


if system == "torch":
    calls = [torch_call]
else:
    calls = [lambda length, operator=operator: onnxruntime_call(operator, length) for operator in ("Attention", "MultiHeadAttention")]
found = []
for make in calls:
    make(8)()  # what the first call loads is not the length's
    found.append(measure(make(n)))
best, memory = min(found)
print(json.dumps({"system": {"torch": "PyTorch", "onnxruntime": "ONNX Runtime"}[system], "kind": kind, "n": n, "d": D,
                  "threads": threads, "ms": best * 1e3, "memory_mib": memory}))
