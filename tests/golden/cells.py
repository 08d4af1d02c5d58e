#!/usr/bin/env python3
"""Golden values of the recurrent cells, in float64, with Python's standard library alone.

usage: cells.py [FILE]     writes FILE, by default cells.json beside this script

The cells, with x = W y + b_ih given (N numbers a gate):
  elman     h' = tanh(x + U h + b)
  elman-relu  the same with max(0, .) for tanh
  lstm      i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of x + U h + b;  c' = f c + i g;  h' = o tanh(c')
  gru       r, z = sigmoid(x + U h + b);  n = tanh(x_n + r (U_n h + b_n));  h' = (1 - z) n + z h
  gru-2014  r, z = sigmoid(x + U h);  h~ = tanh(x_n + U_n (r h));  h' = z h + (1 - z) h~
  gru-2015  r, z = sigmoid(x + U h);  h~ = tanh(x_n + U_n (r h));  h' = (1 - z) h + z h~

Each is used twice in a row, both times in the same direction, on the same sentences (lengths 3, 1, 0 and 4):
  first   x of position t is row index[t] of the parameter x; zero initial states
  second  x of position t is V h1_t, where h1 are the first one's states; starts from the first one's last states
With `reverse` a sentence is read from its end; a state belongs to the position that was read last. The last state of an
empty sentence is its initial one.

Parameters, in order: x [D, gN], first.U [gN, N], first.b [gN], V [gN, N], second.U [gN, N], second.b [gN]; no b for gru-2014
and gru-2015. Element i of parameter p (its place in the list, from 0) is 0.8 sin(1 + 0.7 i + 1.3 p), counted row by row.
`loss` is the sum over the outputs of output_i cos(0.3 + 0.9 i + 1.7 q), q the output's place in the list: first h [total, N],
second h [total, N], first last h [B, N], second last h [B, N] and, for lstm, first last c, second last c. Gradients are by
complex steps (exact to rounding), checked against central differences. Of each gradient: its norm, its first five elements,
and `dot`, its inner product with sin(1), sin(2), sin(3), ..., which no permutation leaves as it is.
"""

import cmath
import math
import pathlib
import sys

from golden_text import text

D, N = 5, 3
LENGTHS = [3, 1, 0, 4]
INDEX = [0, 1, 2, 1, 4, 3, 0, 4]
GATES = {"elman": 1, "elman-relu": 1, "lstm": 4, "gru": 3, "gru-2014": 3, "gru-2015": 3}


def parameter_list(kind):
    """Names and shapes in order."""
    g = GATES[kind]
    biased = kind not in ("gru-2014", "gru-2015")
    first = [("x", [D, g * N]), ("first.U", [g * N, N])] + [("first.b", [g * N])] * biased
    return first + [("V", [g * N, N]), ("second.U", [g * N, N])] + [("second.b", [g * N])] * biased


def filled(parameters):
    return {name: [0.8 * cmath.sin(1 + 0.7 * i + 1.3 * p) for i in range(math.prod(shape))]
            for p, (name, shape) in enumerate(parameters)}


def sigmoid(x):
    return 1 / (1 + cmath.exp(-x))


