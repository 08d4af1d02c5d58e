#!/usr/bin/env python3
"""Golden values of the encoder-decoder with one vector a sentence (Cho et al. 2014, arXiv:1406.1078; Sutskever et al. 2014,
arXiv:1409.3215), in float64, with numpy alone.

usage: fixed_vector.py [FILE]     writes FILE, by default fixed_vector.json beside this script

  encoder    one or more recurrent layers, forward or both ways; with `reverse` the words (not the end symbol) from the end
  v          the top layer's last state; both ways: [state after the last word | state after the first, read from the end]
  decoder    layer l from tanh(W^l v + b^l), an LSTM's memory from zero; x = W E y_{t-1} + b + C v into the first layer
  readout    tanh(S s + C v + E E y_{t-1} + b), or maxout of pairs of S s + C v + E E y_{t-1}; then output.W t + output.b

The cells' equations are those of cells.py. Filling, loss, gradients (complex steps) and their summaries are those of bahdanau.py.
"""

import pathlib
import sys

import numpy as np

import bahdanau as base
from golden_text import text

V, D, N, R = 11, 4, 5, 4
SOURCES, TARGETS, BEGIN = base.SOURCES, base.TARGETS, V - 1
GATES = {"elman": 1, "lstm": 4, "gru": 3, "gru-2014": 3}
CONFIGURATIONS = {
    "gru": {"cell": "gru", "layers": 1, "both": False, "reverse": False, "maxout": False},
    "gru_both_ways": {"cell": "gru", "layers": 1, "both": True, "reverse": False, "maxout": False},
    "rnn_two_layers_both_ways": {"cell": "elman", "layers": 2, "both": True, "reverse": False, "maxout": False},
    "lstm_two_layers_reversed": {"cell": "lstm", "layers": 2, "both": False, "reverse": True, "maxout": False},
    "gru_2014_maxout": {"cell": "gru-2014", "layers": 1, "both": False, "reverse": False, "maxout": True},
}


def parameter_list(c):
    g, E = GATES[c["cell"]], 2 * N if c["both"] else N
    rows = 2 * R if c["maxout"] else R

    def layer(name, inputs):
        parameters = [(f"{name}.W_ih", [g * N, inputs]), (f"{name}.W_hh", [g * N, N]), (f"{name}.b_ih", [g * N])]
        return parameters + [(f"{name}.b_hh", [g * N])] * (c["cell"] != "gru-2014")

    parameters = [("embedding.source", [V, D]), ("embedding.target", [V, D])]
    for l in range(c["layers"]):
        name = "encoder" if l == 0 else f"encoder.{l + 1}"
        for direction in ("forward", "backward")[:1 + c["both"]]:
            parameters += layer(f"{name}.{direction}", D if l == 0 else E)
    for l in range(c["layers"]):
        number = "" if l == 0 else f".{l + 1}"
        parameters += [(f"initial{number}.W", [N, E]), (f"initial{number}.b", [N])]
    parameters += [("decoder.C", [g * N, E])]
    for l in range(c["layers"]):
        parameters += layer("decoder" if l == 0 else f"decoder.{l + 1}", D if l == 0 else N)
    parameters += [("readout.S", [rows, N]), ("readout.C", [rows, E]), ("readout.E", [rows, D])]
    parameters += [("readout.b", [rows])] * (not c["maxout"])
    return parameters + [("output.W", [V, R]), ("output.b", [V])]


def step(kind, x, U, b, state):
    """One step of a cell: state is (h, c); x = W y + b_ih."""
    h, c = state
    if kind == "elman":
        return np.tanh(x + U @ h + b), c
    if kind == "lstm":
        a = x + U @ h + b
        i, f, o = base.sigmoid(a[:N]), base.sigmoid(a[N:2 * N]), base.sigmoid(a[3 * N:])
        c = f * c + i * np.tanh(a[2 * N:3 * N])
        return o * np.tanh(c), c
    if kind == "gru":
        return base.cell_after(x, U, b, h), c
    r, z = base.sigmoid(x[:N] + U[:N] @ h), base.sigmoid(x[N:2 * N] + U[N:2 * N] @ h)
    return z * h + (1 - z) * np.tanh(x[2 * N:] + U[2 * N:] @ (r * h)), c


