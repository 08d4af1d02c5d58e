#!/usr/bin/env python3
"""Golden values of Paulus's summariser (Paulus, Xiong and Socher 2017, arXiv:1705.04304), in float64, with numpy alone.

usage: intra_decoder.py [FILE]     writes FILE, by default intra_decoder.json beside this script

  encoder   LSTM in both directions over W_emb[x]; h_i = [forward | backward]
  decoder   LSTM of 2N over W_emb[y_{t-1}]; it starts from the last state and memory of either direction, [forward | backward]
  source    e_ti = h_i' W_e h_t (attention.source.W = W_e);  e'_t = exp(e_t), from the second step on divided by the sum of the
            exp(e_u) of the steps before;  alpha_t = e'_t / sum e'_t;  c^e_t = sum_i alpha_ti h_i
  decoder   softmax over u < t of h_u' W_d h_t;  c^d_t is the sum of the h_u so weighted, 0 at the first step
  output    seen = [h_t | c^e_t | c^d_t];  W_out = tanh(W_emb P'), P = embedding.projection [K, D];
            generated: softmax(W_out seen + output.b);  copied: alpha_ti to the word x_i;  p(u = 1) = sigmoid(w_u seen + b_u)
  loss      - (1 - e) log p(y_t) - e / V sum_v log generated(v); without the pointer the usual smoothed cross-entropy

A configuration leaves out the attention to decoder states, the pointer, or the sharing of embeddings (then embedding.source,
embedding.target and output.W are parameters of their own). Filling, gradients (complex steps) and their summaries are those of
bahdanau.py. `attention` is alpha of the first pair, `log_p` the log-probabilities of its targets.
"""

import pathlib
import sys

import numpy as np

import bahdanau as base
from golden_text import text

V, D, N = 11, 4, 5
SOURCES = [[3, 7, 3, 9, 0], [7, 6, 0]]
TARGETS = [[3, 9, 5, 3, 0], [7, 0]]  # the first source has word 3 twice
BEGIN = V - 1
WHOLE = {"intra_attention": True, "pointer": True, "separate_embeddings": False}
CONFIGURATIONS = {
    "whole": WHOLE,
    "no_intra_attention": {**WHOLE, "intra_attention": False},
    "no_pointer": {**WHOLE, "pointer": False},
    "separate_embeddings": {**WHOLE, "separate_embeddings": True},
}


def parameter_list(c):
    K = 2 * N * (3 if c["intra_attention"] else 2)

    def layer(name, width):
        return [(f"{name}.W_ih", [4 * width, D]), (f"{name}.W_hh", [4 * width, width]), (f"{name}.b_ih", [4 * width]),
                (f"{name}.b_hh", [4 * width])]

    own = [("embedding.source", [V, D]), ("embedding.target", [V, D]), ("output.W", [V, K])]
    shared = [("embedding", [V, D]), ("embedding.projection", [K, D])]
    parameters = own if c["separate_embeddings"] else shared
    parameters = parameters + layer("encoder.forward", N) + layer("encoder.backward", N) + layer("decoder", 2 * N)
    parameters += [("attention.source.W", [2 * N, 2 * N])]
    parameters += [("attention.decoder.W", [2 * N, 2 * N])] * c["intra_attention"]
    parameters += [("pointer.W", [1, K]), ("pointer.b", [1])] * c["pointer"]
    return parameters + [("output.b", [V])]


def lstm(x, U, b, state):
    """One step of any width: gates in the order i, f, g, o."""
    h, c = state
    i, f, g, o = np.split(x + U @ h + b, 4)
    c = base.sigmoid(f) * c + base.sigmoid(i) * np.tanh(g)
    return base.sigmoid(o) * np.tanh(c), c