def product(matrix, vector):
    """The matrix, row by row, times the vector."""
    n = len(vector)
    return [sum(matrix[r * n + c] * vector[c] for c in range(n)) for r in range(len(matrix) // n)]


def gate(vector, k):
    return vector[k * N:(k + 1) * N]


def plus(*vectors):
    return [sum(elements) for elements in zip(*vectors)]


def elman(x, U, b, h, _):
    return [cmath.tanh(a) for a in plus(x, product(U, h), b)], None


def elman_relu(x, U, b, h, _):
    return [a if a.real > 0 else 0j for a in plus(x, product(U, h), b)], None


def lstm(x, U, b, h, c):
    a = plus(x, product(U, h), b)
    i, f, g, o = gate(a, 0), gate(a, 1), gate(a, 2), gate(a, 3)
    c = [sigmoid(f[k]) * c[k] + sigmoid(i[k]) * cmath.tanh(g[k]) for k in range(N)]
    return [sigmoid(o[k]) * cmath.tanh(c[k]) for k in range(N)], c


def gru(x, U, b, h, _):
    s = plus(product(U, h), b)
    r = [sigmoid(a) for a in plus(gate(x, 0), gate(s, 0))]
    z = [sigmoid(a) for a in plus(gate(x, 1), gate(s, 1))]
    n = [cmath.tanh(gate(x, 2)[k] + r[k] * gate(s, 2)[k]) for k in range(N)]
    return [(1 - z[k]) * n[k] + z[k] * h[k] for k in range(N)], None


def gated(x, U, h):
    """z and the candidate of the papers' unit."""
    block = N * N
    r = [sigmoid(a) for a in plus(gate(x, 0), product(U[:block], h))]
    z = [sigmoid(a) for a in plus(gate(x, 1), product(U[block:2 * block], h))]
    reset = [r[k] * h[k] for k in range(N)]
    return z, [cmath.tanh(a) for a in plus(gate(x, 2), product(U[2 * block:], reset))]


def gru_2014(x, U, _, h, __):
    z, candidate = gated(x, U, h)
    return [z[k] * h[k] + (1 - z[k]) * candidate[k] for k in range(N)], None


def gru_2015(x, U, _, h, __):
    z, candidate = gated(x, U, h)
    return [(1 - z[k]) * h[k] + z[k] * candidate[k] for k in range(N)], None


CELLS = {"elman": elman, "elman-relu": elman_relu, "lstm": lstm, "gru": gru, "gru-2014": gru_2014, "gru-2015": gru_2015}


def run(cell, xs, U, b, state, reverse):
    """All states of one sentence by position, and the last (h, c)."""
    h, c = state
    states = [None] * len(xs)
    for t in reversed(range(len(xs))) if reverse else range(len(xs)):
        h, c = cell(xs[t], U, b, h, c)
        states[t] = h
    return states, (h, c)


def outputs(kind, reverse, values):
    """Name and elements of each output, in order."""
    cell, width = CELLS[kind], GATES[kind] * N
    zero = [0j] * N
    h1, h2, last1, last2, memory1, memory2, start = [], [], [], [], [], [], 0
    for length in LENGTHS:
        words = INDEX[start:start + length]
        start += length
        xs = [values["x"][word * width:(word + 1) * width] for word in words]
        states1, end1 = run(cell, xs, values["first.U"], values.get("first.b"), (zero, zero), reverse)
        again = [product(values["V"], h) for h in states1]
        states2, end2 = run(cell, again, values["second.U"], values.get("second.b"), end1, reverse)
        h1 += sum(states1, [])
        h2 += sum(states2, [])
        last1 += end1[0]
        last2 += end2[0]
        memory1 += end1[1] if kind == "lstm" else []
        memory2 += end2[1] if kind == "lstm" else []
    named = [("first.h", h1), ("second.h", h2), ("first.last.h", last1), ("second.last.h", last2)]
    return named + [("first.last.c", memory1), ("second.last.c", memory2)] * (kind == "lstm")


def loss(kind, reverse, values):
    return sum(element * math.cos(0.3 + 0.9 * i + 1.7 * q)
               for q, (_, elements) in enumerate(outputs(kind, reverse, values)) for i, element in enumerate(elements))


def shifted(kind, reverse, values, name, i, change):
    """The loss with element i of a parameter changed."""
    kept = values[name][i]
    values[name][i] = kept + change
    result = loss(kind, reverse, values)
    values[name][i] = kept
    return result


def gradient(kind, reverse, values, name):
    step = 1e-30
    return [shifted(kind, reverse, values, name, i, 1j * step).imag / step for i in range(len(values[name]))]


def central_difference(kind, reverse, values, name, i, step=1e-5):
    above, below = (shifted(kind, reverse, values, name, i, change).real for change in (step, -step))
    return (above - below) / (2 * step)


def golden(kind, reverse):
    parameters = parameter_list(kind)
    values = filled(parameters)
    gradients = {}
    for name, _ in parameters:
        g = gradient(kind, reverse, values, name)
        for i in range(0, len(g), 3):
            assert abs(central_difference(kind, reverse, values, name, i) - g[i]) < 1e-8, (kind, reverse, name, i)
        gradients[name] = {"norm": math.sqrt(math.fsum(x * x for x in g)), "first": g[:5],
                           "dot": math.fsum(x * math.sin(i + 1) for i, x in enumerate(g))}
    return {"outputs": [{"name": name, "values": [x.real for x in elements]}
                        for name, elements in outputs(kind, reverse, values)],
            "loss": loss(kind, reverse, values).real,
            "parameters": [{"name": name, "shape": shape, "gradient": gradients[name]} for name, shape in parameters]}


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("cells.json")
    result = {"D": D, "N": N, "lengths": LENGTHS, "index": INDEX,
              "fill": "element i of parameter p, both from 0: 0.8 * sin(1 + 0.7 * i + 1.3 * p)",
              "weights": "element i of output q, both from 0: cos(0.3 + 0.9 * i + 1.7 * q)",
              "kinds": {kind: {"reverse" if reverse else "forward": golden(kind, reverse) for reverse in (False, True)}
                        for kind in GATES}}
    path.write_text(text(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