class Model:
    def __init__(self, configuration, values):
        self.c, self.values = configuration, values

    def layer(self, name, inputs, state):
        """The states h of every step."""
        get, states = self.values, []
        for y in inputs:
            x = get[f"{name}.W_ih"] @ y + get[f"{name}.b_ih"]
            state = step(self.c["cell"], x, get[f"{name}.W_hh"], get.get(f"{name}.b_hh", 0), state)
            states.append(state[0])
        return states

    def encode(self, words):
        zero = np.zeros(N, np.complex128)
        if self.c["reverse"]:
            words = words[-2::-1] + words[-1:]
        below = [self.values["embedding.source"][w] for w in words]
        for l in range(self.c["layers"]):
            name = "encoder" if l == 0 else f"encoder.{l + 1}"
            forward = self.layer(f"{name}.forward", below, (zero, zero))
            v, above = forward[-1], forward
            if self.c["both"]:
                backward = self.layer(f"{name}.backward", below[::-1], (zero, zero))[::-1]
                v, above = np.concatenate([forward[-1], backward[0]]), [np.concatenate(pair) for pair in zip(forward, backward)]
            below = above
        return v

    def sentence(self, x, y):
        get, v = self.values, self.encode(x)
        states, logits = [], []
        for l in range(self.c["layers"]):
            number = "" if l == 0 else f".{l + 1}"
            states.append((np.tanh(get[f"initial{number}.W"] @ v + get[f"initial{number}.b"]), np.zeros(N, np.complex128)))
        for previous in [BEGIN] + y[:-1]:
            Ey = get["embedding.target"][previous]
            below = Ey
            for l in range(self.c["layers"]):
                name = "decoder" if l == 0 else f"decoder.{l + 1}"
                into = get[f"{name}.W_ih"] @ below + get[f"{name}.b_ih"] + (get["decoder.C"] @ v if l == 0 else 0)
                states[l] = step(self.c["cell"], into, get[f"{name}.W_hh"], get.get(f"{name}.b_hh", 0), states[l])
                below = states[l][0]
            linear = get["readout.S"] @ below + get["readout.C"] @ v + get["readout.E"] @ Ey + get.get("readout.b", 0)
            t = base.maxout(linear) if self.c["maxout"] else np.tanh(linear)
            logits.append(base.log_softmax(get["output.W"] @ t + get["output.b"]))
        return np.array(logits)

    def loss(self, smoothing=base.SMOOTHING):
        total = 0
        for x, y in zip(SOURCES, TARGETS):
            log_p = self.sentence(x, y)
            total = total - (1 - smoothing) * np.sum(log_p[np.arange(len(y)), y]) - smoothing / V * np.sum(log_p)
        return total


def golden(configuration):
    parameters = parameter_list(configuration)
    model = Model(configuration, base.filled(parameters))
    result = []
    for name, shape in parameters:
        g = base.gradient(model, name)
        for i in range(0, g.size, 7):
            assert abs(base.central_difference(model, name, i) - g[i]) < 1e-8, (configuration, name, i)
        result.append({"name": name, "shape": shape,
                       "gradient": {"norm": float(np.linalg.norm(g)), "dot": float(g @ np.sin(np.arange(1, g.size + 1)))}})
    return {**configuration, "loss": float(model.loss().real), "plain": float(model.loss(0).real), "parameters": result}


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("fixed_vector.json")
    result = {"V": V, "D": D, "N": N, "R": R, "begin": BEGIN, "smoothing": base.SMOOTHING, "sources": SOURCES, "targets": TARGETS,
              "configurations": {name: golden(c) for name, c in CONFIGURATIONS.items()}}
    path.write_text(text(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
