#!/usr/bin/env python3
"""Golden values of decomposable attention (Parikh et al. 2016, arXiv:1606.01933), in float64, with numpy alone.

usage: decomposable.py [FILE]     writes FILE, by default decomposable.json beside this script

  words     a_i = P E x_i + b; with intra-sentence attention [a_i, a'_i], a'_i = sum_j softmax_j(F(a_i)' F(a_j) + d_c) a_j with
            c = min(max(j - i, -10), 10) + 10
  attend    e_ij = F(a_i)' F(b_j), beta_i = sum_j softmax_j(e_ij) b_j, alpha_j = sum_i softmax_i(e_ij) a_i
  compare   v_1i = G([a_i, beta_i]), v_2j = G([b_j, alpha_j])
  aggregate output.W H([sum_i v_1i, sum_j v_2j]) + output.b

F, G, H and the intra-sentence F are relu(W_2 relu(W_1 x + b_1) + b_2). Filling (three times as large), gradients (complex steps)
and their summaries are those of bahdanau.py; `loss` is the sum over both pairs of the cross-entropy with smoothing 0.1 over the three classes. One premise
is longer than ten words, so that a distance is clipped. `attention` is that of the first pair, premise by hypothesis.
"""

import pathlib
import sys

import numpy as np

import bahdanau as base
from golden_text import text

V, M, N, CLASSES = 11, 4, 5, 3
PREMISES = [[3, 7, 3, 9, 1, 2, 8, 4, 5, 6, 3, 7, 0], [7, 6, 0]]
HYPOTHESES = [[5, 1, 5, 8, 0], [2, 0]]
LABELS = [2, 0]


def two_layers(name, inputs):
    return [(f"{name}.first.W", [N, inputs]), (f"{name}.first.b", [N]), (f"{name}.second.W", [N, N]), (f"{name}.second.b", [N])]


def parameter_list(intra):
    D = 2 * N if intra else N
    parameters = [("embedding", [V, M]), ("project.W", [N, M]), ("project.b", [N])]
    if intra:
        parameters += two_layers("intra", N) + [("intra.distance", [21, 1])]
    parameters += two_layers("attend", D) + two_layers("compare", 2 * D) + two_layers("aggregate", 2 * N)
    return parameters + [("output.W", [CLASSES, N]), ("output.b", [CLASSES])]


def relu(x):
    return np.where(x.real > 0, x, 0)


def softmax_rows(e):
    return np.array([np.exp(base.log_softmax(row)) for row in e])


class Model:
    def __init__(self, intra, values):
        self.intra = intra
        self.values = values

    def network(self, name, x):
        get = self.values
        h = relu(x @ get[f"{name}.first.W"].T + get[f"{name}.first.b"])
        return relu(h @ get[f"{name}.second.W"].T + get[f"{name}.second.b"])

    def words(self, sentence):
        a = self.values["embedding"][sentence] @ self.values["project.W"].T + self.values["project.b"]
        if not self.intra:
            return a
        f = self.network("intra", a)
        i, j = np.indices((len(a), len(a)))
        bias = self.values["intra.distance"][np.clip(j - i, -10, 10) + 10, 0]
        return np.concatenate([a, softmax_rows(f @ f.T + bias) @ a], axis=1)

    def pair(self, premise, hypothesis):
        """Log-probabilities of the classes, and what the premise attends to."""
        a, b = self.words(premise), self.words(hypothesis)
        e = self.network("attend", a) @ self.network("attend", b).T
        to_hypothesis, to_premise = softmax_rows(e), softmax_rows(e.T)
        v1 = self.network("compare", np.concatenate([a, to_hypothesis @ b], axis=1))
        v2 = self.network("compare", np.concatenate([b, to_premise @ a], axis=1))
        h = self.network("aggregate", np.concatenate([v1.sum(axis=0), v2.sum(axis=0)])[None])[0]
        return base.log_softmax(self.values["output.W"] @ h + self.values["output.b"]), to_hypothesis

    def loss(self, smoothing=base.SMOOTHING):
        total = 0
        for premise, hypothesis, label in zip(PREMISES, HYPOTHESES, LABELS):
            log_p, _ = self.pair(premise, hypothesis)
            total = total - (1 - smoothing) * log_p[label] - smoothing / CLASSES * np.sum(log_p)
        return total


def golden(intra):
    parameters = parameter_list(intra)
    model = Model(intra, {name: 3 * value for name, value in base.filled(parameters).items()})
    entries = []
    for name, shape in parameters:
        g = base.gradient(model, name)
        for i in range(0, g.size, 3):
            assert abs(base.central_difference(model, name, i) - g[i]) < 1e-7 * max(1, abs(g[i])), (intra, name, i)
        entries.append({"name": name, "shape": shape,
                        "gradient": {"norm": float(np.linalg.norm(g)), "first": [float(x) for x in g[:5]],
                                     "dot": float(g @ np.sin(np.arange(1, g.size + 1)))}})
    return {"loss": float(model.loss().real), "plain": float(model.loss(0).real),
            "attention": model.pair(PREMISES[0], HYPOTHESES[0])[1].real.tolist(), "parameters": entries}


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("decomposable.json")
    result = {"V": V, "M": M, "N": N, "classes": CLASSES, "smoothing": base.SMOOTHING, "premises": PREMISES,
              "hypotheses": HYPOTHESES, "labels": LABELS,
              "fill": "element i of parameter p, both from 0: 0.9 * sin(1 + 0.7 * i + 1.3 * p)",
              "configurations": {"words": golden(False), "intra_sentence": golden(True)}}
    path.write_text(text(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
