#!/usr/bin/env python3
"""Golden values of the Transformer (Vaswani et al. 2017, arXiv:1706.03762), in float64, with numpy alone.

usage: transformer.py [FILE]     writes FILE, by default transformer.json beside this script

Configurations, two layers each:
  after          norm(x + f(x)), sinusoids added, swish between the feed-forward products
  before         x + f(norm(x)) and a last norm after encoder and decoder
  relu           as `after`, max(x, 0)
  window         as `after`, self-attention to positions at most 1 away
  block_sparse   as `after`, in blocks of 1: a position attends to itself, to those beside it and to the first
  linear_window  as `after`, the first layers linear: f(q_i)' sum_j f(k_j) v_j' / f(q_i)' sum_j f(k_j), f(x) = x + 1 for x > 0,
                 else exp(x); the second as `window` (Katharopoulos et al. 2020)
  learned        a table of 512 rows is added instead of sinusoids
  relative       q_i . a_c / sqrt(d) is added to scores, c = clip(j - i, -16, 16) + 16 (Shaw et al. 2018)
  relative_bias  b_{c, head} is added to scores, c the bucket of j - i among 32 (Raffel et al. 2020)
  rotary         pairs (i, i + d/2) of every query and key are turned by position 10000^(-2i/d) (Su et al. 2021)
  alibi          2^(-8h/H) |i - j| is taken from scores, h = 1..H (Press et al. 2021)
  none           no positions
Sinusoids: sin(p / 10000^(2i/D)) in column i, the cosine in column D/2 + i. Embeddings are multiplied by sqrt(D); one table
serves source, target and output. Layer norm: variance over D, epsilon 1e-5. Queries, keys and values of self-attention are
rows 0..D-1, D..2D-1, 2D..3D-1 of qkv; keys and values of cross-attention of kv.

All matrices act from the left (y = W x), shapes are [rows, columns], elements are counted row by row. Element i of parameter p
(its place in the list, from 0) is 0.3 sin(1 + 0.7 i + 1.3 p). Nothing is padded: each sentence is computed alone.
`loss` is the sum over both sentences' target symbols of the cross-entropy with smoothing 0.1 spread over all V symbols, in
nats; `plain` is the sum without smoothing. `attention`: rows of the first sentence, mean over the heads of the first decoder
layer's cross-attention. Gradients are those of `loss`, by complex steps (exact to rounding), samples checked against central
differences. Of each gradient: its norm, and `dot`, its inner product with sin(1), sin(2), sin(3), ....
"""

import pathlib
import sys

import numpy as np

import bahdanau as base
from golden_text import text

V, D, H, F, L = 11, 8, 2, 6, 2  # vocabulary, model, heads, feed-forward, layers
d = D // H
SMOOTHING = 0.1
SOURCES = [[3, 7, 3, 9, 0], [7, 6, 0]]  # 0 ends a sentence
TARGETS = [[5, 1, 5, 8, 0], [2, 0]]
BEGIN = V - 1
SINUSOIDS = ("after", "before", "relu", "window", "block_sparse", "linear_window")
NAMES = (*SINUSOIDS, "learned", "relative", "relative_bias", "rotary", "alibi", "none")


def parameter_list(name):
    """Names and shapes in order."""
    def linear(at, rows, columns):
        return [(at + ".W", [rows, columns]), (at + ".b", [rows])]

    def norm(at):
        return [(at + ".norm.gain", [D]), (at + ".norm.bias", [D])]

    def self_attention(at):
        relative = [(at + ".relative", [33, d])] * (name == "relative")
        return linear(at + ".qkv", 3 * D, D) + relative + linear(at + ".out", D, D) + norm(at)

    def feed_forward(at):
        return linear(at + ".first", F, D) + linear(at + ".second", D, F) + norm(at)

    parameters = [("embedding", [V, D])] + [("positions", [512, D])] * (name == "learned")
    for stack in ("encoder", "decoder"):
        parameters += [(stack + ".relative", [32, H])] * (name == "relative_bias")
        for layer in range(1, L + 1):
            at = f"{stack}.{layer}"
            parameters += self_attention(at + ".self")
            if stack == "decoder":
                cross = at + ".cross"
                parameters += linear(cross + ".q", D, D) + linear(cross + ".kv", 2 * D, D) + linear(cross + ".out", D, D) + norm(cross)
            parameters += feed_forward(at + ".feed_forward")
        parameters += norm(stack) * (name == "before")
    return parameters + [("output.b", [V])]


