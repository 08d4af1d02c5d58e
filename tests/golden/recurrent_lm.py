#!/usr/bin/env python3
"""Golden values of recurrent language models (Mikolov et al. 2010; Sundermeyer et al. 2012), in float64, with numpy alone.

usage: recurrent_lm.py [FILE]     writes FILE, by default recurrent_lm.json beside this script

  layer l   reads E y_{t-1} or the states of the layer below, from zero states; x = W y + b_ih into the cell
  output    output.W h_t + output.b of the top layer's state; tied: the embeddings in place of output.W, then D = N

The cells' equations are those of cells.py. Filling, loss, gradients (complex steps) and their summaries are those of
bahdanau.py; of its sentences only the targets are read.
"""

import pathlib
import sys

import numpy as np

import bahdanau as base
from fixed_vector import GATES, step
from golden_text import text

V, N = 11, 5
TARGETS, BEGIN = base.TARGETS, V - 1
CONFIGURATIONS = {
    "elman": {"cell": "elman", "layers": 1, "tied": False},
    "lstm_two_layers": {"cell": "lstm", "layers": 2, "tied": False},
    "gru_two_layers_tied": {"cell": "gru", "layers": 2, "tied": True},
    "gru_2014": {"cell": "gru-2014", "layers": 1, "tied": False},
}


def parameter_list(c):
    g, D = GATES[c["cell"]], N if c["tied"] else 4
    parameters = [("embedding", [V, D])]
    for l in range(c["layers"]):
        name = f"layer.{l + 1}"
        parameters += [(f"{name}.W_ih", [g * N, D if l == 0 else N]), (f"{name}.W_hh", [g * N, N]), (f"{name}.b_ih", [g * N])]
        parameters += [(f"{name}.b_hh", [g * N])] * (c["cell"] != "gru-2014")
    return parameters + [("output.W", [V, N])] * (not c["tied"]) + [("output.b", [V])]


class Model:
    """A language model whose layers a derived class may replace."""

    def __init__(self, configuration, values):
        self.c, self.values = configuration, values

    def layer(self, name, inputs):
        get, states = self.values, []
        state = (np.zeros(N, np.complex128), np.zeros(N, np.complex128))
        for y in inputs:
            x = get[f"{name}.W_ih"] @ y + get[f"{name}.b_ih"]
            state = step(self.c["cell"], x, get[f"{name}.W_hh"], get.get(f"{name}.b_hh", 0), state)
            states.append(state[0])
        return states

    def sentence(self, y):
        """Log-probabilities [T, V]."""
        h = [self.values["embedding"][previous] for previous in [BEGIN] + y[:-1]]
        for l in range(self.c["layers"]):
            h = self.layer(f"layer.{l + 1}", h)
        W = self.values["embedding"] if self.c["tied"] else self.values["output.W"]
        return np.array([base.log_softmax(W @ h_t + self.values["output.b"]) for h_t in h])

    def loss(self, smoothing=base.SMOOTHING):
        total = 0
        for y in TARGETS:
            log_p = self.sentence(y)
            total = total - (1 - smoothing) * np.sum(log_p[np.arange(len(y)), y]) - smoothing / V * np.sum(log_p)
        return total


def golden(model, parameters, counts=()):
    """Losses and gradients; of a parameter in `counts` only the first so many elements have one."""
    result = []
    for name, shape in parameters:
        g = base.gradient(model, name, dict(counts).get(name))
        for i in range(0, g.size, 7):
            assert abs(base.central_difference(model, name, i) - g[i]) < 1e-7, (name, i)
        result.append({"name": name, "shape": shape,
                       "gradient": {"norm": float(np.linalg.norm(g)), "dot": float(g @ np.sin(np.arange(1, g.size + 1)))}})
    return {"loss": float(model.loss().real), "plain": float(model.loss(0).real), "parameters": result}


def write(script, configurations):
    """Writes {"configurations": ...} to the file that the command line names, else beside the script."""
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(script).with_suffix(".json")
    path.write_text(text({"begin": BEGIN, "smoothing": base.SMOOTHING, "targets": TARGETS,
                               "configurations": configurations}) + "\n", encoding="utf-8")


def main():
    results = {}
    for name, c in CONFIGURATIONS.items():
        parameters = parameter_list(c)
        results[name] = {**c, **golden(Model(c, base.filled(parameters)), parameters)}
    write(__file__, results)


if __name__ == "__main__":
    main()
