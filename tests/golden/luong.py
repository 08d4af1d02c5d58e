#!/usr/bin/env python3
"""Golden values of Luong's translator (Luong, Pham and Manning 2015, arXiv:1508.04025), in float64, with numpy alone.

usage: luong.py [FILE]     writes FILE, by default luong.json beside this script

  encoder   recurrent layers, forward or both ways; h_s are the top layer's states (both ways: [forward | backward])
  decoder   layer l starts from the last state of the encoder's layer l, both ways: of the one that read to the first word;
            the first layer reads W E y_{t-1} + b, with input feeding also + F h~_{t-1}, h~_0 = 0
  score     dot h_t' h_s;  general h_t' W_a h_s;  concat v_a' tanh(W_a_t h_t + W_a_s h_s);  location (W_a h_t)_s
  alpha     global: softmax over the source;  local-m: over |s - t| <= D, t from 0;  local-p: over |s - p_t| <= D, then times
            exp(-(s - p_t)^2 / (2 (D/2)^2)), p_t = S sigmoid(v_p' tanh(W_p h_t)), S with the end symbol
  output    h~_t = tanh(W_c [c_t; h_t]);  output.W h~_t + output.b

The cells' equations are those of cells.py. Filling, loss, gradients (complex steps) and their summaries are those of
bahdanau.py. `attention` is that of the first sentence; `centres` are its p_t (local-p), none of them near a window's edge.
"""

import pathlib
import sys

import numpy as np

import bahdanau as base
from fixed_vector import GATES, step
from golden_text import text

V, D, N, A, R = 11, 4, 5, 3, 4
SOURCES, TARGETS, BEGIN = base.SOURCES, base.TARGETS, V - 1
PLAIN = {"cell": "gru", "layers": 1, "both": False, "score": "general", "kind": "global", "window": 0, "positions": 0,
         "feeding": False}
CONFIGURATIONS = {
    "general": PLAIN,
    "general_both_ways_feeding": {**PLAIN, "both": True, "feeding": True},
    "dot_feeding_lstm_two_layers": {**PLAIN, "cell": "lstm", "layers": 2, "score": "dot", "feeding": True},
    "concat": {**PLAIN, "score": "concat"},
    "location": {**PLAIN, "score": "location", "positions": 4},
    "local_m": {**PLAIN, "kind": "local-m", "window": 1},
    "local_p": {**PLAIN, "kind": "local-p", "window": 2},
    "local_p_dot_feeding": {**PLAIN, "score": "dot", "kind": "local-p", "window": 1, "feeding": True},
}


def parameter_list(c):
    g, E = GATES[c["cell"]], 2 * N if c["both"] else N

    def layer(name, inputs):
        return [(f"{name}.W_ih", [g * N, inputs]), (f"{name}.W_hh", [g * N, N]), (f"{name}.b_ih", [g * N]),
                (f"{name}.b_hh", [g * N])]

    parameters = [("embedding.source", [V, D]), ("embedding.target", [V, D])]
    for l in range(c["layers"]):
        for direction in ("forward", "backward")[:1 + c["both"]]:
            parameters += layer(("encoder" if l == 0 else f"encoder.{l + 1}") + f".{direction}", D if l == 0 else E)
    for l in range(c["layers"]):
        parameters += layer("decoder" if l == 0 else f"decoder.{l + 1}", D if l == 0 else N)
    parameters += [("decoder.F", [g * N, R])] * c["feeding"]
    parameters += {"dot": [], "general": [("attention.W_a", [N, E])], "location": [("attention.W_a", [c["positions"], N])],
                   "concat": [("attention.W_a_t", [A, N]), ("attention.W_a_s", [A, E]), ("attention.v_a", [A])]}[c["score"]]
    parameters += [("attention.W_p", [A, N]), ("attention.v_p", [A])] * (c["kind"] == "local-p")
    return parameters + [("combine.W_c", [R, E + N]), ("output.W", [V, R]), ("output.b", [V])]


