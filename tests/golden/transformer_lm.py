#!/usr/bin/env python3
"""Golden values of the Transformer's decoder alone as a language model, in float64, with numpy alone.

usage: transformer_lm.py [FILE]     writes FILE, by default transformer_lm.json beside this script

Two layers of causal self-attention and feed-forward over sqrt(D) E y_{t-1} and positions; the embeddings serve as output.W,
but in `separate`. Layers, positions and the names of configurations are those of transformer.py; filling, loss, gradients
(complex steps) and their summaries those of bahdanau.py, of whose sentences only the targets are read.
"""

import numpy as np

import bahdanau as base
import recurrent_lm as lm
import transformer

V, D, L = transformer.V, transformer.D, transformer.L
NAMES = (*transformer.NAMES, "separate")


def parameter_list(name):
    """The decoder's of transformer.py without cross-attention, by other names."""
    parameters = []
    for at, shape in transformer.parameter_list(name):
        if at.startswith("encoder") or ".cross" in at:
            continue
        at = at.replace("decoder.norm", "last.norm").replace("decoder.", "layer.")
        parameters += [("output.W", [V, D])] * (at == "output.b" and name == "separate") + [(at, shape)]
    return parameters


class Model(transformer.Model):
    def __init__(self, name, values):
        super().__init__("after" if name == "separate" else name, values)
        self.W = values["output.W"] if name == "separate" else values["embedding"]

    def sentence(self, y):
        x = self.embedded([lm.BEGIN] + y[:-1])
        for layer in range(1, L + 1):
            at = f"layer.{layer}"
            x = self.block(at + ".self", x, lambda z: self.self_attention(at + ".self", z, True))
            x = self.block(at + ".feed_forward", x, lambda z: self.feed_forward(at + ".feed_forward", z))
        x = self.norm("last", x) if self.name == "before" else x
        return np.array([base.log_softmax(self.W @ row + self.values["output.b"]) for row in x])

    loss = lm.Model.loss


def main():
    results = {}
    for name in NAMES:
        parameters = parameter_list(name)
        model = Model(name, base.filled(parameters))
        results[name] = lm.golden(model, parameters, {"positions": 5 * D})  # rows that a sentence reaches
    lm.write(__file__, results)


if __name__ == "__main__":
    main()
