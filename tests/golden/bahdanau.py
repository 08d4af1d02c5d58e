#!/usr/bin/env python3
"""Golden values of the attention translator (Bahdanau, Cho and Bengio 2015, arXiv:1409.0473), in float64, with numpy alone.

usage: bahdanau.py [FILE]     writes FILE, by default bahdanau.json beside this script

Three configurations:
  default  GRU that resets after the product, n = tanh(W x + b + r (U h + b')), h = (1 - z) n + z h; gates in the order
           r, z, n; tanh readout t = tanh(S s_i + C c_i + E E y_{i-1} + b); s_0 = tanh(W h_1backward + b)
  paper    the paper's appendix: s~ = tanh(W E y + b + U (r s_{i-1}) + C c_i), s_i = (1 - z) s_{i-1} + z s~; gates in the order
           r, z, candidate; t~ = S s_{i-1} + C c_i + E E y_{i-1} with 2R rows, t_k = max(t~_{2k}, t~_{2k+1}). Like the paper,
           it has no bias in s_0, the scores and the readout; the gates' b_ih and output.b stay
  paper_with_biases  the same with initial.b, attention.b and readout.b

All matrices act from the left (y = W x), shapes are [rows, columns], elements are counted row by row. Element i of parameter p
(its place in the list, from 0) is 0.3 sin(1 + 0.7 i + 1.3 p). Nothing is padded: each sentence is computed alone.
`loss` is the sum over both sentences' target symbols of the cross-entropy with smoothing 0.1 spread over all V symbols, in
nats; `mean` is that by the number of symbols; `plain` is the sum without smoothing. Gradients are those of `loss`, by complex
steps (exact to rounding) and checked against central differences. Of each gradient: its norm, its first five elements, and
`dot`, its inner product with sin(1), sin(2), sin(3), ..., which no permutation leaves as it is.
"""

import pathlib
import sys

import numpy as np

from golden_text import text

V, D, N, A, R = 11, 4, 5, 3, 4  # vocabulary (both), embedding, state, alignment, readout
SMOOTHING = 0.1
SOURCES = [[3, 7, 3, 9, 0], [7, 6, 0]]  # 0 ends a sentence
TARGETS = [[5, 1, 5, 8, 0], [2, 0]]
BEGIN = V - 1


def parameter_list(configuration):
    """Names and shapes in order."""
    default = configuration == "default"
    biases = configuration != "paper"
    rows = R if default else 2 * R
    parameters = [("embedding.source", [V, D]), ("embedding.target", [V, D])]
    for direction in ("forward", "backward"):
        parameters += [(f"encoder.{direction}.W_ih", [3 * N, D]), (f"encoder.{direction}.W_hh", [3 * N, N]),
                       (f"encoder.{direction}.b_ih", [3 * N])]
        parameters += [(f"encoder.{direction}.b_hh", [3 * N])] * default
    parameters += [("initial.W", [N, N])] + [("initial.b", [N])] * biases
    parameters += [("attention.W_a", [A, N]), ("attention.U_a", [A, 2 * N])] + [("attention.b", [A])] * biases
    parameters += [("attention.v", [A])]
    parameters += [("decoder.W", [3 * N, D]), ("decoder.C", [3 * N, 2 * N]), ("decoder.U", [3 * N, N]), ("decoder.b_ih", [3 * N])]
    parameters += [("decoder.b_hh", [3 * N])] * default
    parameters += [("readout.S", [rows, N]), ("readout.C", [rows, 2 * N]), ("readout.E", [rows, D])]
    parameters += [("readout.b", [rows])] * biases
    return parameters + [("output.W", [V, R]), ("output.b", [V])]


def filled(parameters):
    values = {}
    for p, (name, shape) in enumerate(parameters):
        i = np.arange(np.prod(shape), dtype=np.float64)
        values[name] = (0.3 * np.sin(1 + 0.7 * i + 1.3 * p)).reshape(shape).astype(np.complex128)
    return values


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_softmax(x):
    shifted = x - np.max(x.real)  # a constant for the derivative
    return shifted - np.log(np.sum(np.exp(shifted)))


def maxout(x):
    pairs = x.reshape(-1, 2)
    return pairs[np.arange(len(pairs)), np.argmax(pairs.real, axis=1)]


def cell_after(from_input, U, b_hh, h):
    """GRU that resets after the product. from_input [3N] is W x + b."""
    from_state = U @ h + b_hh
    r = sigmoid(from_input[:N] + from_state[:N])
    z = sigmoid(from_input[N:2 * N] + from_state[N:2 * N])
    n = np.tanh(from_input[2 * N:] + r * from_state[2 * N:])
    return (1 - z) * n + z * h


