#!/usr/bin/env python3
"""Golden values of the LSTMN (Cheng, Dong and Lapata 2016, arXiv:1601.06733, equations 4 to 9), in float64, with numpy alone.

usage: lstmn.py [FILE]     writes FILE, by default lstmn.json beside this script

  layer     a_i = v' tanh(W_h h_i + W_x x_t + W_s h~_{t-1}) for all i < t; s = softmax(a)
            h~_t = sum_i s_i h_i, c~_t = sum_i s_i c_i, both 0 at t = 1
            i, f, o = sigmoid, g = tanh of the blocks (i f g o) of W x_t + U h~_t + b
            c_t = f c~_t + i g, h_t = o tanh(c_t)
  language  layers over the embeddings, output as in recurrent_lm.py
  encoder   layers over the source's embeddings, forward or both ways ([forward | backward]), and the decoder of bahdanau.py's
            configuration `default`, from tanh(W s + b), s the top layer's last state forward, both ways: backward

Filling, loss, gradients (complex steps) and their summaries are those of bahdanau.py.
"""

import numpy as np

import bahdanau as base
import recurrent_lm as lm

V, N, A, R = 11, 5, 3, 4
CONFIGURATIONS = {
    "language": {"layers": 1, "tied": False},
    "language_two_layers_tied": {"layers": 2, "tied": True},
    "encoder": {"layers": 1, "both": False},
    "encoder_two_layers_both_ways": {"layers": 2, "both": True},
}


def layer_parameters(name, K):
    return [(f"{name}.W", [4 * N, K]), (f"{name}.U", [4 * N, N]), (f"{name}.b", [4 * N]), (f"{name}.W_h", [A, N]),
            (f"{name}.W_x", [A, K]), (f"{name}.W_s", [A, N]), (f"{name}.v", [A])]


def language_parameters(c):
    D = N if c["tied"] else 4
    parameters = [("embedding", [V, D])]
    for l in range(c["layers"]):
        parameters += layer_parameters(f"layer.{l + 1}", D if l == 0 else N)
    return parameters + [("output.W", [V, N])] * (not c["tied"]) + [("output.b", [V])]


def encoder_parameters(c):
    D, E = 4, 2 * N if c["both"] else N
    parameters = [("embedding.source", [V, D]), ("embedding.target", [V, D])]
    for l in range(c["layers"]):
        for direction in ("forward", "backward")[:1 + c["both"]]:
            parameters += layer_parameters(f"encoder.{l + 1}.{direction}", D if l == 0 else E)
    parameters += [("initial.W", [N, N]), ("initial.b", [N]), ("attention.W_a", [A, N]), ("attention.U_a", [A, E]),
                   ("attention.b", [A]), ("attention.v", [A]), ("decoder.W", [3 * N, D]), ("decoder.C", [3 * N, E]),
                   ("decoder.U", [3 * N, N]), ("decoder.b_ih", [3 * N]), ("decoder.b_hh", [3 * N]), ("readout.S", [R, N]),
                   ("readout.C", [R, E]), ("readout.E", [R, D]), ("readout.b", [R])]
    return parameters + [("output.W", [V, R]), ("output.b", [V])]


def weighted(energies, tape):
    weights = np.exp(base.log_softmax(np.array(energies))) if tape else []
    return sum((w * row for w, row in zip(weights, tape)), np.zeros(N, np.complex128))


def layer(values, name, inputs):
    """h_t of every step."""
    get = {key: values[f"{name}.{key}"] for key in ("W", "U", "b", "W_h", "W_x", "W_s", "v")}
    h, c, summary = [], [], np.zeros(N, np.complex128)
    for x in inputs:
        energies = [get["v"] @ np.tanh(get["W_h"] @ h_i + get["W_x"] @ x + get["W_s"] @ summary) for h_i in h]
        summary, c_summary = weighted(energies, h), weighted(energies, c)
        i, f, g, o = np.split(get["W"] @ x + get["U"] @ summary + get["b"], 4)
        c.append(base.sigmoid(f) * c_summary + base.sigmoid(i) * np.tanh(g))
        h.append(base.sigmoid(o) * np.tanh(c[-1]))
    return h


class Language(lm.Model):
    def layer(self, name, inputs):
        return layer(self.values, name, inputs)


class Translator:
    def __init__(self, configuration, values):
        self.c, self.values = configuration, values

    def encode(self, words):
        h = [self.values["embedding.source"][w] for w in words]
        for l in range(self.c["layers"]):
            forward = layer(self.values, f"encoder.{l + 1}.forward", h)
            last, above = forward[-1], forward
            if self.c["both"]:
                backward = layer(self.values, f"encoder.{l + 1}.backward", h[::-1])[::-1]
                last, above = backward[0], [np.concatenate(pair) for pair in zip(forward, backward)]
            h = above
        return np.array(h), last

    def sentence(self, x, y):
        get, (h, last) = self.values, self.encode(x)
        s = np.tanh(get["initial.W"] @ last + get["initial.b"])
        rows, attention = [], []
        for previous in [lm.BEGIN] + y[:-1]:
            Ey = get["embedding.target"][previous]
            e = np.array([get["attention.v"] @ np.tanh(get["attention.W_a"] @ s + get["attention.U_a"] @ h_j + get["attention.b"])
                          for h_j in h])
            alpha = np.exp(base.log_softmax(e))
            c = alpha @ h
            into = get["decoder.W"] @ Ey + get["decoder.C"] @ c + get["decoder.b_ih"]
            s = base.cell_after(into, get["decoder.U"], get["decoder.b_hh"], s)
            t = np.tanh(get["readout.S"] @ s + get["readout.C"] @ c + get["readout.E"] @ Ey + get["readout.b"])
            rows.append(base.log_softmax(get["output.W"] @ t + get["output.b"]))
            attention.append(alpha)
        return np.array(rows), np.array(attention)

    def loss(self, smoothing=base.SMOOTHING):
        total = 0
        for x, y in zip(base.SOURCES, base.TARGETS):
            log_p, _ = self.sentence(x, y)
            total = total - (1 - smoothing) * np.sum(log_p[np.arange(len(y)), y]) - smoothing / V * np.sum(log_p)
        return total


def main():
    results = {}
    for name, c in CONFIGURATIONS.items():
        language = "tied" in c
        parameters = language_parameters(c) if language else encoder_parameters(c)
        model = (Language if language else Translator)(c, base.filled(parameters))
        results[name] = {**c, **lm.golden(model, parameters)}
        if not language:
            results[name]["attention"] = model.sentence(base.SOURCES[0], base.TARGETS[0])[1].real.tolist()
    lm.write(__file__, results)


if __name__ == "__main__":
    main()