def softmax_rows(x):
    e = np.exp(x - np.max(x.real, axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def bucket(distance, causal):
    """T5's bucket of j - i among 32; distances from 128 on share the last."""
    buckets, first = 32, 0
    if not causal:
        buckets = 16
        first = 16 if distance > 0 else 0
    n = max(-distance, 0) if causal else abs(distance)
    near = buckets // 2
    if n < near:
        return first + n
    return first + min(near + int(np.log(n / near) / np.log(128 / near) * (buckets - near)), buckets - 1)


def rotate(x, position):
    """One head's vector, turned by its position."""
    half = d // 2
    angle = position * 10000.0 ** (-2 * np.arange(half) / d)
    a, b = x[:half], x[half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)])


class Model:
    def __init__(self, name, values):
        self.name, self.values = name, values

    def linear(self, at, x):
        return x @ self.values[at + ".W"].T + self.values[at + ".b"]

    def norm(self, at, x):
        centred = x - x.mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
        return centred / deviation * self.values[at + ".norm.gain"] + self.values[at + ".norm.bias"]

    def block(self, at, x, f):
        if self.name == "before":
            return x + f(self.norm(at, x))
        return self.norm(at, x + f(x))

    def embedded(self, words):
        x = np.sqrt(D) * self.values["embedding"][words]
        if self.name == "learned":
            return x + self.values["positions"][:len(words)]
        if self.name in SINUSOIDS:
            angle = np.arange(len(words))[:, None] / 10000.0 ** (2 * np.arange(D // 2) / D)
            return x + np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        return x

    def allowed(self, at, i, j):
        """What a layer's form lets position i see, apart from the causal mask."""
        if self.name == "window" or (self.name == "linear_window" and ".2." in at):
            return abs(i - j) <= 1
        return self.name != "block_sparse" or abs(i - j) <= 1 or j == 0

    def linear_head(self, q, k, v, causal):
        q, k = (np.where(x.real > 0, x + 1, np.exp(x)) for x in (q, k))
        similar = q @ k.T
        if causal:
            similar = np.tril(similar)
        return similar @ v / similar.sum(axis=1, keepdims=True)

    def self_attention(self, at, x, causal):
        n = len(x)
        q, k, v = np.split(self.linear(at + ".qkv", x), 3, axis=1)
        heads = []
        for h in range(H):
            columns = slice(h * d, (h + 1) * d)
            qh, kh = q[:, columns], k[:, columns]
            if self.name == "rotary":
                qh = np.array([rotate(row, p) for p, row in enumerate(qh)])
                kh = np.array([rotate(row, p) for p, row in enumerate(kh)])
            if self.name == "linear_window" and ".1." in at:
                heads.append(self.linear_head(qh, kh, v[:, columns], causal))
                continue
            scores = qh @ kh.T / np.sqrt(d)
            for i in range(n):
                for j in range(n):
                    if self.name == "relative":
                        scores[i, j] += qh[i] @ self.values[at + ".relative"][np.clip(j - i, -16, 16) + 16] / np.sqrt(d)
                    if self.name == "relative_bias":
                        scores[i, j] += self.values[at.split(".")[0] + ".relative"][bucket(j - i, causal), h]
                    if self.name == "alibi":
                        scores[i, j] -= 2.0 ** (-8 * (h + 1) / H) * abs(i - j)
                    if (causal and j > i) or not self.allowed(at, i, j):
                        scores[i, j] = -1e300
            heads.append(softmax_rows(scores) @ v[:, columns])
        return self.linear(at + ".out", np.concatenate(heads, axis=1))

    def cross_attention(self, at, x, annotations):
        q = self.linear(at + ".q", x)
        k, v = np.split(self.linear(at + ".kv", annotations), 2, axis=1)
        weights = [softmax_rows(q[:, h * d:(h + 1) * d] @ k[:, h * d:(h + 1) * d].T / np.sqrt(d)) for h in range(H)]
        heads = [weights[h] @ v[:, h * d:(h + 1) * d] for h in range(H)]
        return self.linear(at + ".out", np.concatenate(heads, axis=1)), sum(weights) / H

    def feed_forward(self, at, x):
        h = self.linear(at + ".first", x)
        h = np.where(h.real > 0, h, 0) if self.name == "relu" else h / (1 + np.exp(-h))
        return self.linear(at + ".second", h)

    def sentence(self, source, target):
        """Log-probabilities [T, V] and attention [T, S]."""
        x = self.embedded(source)
        for layer in range(1, L + 1):
            at = f"encoder.{layer}"
            x = self.block(at + ".self", x, lambda y: self.self_attention(at + ".self", y, False))
            x = self.block(at + ".feed_forward", x, lambda y: self.feed_forward(at + ".feed_forward", y))
        annotations = self.norm("encoder", x) if self.name == "before" else x
        x, attention = self.embedded([BEGIN] + target[:-1]), []
        for layer in range(1, L + 1):
            at = f"decoder.{layer}"

            def cross(y):
                value, weights = self.cross_attention(at + ".cross", y, annotations)
                attention.append(weights)
                return value

            x = self.block(at + ".self", x, lambda y: self.self_attention(at + ".self", y, True))
            x = self.block(at + ".cross", x, cross)
            x = self.block(at + ".feed_forward", x, lambda y: self.feed_forward(at + ".feed_forward", y))
        x = self.norm("decoder", x) if self.name == "before" else x
        logits = x @ self.values["embedding"].T + self.values["output.b"]
        return np.array([base.log_softmax(row) for row in logits]), attention[0]

    def loss(self, smoothing=SMOOTHING):
        total = 0
        for x, y in zip(SOURCES, TARGETS):
            log_p, _ = self.sentence(x, y)
            total = total - (1 - smoothing) * np.sum(log_p[np.arange(len(y)), y]) - smoothing / V * np.sum(log_p)
        return total


def golden(configuration):
    parameters = parameter_list(configuration)
    model = Model(configuration, base.filled(parameters))
    gradients = {}
    for name, _ in parameters:
        g = base.gradient(model, name, 5 * D if name == "positions" else None)  # rows that a sentence reaches
        for i in range(0, g.size, 29):
            assert abs(base.central_difference(model, name, i) - g[i]) < 1e-7, (configuration, name, i)
        gradients[name] = {"norm": float(np.linalg.norm(g)), "dot": float(g @ np.sin(np.arange(1, g.size + 1)))}
    return {"loss": float(model.loss().real), "plain": float(model.loss(0).real),
            "attention": model.sentence(SOURCES[0], TARGETS[0])[1].real.tolist(),
            "parameters": [{"name": name, "shape": shape, "gradient": gradients[name]} for name, shape in parameters]}


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("transformer.json")
    result = {"V": V, "D": D, "H": H, "F": F, "L": L, "begin": BEGIN, "smoothing": SMOOTHING,
              "sources": SOURCES, "targets": TARGETS,
              "fill": "element i of parameter p, both from 0: 0.3 * sin(1 + 0.7 * i + 1.3 * p)",
              "configurations": {name: golden(name) for name in NAMES}}
    path.write_text(text(result, flat=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
