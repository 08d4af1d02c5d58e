#!/usr/bin/env python3
"""Regard's attention beside PyTorch's and ONNX Runtime's in one run, as shares of the product peak and as ratios.

usage: compare_attention.py --scripts DIR [--output DIR] [--seconds S] [--lengths N,N..] [--only exact,decode,additive,lengths]

  exact      forward, forward with backward, causal, bfloat16: milliseconds, share of the peak (512 cubed on one thread, the
             faster of our product and oneDNN's, times the threads), the peers' time over ours
  decode     one query on a cache: share of a plain read's bandwidth, the peers' time over ours
  additive   Bahdanau's step, forward and with backward, against eager PyTorch
  lengths    time and memory against the length, one head of width 64; a plot

A ratio above 1 means that the peer takes longer. All that was measured goes to OUTPUT/attention.json, the plot to
OUTPUT/attention.png. DIR of --scripts holds attention_torch.py, attention_ort.py and additive_torch.py.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

from compare import BENCH, ROOT, additive, objects, run, table

THREADS = (1, 2)


def peers_of_attention(scripts, threads, quick):
    """Milliseconds by (system, operation, b, h, lq, lk, d, causal, dtype)."""
    found, raw = {}, []
    torch, _, _ = run(sys.executable, scripts / "attention_torch.py", threads, *(["--quick"] if quick else []))
    raw += objects(torch)
    for o in raw:
        if "b" in o:
            found["PyTorch", o["op"], o["dtype"], *shape(o)] = o["ms"]
    done = subprocess.run([sys.executable, scripts / "attention_ort.py", str(threads)], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"ONNX Runtime left out: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    for o in objects(done.stdout):
        raw.append(o)
        key = ("ONNX Runtime", "forward", "f32", *shape(o))
        found[key] = min(o["ms"], found.get(key, o["ms"]))  # the faster of its two operators
    return found, raw


def shape(o):
    return o["b"], o["h"], o["lq"], o["lk"], o["d"], bool(o["causal"])


def against(found, operation, dtype, at, ours):
    """Two cells a peer: its milliseconds and their ratio to ours."""
    cells = []
    for system in ("PyTorch", "ONNX Runtime"):
        theirs = found.get((system, operation, dtype, *at))
        cells += [f"{theirs:.3f}", f"{theirs / ours:.2f}"] if theirs else ["", ""]
    return cells


def exact(found, threads, seconds):
    out, _, _ = run(BENCH / "attention_bench", "--json", "--seconds", seconds, "--threads", threads)
    ours, rows, forward = objects(out), [], {}
    for o in ours:
        plain = o["window"] < 0 and not o["with"]
        name = f"{o['op']} {o['b']},{o['h']},{o['lq']},{o['d']}" + " causal" * o["causal"] + \
            (f" window {o['window']}" if o["window"] >= 0 else "") + (" bf16" if o["dtype"] == "bf16" else "") + \
            (f" {o['with']}" if o["with"] else "")
        peers = [""] * 4
        if plain and o["op"] == "forward":
            forward[o["dtype"], *shape(o)] = o["ms"]
            peers = against(found, "forward", o["dtype"], shape(o), o["ms"])
        elif plain and (o["dtype"], *shape(o)) in forward:  # the peers measure backward together with forward
            both = o["ms"] + forward[o["dtype"], *shape(o)]
            peers = against(found, "forward+backward", o["dtype"], shape(o), both)
        rows.append([name, threads, f"{o['ms']:.3f}", f"{o['gflops']:.1f}", f"{o['share']:.3f}", *peers])
    table(["attention (batch, heads, length, width)", "threads", "ms", "GFLOP/s", "of peak", "PyTorch ms", "ratio",
           "ONNX Runtime ms", "ratio"], rows)
    print("Backward's ratios are those of forward and backward together.\n")
    return ours


def decode(found, seconds):
    """found: by threads."""
    out, _, _ = run(BENCH / "decode_bench", seconds)
    ours, rows = objects(out), []
    for o in ours:
        at = (o["b"], o["heads"], 1, o["keys"], o["width"], False)
        comparable = o["page"] == 0 and o["heads"] == o["kv_heads"]
        peers = against(found[o["threads"]], "forward", o["stored"], at, o["ms"]) if comparable else [""] * 4
        rows.append([f"{o['b']} x {o['heads']}/{o['kv_heads']} heads, {o['keys']} keys of {o['width']}, {o['stored']}" +
                     (f", pages of {o['page']}" if o["page"] else ""), o["threads"], f"{o['ms']:.3f}", f"{o['gb_per_s']:.1f}",
                     f"{o['of_read']:.3f}", *peers])
    table(["decode, one query", "threads", "ms", "GB/s", "of a plain read", "PyTorch ms", "ratio", "ONNX Runtime ms",
           "ratio"], rows)
    return ours


def lengths(values):
    """One process a length, so that each starts with nothing."""
    measured, rows = [], []
    for n in values:
        pairs = {}
        for kind in ("full", "causal"):
            for command in ([BENCH / "attention_length_bench"], [sys.executable, ROOT / "scripts/attention_length_torch.py"]):
                out, _, _ = run(*command, n, 1, kind)
                measured += objects(out)
                pairs[kind, measured[-1]["system"].split()[0]] = measured[-1]
        for kind in ("full", "causal"):
            ours, torch = pairs[kind, "regard"], pairs[kind, "torch"]
            rows.append([f"{n:,} {kind}", *(f"{x:.1f}" for x in (ours["ms"], torch["ms"])), f"{torch['ms'] / ours['ms']:.2f}",
                         *(f"{x['memory_mib']:.1f}" for x in (ours, torch)), f"{n * n * 4 / 2**20:,.0f}"])
    table(["length, one head of 64, one thread", "ms", "PyTorch ms", "ratio", "MiB beside operands", "PyTorch MiB",
           "scores would take MiB"], rows)
    return measured


def plot(measured, folder):
    """attention.tsv always, attention.png where gnuplot is installed."""
    data = folder / "attention.tsv"
    by_length = {}
    for o in measured:
        by_length.setdefault(o["n"], {})[o["system"].split()[0], o["causal"]] = o
    order = [(system, causal) for system in ("regard", "torch") for causal in (False, True)]
    lines = ["n\t" + "\t".join(f"{system}{'_causal' * causal}_{what}" for system, causal in order for what in ("ms", "mib"))]
    for n, found in sorted(by_length.items()):
        lines.append("\t".join([str(n), *(f"{found[key][what]:g}" for key in order for what in ("ms", "memory_mib"))]))
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if not shutil.which("gnuplot"):
        print(f"No picture: gnuplot-nox is missing; the numbers are in {data}")
        return
    picture = folder / "attention.png"
    script = f"""