class Model:
    def __init__(self, configuration, values):
        self.c, self.values = configuration, values

    def cell(self, name, x, state):
        return step(self.c["cell"], x, self.values[f"{name}.W_hh"], self.values[f"{name}.b_hh"], state)

    def layer(self, name, inputs):
        """All states (h, c) of a layer, from zero."""
        state, states = (np.zeros(N, np.complex128), np.zeros(N, np.complex128)), []
        for y in inputs:
            state = self.cell(name, self.values[f"{name}.W_ih"] @ y + self.values[f"{name}.b_ih"], state)
            states.append(state)
        return states

    def encode(self, words):
        """h_s, and of every layer the state that the decoder starts from."""
        below, last = [self.values["embedding.source"][w] for w in words], []
        for l in range(self.c["layers"]):
            name = "encoder" if l == 0 else f"encoder.{l + 1}"
            forward = self.layer(f"{name}.forward", below)
            last.append(forward[-1])
            above = [h for h, _ in forward]
            if self.c["both"]:
                backward = self.layer(f"{name}.backward", below[::-1])
                last[-1] = backward[-1]
                above = [np.concatenate([h, b]) for h, (b, _) in zip(above, backward[::-1])]
            below = above
        return np.array(below), last

    def scores(self, h_t, h):
        get = self.values
        if self.c["score"] == "dot":
            return np.array([h_t @ h_s for h_s in h])
        if self.c["score"] == "general":
            return np.array([h_t @ get["attention.W_a"] @ h_s for h_s in h])
        if self.c["score"] == "concat":
            return np.array([get["attention.v_a"] @ np.tanh(get["attention.W_a_t"] @ h_t + get["attention.W_a_s"] @ h_s) for h_s in h])
        return (get["attention.W_a"] @ h_t)[:len(h)]  # later positions have none

    def centre(self, h_t, S):
        return S * base.sigmoid(self.values["attention.v_p"] @ np.tanh(self.values["attention.W_p"] @ h_t))

    def alpha(self, h_t, t, h):
        e, kind, width = self.scores(h_t, h), self.c["kind"], self.c["window"]
        alpha = np.zeros(len(h), np.complex128)
        if kind == "global":
            alpha[:len(e)] = np.exp(base.log_softmax(e))
            return alpha
        p = self.centre(h_t, len(h)) if kind == "local-p" else t
        inside = np.abs(np.arange(len(h)) - np.real(p)) <= width
        if inside.any():
            alpha[inside] = np.exp(base.log_softmax(e[inside]))
        if kind == "local-p":
            alpha = alpha * np.exp(-(np.arange(len(h)) - p) ** 2 / (2 * (width / 2) ** 2))
        return alpha

    def sentence(self, x, y):
        """Log-probabilities [T, V], attention [T, S] and centres."""
        get = self.values
        h, states = self.encode(x)
        h_tilde, rows, attention, centres = np.zeros(R, np.complex128), [], [], []
        for t, previous in enumerate([BEGIN] + y[:-1]):
            below = get["embedding.target"][previous]
            for l in range(self.c["layers"]):
                name = "decoder" if l == 0 else f"decoder.{l + 1}"
                into = get[f"{name}.W_ih"] @ below + get[f"{name}.b_ih"]
                if l == 0 and self.c["feeding"]:
                    into = into + get["decoder.F"] @ h_tilde
                states[l] = self.cell(name, into, states[l])
                below = states[l][0]
            attention.append(self.alpha(below, t, h))
            centres += [self.centre(below, len(h)).real] if self.c["kind"] == "local-p" else []
            h_tilde = np.tanh(get["combine.W_c"] @ np.concatenate([attention[-1] @ h, below]))
            rows.append(base.log_softmax(get["output.W"] @ h_tilde + get["output.b"]))
        return np.array(rows), np.array(attention), centres

    def loss(self, smoothing=base.SMOOTHING):
        total = 0
        for x, y in zip(SOURCES, TARGETS):
            log_p = self.sentence(x, y)[0]
            total = total - (1 - smoothing) * np.sum(log_p[np.arange(len(y)), y]) - smoothing / V * np.sum(log_p)
        return total


def golden(name, configuration):
    parameters = parameter_list(configuration)
    model = Model(configuration, base.filled(parameters))
    for x, y in zip(SOURCES, TARGETS):
        for p in model.sentence(x, y)[2]:
            assert abs(p - round(p)) > 1e-3, (name, p)
    result = []
    for parameter, shape in parameters:
        g = base.gradient(model, parameter)
        for i in range(0, g.size, 7):
            assert abs(base.central_difference(model, parameter, i) - g[i]) < 1e-8, (name, parameter, i)
        result.append({"name": parameter, "shape": shape,
                       "gradient": {"norm": float(np.linalg.norm(g)), "dot": float(g @ np.sin(np.arange(1, g.size + 1)))}})
    _, attention, centres = model.sentence(SOURCES[0], TARGETS[0])
    return {**configuration, "loss": float(model.loss().real), "plain": float(model.loss(0).real),
            "attention": attention.real.tolist(), "centres": centres, "parameters": result}


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("luong.json")
    result = {"V": V, "D": D, "N": N, "A": A, "R": R, "begin": BEGIN, "smoothing": base.SMOOTHING, "sources": SOURCES,
              "targets": TARGETS, "configurations": {name: golden(name, c) for name, c in CONFIGURATIONS.items()}}
    path.write_text(text(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
