#!/usr/bin/env python3
"""PyTorch on the cases of bench/sequence_bench.cc: an LSTM over 1,024 steps, self-attention over 1,024 positions.

usage: sequence_torch.py [THREADS] [SECONDS A CASE]

One JSON object a line: the best time in milliseconds, forward, and forward with backward (of inputs and weights).
"""

import json
import sys
import time

import torch
from torch import nn

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
LENGTH, WIDTH, HEADS = 1024, 256, 8


def best(run):
    fastest, spent, runs = 1e9, 0.0, 0
    while runs < 5 or spent < SECONDS:
        begin = time.perf_counter()
        run()
        taken = time.perf_counter() - begin
        fastest, spent, runs = min(fastest, taken), spent + taken, runs + 1
    return fastest * 1e3


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        o = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(o.transpose(1, 2).reshape(B, T, WIDTH))


def main():
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
    for kind, layer in (("lstm", lambda x: lstm(x)[0]), ("self-attention", SelfAttention())):
        for batch in (1, 16):
            x = torch.randn(batch, LENGTH, WIDTH, requires_grad=True)

            def forward():
                with torch.no_grad():
                    layer(x)

            def both():
                layer(x).sum().backward()
                x.grad = None

            print(json.dumps({"system": "torch", "case": f"{kind}, batch {batch}", "threads": THREADS,
                              "forward_ms": best(forward), "forward_backward_ms": best(both)}), flush=True)


if __name__ == "__main__":
    main()