set terminal pngcairo size 1200,480 font "DejaVu Sans,11"
set output "{picture}"
set multiplot layout 1,2
set logscale xy
set grid
set key top left
set xlabel "length"
set ylabel "milliseconds"
plot for [i=1:4] "{data}" using 1:(column(2*i)) with linespoints pt 7 title word("Regard 'Regard, causal' PyTorch 'PyTorch, causal'", i)
set ylabel "MiB beside operands and output"
plot for [i=1:4] "{data}" using 1:(column(2*i+1)+0.01) with linespoints pt 7 \
  title word("Regard 'Regard, causal' PyTorch 'PyTorch, causal'", i), "{data}" using 1:($1*$1*4/2**20) with lines dt 2 title "all scores"
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    print(f"{picture}, {data}")


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/compare")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each case of ours")
    parser.add_argument("--lengths", default="1024,2048,4096,8192,16384,32768,65536")
    parser.add_argument("--only", default="exact,decode,additive,lengths")
    arguments = parser.parse_args()
    parts, seconds = arguments.only.split(","), arguments.seconds
    arguments.output.mkdir(parents=True, exist_ok=True)
    result = {"processor": processor(), "exact": [], "peers": [], "decode": [], "additive": [], "lengths": []}
    found = {}
    if {"exact", "decode"} & set(parts):
        for threads in THREADS:
            found[threads], raw = peers_of_attention(arguments.scripts, threads, quick=seconds < 0.1)
            result["peers"] += [{**o, "threads": threads} for o in raw]
            if "exact" in parts:
                result["exact"] += exact(found[threads], threads, seconds)
    if "decode" in parts:
        result["decode"] = decode(found, seconds)
    if "additive" in parts:
        result["additive"] = additive(arguments.scripts, seconds)
    if "lengths" in parts:
        result["lengths"] = lengths([int(n) for n in arguments.lengths.split(",")])
        plot(result["lengths"], arguments.output)
    (arguments.output / "attention.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(arguments.output / "attention.json")


if __name__ == "__main__":
    main()