def cell_2015(from_input, U, h):
    """The paper's gated unit, A.1.1 and A.2.2; z keeps what is new."""
    r = sigmoid(from_input[:N] + U[:N] @ h)
    z = sigmoid(from_input[N:2 * N] + U[N:2 * N] @ h)
    candidate = np.tanh(from_input[2 * N:] + U[2 * N:] @ (r * h))
    return (1 - z) * h + z * candidate


class Model:
    def __init__(self, configuration, values):
        self.default = configuration == "default"
        self.values = values

    def get(self, name):
        """A parameter; a bias that this configuration lacks is zero."""
        return self.values.get(name, 0)

    def cell(self, from_input, U_name, b_name, h):
        U = self.get(U_name)
        return cell_after(from_input, U, self.get(b_name), h) if self.default else cell_2015(from_input, U, h)

    def direction(self, name, x):
        h, states = np.zeros(N, np.complex128), []
        for word in x:
            from_input = self.get(f"encoder.{name}.W_ih") @ self.get("embedding.source")[word] + self.get(f"encoder.{name}.b_ih")
            h = self.cell(from_input, f"encoder.{name}.W_hh", f"encoder.{name}.b_hh", h)
            states.append(h)
        return states

    def sentence(self, x, y):
        """Log-probabilities [T, V] and attention [T, S]."""
        get = self.get
        forward, backward = self.direction("forward", x), self.direction("backward", x[::-1])[::-1]
        h = np.array([np.concatenate(pair) for pair in zip(forward, backward)])  # [S, 2N]
        s = np.tanh(get("initial.W") @ backward[0] + get("initial.b"))
        rows, attention = [], []
        for previous in [BEGIN] + y[:-1]:
            Ey = get("embedding.target")[previous]
            e = np.array([get("attention.v") @ np.tanh(get("attention.W_a") @ s + get("attention.U_a") @ h_j + get("attention.b"))
                          for h_j in h])
            alpha = np.exp(log_softmax(e))
            c = alpha @ h
            s_before = s
            from_input = get("decoder.W") @ Ey + get("decoder.C") @ c + get("decoder.b_ih")
            s = self.cell(from_input, "decoder.U", "decoder.b_hh", s)
            linear = get("readout.S") @ (s if self.default else s_before) + get("readout.C") @ c + get("readout.E") @ Ey
            linear = linear + get("readout.b")
            t = np.tanh(linear) if self.default else maxout(linear)
            rows.append(log_softmax(get("output.W") @ t + get("output.b")))
            attention.append(alpha)
        return np.array(rows), np.array(attention)

    def loss(self, smoothing=SMOOTHING):
        total = 0
        for x, y in zip(SOURCES, TARGETS):
            log_p, _ = self.sentence(x, y)
            total = total - (1 - smoothing) * np.sum(log_p[np.arange(len(y)), y]) - smoothing / V * np.sum(log_p)
        return total


def gradient(model, name, count=None):
    """By complex steps, of the first `count` elements (all, if it is not given); those behind them are 0."""
    step, parameter = 1e-30, model.values[name].reshape(-1)
    result = np.zeros(parameter.size)
    for i in range(count or parameter.size):
        kept = parameter[i]
        parameter[i] = kept + 1j * step
        result[i] = model.loss().imag / step
        parameter[i] = kept
    return result


def central_difference(model, name, i, step=1e-5):
    parameter = model.values[name].reshape(-1)
    kept, losses = parameter[i], []
    for sign in (1, -1):
        parameter[i] = kept + sign * step
        losses.append(model.loss().real)
    parameter[i] = kept
    return (losses[0] - losses[1]) / (2 * step)


def golden(configuration):
    parameters = parameter_list(configuration)
    model = Model(configuration, filled(parameters))
    gradients = {}
    for name, _ in parameters:
        g = gradient(model, name)
        for i in range(0, g.size, 3):
            assert abs(central_difference(model, name, i) - g[i]) < 1e-8, (configuration, name, i)
        gradients[name] = {"norm": float(np.linalg.norm(g)), "first": [float(x) for x in g[:5]],
                           "dot": float(g @ np.sin(np.arange(1, g.size + 1)))}
    loss, count = float(model.loss().real), sum(map(len, TARGETS))
    return {"loss": loss, "mean": loss / count, "plain": float(model.loss(0).real),
            "attention": model.sentence(SOURCES[0], TARGETS[0])[1].real.tolist(),
            "parameters": [{"name": name, "shape": shape, "gradient": gradients[name]} for name, shape in parameters]}


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("bahdanau.json")
    result = {"V": V, "D": D, "N": N, "A": A, "R": R, "begin": BEGIN, "smoothing": SMOOTHING,
              "sources": SOURCES, "targets": TARGETS,
              "fill": "element i of parameter p, both from 0: 0.3 * sin(1 + 0.7 * i + 1.3 * p)",
              "configurations": {name: golden(name) for name in ("default", "paper", "paper_with_biases")}}
    path.write_text(text(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
