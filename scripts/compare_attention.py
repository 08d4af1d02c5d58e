#!/usr/bin/env python3
"""Regard's attention beside PyTorch's and ONNX Runtime's in one run, as shares of the product peak and as ratios.

usage: compare_attention.py --scripts DIR [--output DIR] [--seconds S] [--lengths N,N..] [--only exact,decode,additive,lengths]

  exact      forward, forward with backward, causal, bfloat16: milliseconds, share of the peak (512 cubed on one thread, the
             faster of our product and oneDNN's, times the threads), the peers' time over ours
  decode     one query on a cache: share of a plain read's bandwidth, the peers' time over ours
  additive   Bahdanau's step, forward and with backward, against eager PyTorch
  lengths    time and memory against the length, one head of width 64: exact, causal, a window, block-sparse, linear; a plot

A ratio above 1 means that the peer takes longer. All that was measured goes to OUTPUT/attention.json; attention_report.py
makes of it OUTPUT/attention.png, attention.svg and attention.tsv (the plot) and attention.md, the tables of
docs/BENCHMARKS.md, which are printed at the end. DIR of --scripts holds attention_torch.py, attention_ort.py and
additive_torch.py.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

import attention_report
from compare import BENCH, ROOT, additive, objects, run, table

THREADS = (1, 2)


def peers_of_attention(scripts, threads, quick):
    """Milliseconds by (system, operation, dtype, b, h, lq, lk, d, causal), and what was printed."""
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


def against(found, operation, dtype, at):
    """Each peer's milliseconds."""
    theirs = {system: found.get((system, operation, dtype, *at)) for system in attention_report.PEERS}
    return {system: ms for system, ms in theirs.items() if ms}


def cells(o):
    """Two cells a peer: its milliseconds and their ratio to ours."""
    result = []
    for system in attention_report.PEERS:
        theirs = o["peers_ms"].get(system)
        result += [f"{theirs:.3f}", f"{theirs / o['compared_ms']:.2f}"] if theirs else ["", ""]
    return result


def exact(found, threads, seconds):
    """What was measured, with `peers_ms` and what of ours they compare with, `compared_ms`."""
    out, _, _ = run(BENCH / "attention_bench", "--json", "--seconds", seconds, "--threads", threads)
    ours, forward = objects(out), {}
    for o in ours:
        o["compared_ms"], o["peers_ms"] = o["ms"], {}
        if o["window"] >= 0 or o["with"]:
            continue
        if o["op"] == "forward":
            forward[o["dtype"], *shape(o)] = o["ms"]
            o["peers_ms"] = against(found, "forward", o["dtype"], shape(o))
        elif (o["dtype"], *shape(o)) in forward:  # the peers measure backward together with forward
            o["compared_ms"] += forward[o["dtype"], *shape(o)]
            o["peers_ms"] = against(found, "forward+backward", o["dtype"], shape(o))
    table(["attention (batch, heads, length, width)", "threads", "ms", "GFLOP/s", "of peak", "PyTorch ms", "ratio",
           "ONNX Runtime ms", "ratio"],
          [[o["case"], threads, f"{o['ms']:.3f}", f"{o['gflops']:.1f}", f"{o['share']:.3f}", *cells(o)] for o in ours])
    print("Backward's ratios are those of forward and backward together.\n")
    return ours


def decode(found, seconds):
    """found: by threads."""
    ours = objects(run(BENCH / "decode_bench", seconds)[0])
    for o in ours:
        at = (o["b"], o["heads"], 1, o["keys"], o["width"], False)
        comparable = o["page"] == 0 and o["heads"] == o["kv_heads"] and o["queries"] == 1
        o["compared_ms"] = o["ms"]
        o["peers_ms"] = against(found[o["threads"]], "forward", o["stored"], at) if comparable else {}
    table(["decode, queries on keys", "threads", "ms", "GB/s", "of a plain read", "PyTorch ms", "ratio", "ONNX Runtime ms", "ratio"],
          [[attention_report.decode_name(o), o["threads"], f"{o['ms']:.3f}", f"{o['gb_per_s']:.1f}", f"{o['of_read']:.3f}",
            *cells(o)] for o in ours])
    return ours


def available_mib():
    with open("/proc/meminfo", encoding="utf-8") as info:
        return next(int(line.split()[1]) // 1024 for line in info if line.startswith("MemAvailable:"))


def lengths(values, seconds):
    """One process a length and kind, so that each starts with nothing."""
    measured, left_out = [], set()
    peers = ROOT / "scripts/attention_length_peers.py"
    for n in values:
        for kind in attention_report.KINDS:
            measured += objects(run(BENCH / "attention_length_bench", kind, n, seconds)[0])
        for kind in ("exact", "causal"):
            measured += objects(run(sys.executable, peers, "torch", kind, n, seconds)[0])
            scores_mib = n * n * 4 / 2**20  # which one of its operators holds in memory, twice in part
            if 3 * scores_mib > available_mib():
                left_out.add(f"ONNX Runtime at {n:,}: its scores do not fit into memory")
                continue
            done = subprocess.run([sys.executable, peers, "onnxruntime", kind, str(n), str(seconds)], capture_output=True, text=True)
            measured += objects(done.stdout)
            if done.returncode != 0:
                left_out.add(f"ONNX Runtime at {n:,}: {''.join(done.stderr.strip().splitlines()[-1:]) or 'killed'}")
    for line in sorted(left_out):
        print(f"Left out: {line}", file=sys.stderr)
    return measured


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
    result = {"processor": processor(), "date": datetime.date.today().isoformat(), "seconds": seconds, "exact": [], "peers": [],
              "decode": [], "additive": [], "lengths": []}
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
        result["lengths"] = lengths([int(n) for n in arguments.lengths.split(",")], seconds)
    data = arguments.output / "attention.json"
    data.write_text(json.dumps(result, indent=1), encoding="utf-8")
    attention_report.report(data)


if __name__ == "__main__":
    main()