class Model:
    def __init__(self, configuration, values):
        self.c, self.values = configuration, values

    def table(self, side):
        return self.values[f"embedding.{side}" if self.c["separate_embeddings"] else "embedding"]

    def run(self, name, words, side, state):
        get, states = self.values, []
        for word in words:
            x = get[f"{name}.W_ih"] @ self.table(side)[word] + get[f"{name}.b_ih"]
            state = lstm(x, get[f"{name}.W_hh"], get[f"{name}.b_hh"], state)
            states.append(state)
        return states

    def encode(self, x):
        """h_i and the decoder's first state."""
        zero = (np.zeros(N, np.complex128), np.zeros(N, np.complex128))
        forward, backward = self.run("encoder.forward", x, "source", zero), self.run("encoder.backward", x[::-1], "source", zero)
        h = np.array([np.concatenate([f[0], b[0]]) for f, b in zip(forward, backward[::-1])])
        return h, tuple(np.concatenate([forward[-1][k], backward[-1][k]]) for k in range(2))

    def sentence(self, x, y):
        """Log-probabilities, those of the generator [T, V], and alpha [T, S]."""
        get = self.values
        W_out = get["output.W"] if self.c["separate_embeddings"] else np.tanh(self.table("target") @ get["embedding.projection"].T)
        h, first = self.encode(x)
        mixed, generated, attention, scores, earlier = [], [], [], [], []
        for h_t, _ in self.run("decoder", [BEGIN] + y[:-1], "target", first):
            scores.append(np.exp(np.array([h_i @ get["attention.source.W"] @ h_t for h_i in h])))
            e = scores[-1] / (sum(scores[:-1]) if len(scores) > 1 else 1)
            attention.append(e / np.sum(e))
            seen = [h_t, attention[-1] @ h]
            if self.c["intra_attention"]:
                seen.append(np.zeros(2 * N, np.complex128))
                if earlier:
                    weights = np.exp(np.array([h_u @ get["attention.decoder.W"] @ h_t for h_u in earlier]))
                    seen[-1] = (weights / np.sum(weights)) @ np.array(earlier)
            earlier.append(h_t)
            seen = np.concatenate(seen)
            generated.append(base.log_softmax(W_out @ seen + get["output.b"]))
            p = np.exp(generated[-1])
            if self.c["pointer"]:
                u = base.sigmoid(get["pointer.W"][0] @ seen + get["pointer.b"][0])
                p = (1 - u) * p
                for word, weight in zip(x, attention[-1]):
                    p[word] = p[word] + u * weight
            mixed.append(np.log(p))
        return np.array(mixed), np.array(generated), np.array(attention)

    def loss(self, smoothing=base.SMOOTHING):
        total = 0
        for x, y in zip(SOURCES, TARGETS):
            mixed, generated, _ = self.sentence(x, y)
            total = total - (1 - smoothing) * np.sum(mixed[np.arange(len(y)), y]) - smoothing / V * np.sum(generated)
        return total


def golden(name, configuration):
    parameters = parameter_list(configuration)
    model = Model(configuration, base.filled(parameters))
    result = []
    for parameter, shape in parameters:
        g = base.gradient(model, parameter)
        for i in range(0, g.size, 17):
            assert abs(base.central_difference(model, parameter, i) - g[i]) < 1e-8, (name, parameter, i)
        result.append({"name": parameter, "shape": shape,
                       "gradient": {"norm": float(np.linalg.norm(g)), "dot": float(g @ np.sin(np.arange(1, g.size + 1)))}})
    mixed, _, attention = model.sentence(SOURCES[0], TARGETS[0])
    log_p = mixed[np.arange(len(TARGETS[0])), TARGETS[0]]
    return {**configuration, "loss": float(model.loss().real), "plain": float(model.loss(0).real),
            "attention": attention.real.tolist(), "log_p": log_p.real.tolist(), "parameters": result}


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("intra_decoder.json")
    result = {"V": V, "D": D, "N": N, "begin": BEGIN, "smoothing": base.SMOOTHING, "sources": SOURCES, "targets": TARGETS,
              "configurations": {name: golden(name, c) for name, c in CONFIGURATIONS.items()}}
    path.write_text(text(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
