#!/usr/bin/env python3
"""The tables of docs/BENCHMARKS.md and the plot against the length, from what compare_attention.py measured.

usage: attention_report.py ATTENTION.JSON

Prints the tables in Markdown and writes beside the file attention.md (the same), attention.tsv, and, where gnuplot is
installed, attention.svg and attention.png. docs/attention-lengths.svg is such an attention.svg.
"""

import json
import math
import pathlib
import shutil
import subprocess
import sys

PEERS = ("PyTorch", "ONNX Runtime")
KINDS = {"exact": "exact", "causal": "causal", "window": "causal, window of 256", "sparse": "causal, 8 blocks of 64",
         "linear": "linear, causal"}
# What is drawn and tabled against the length: (system, kind), colour, dash, point type of gnuplot.
SERIES = {("Regard", "exact"): ("#0b4fb3", 1, 7), ("Regard", "causal"): ("#b3500b", 1, 7), ("Regard", "window"): ("#0b7a55", 1, 7),
          ("Regard", "sparse"): ("#a3296f", 1, 7), ("Regard", "linear"): ("#75620a", 1, 7),
          ("PyTorch", "exact"): ("#0b4fb3", 2, 6), ("PyTorch", "causal"): ("#b3500b", 2, 6),
          ("ONNX Runtime", "exact"): ("#0b4fb3", 3, 8), ("ONNX Runtime", "causal"): ("#b3500b", 3, 8)}


def table(head, rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def ratios(o):
    return [f"{o['peers_ms'][system] / o['compared_ms']:.2f}" if system in o["peers_ms"] else "" for system in PEERS]


def by_threads(objects, name, share, first):
    """A row a case, for each number of threads the share and the peers' ratios."""
    rows, threads = {}, sorted({o["threads"] for o in objects})
    for o in objects:
        rows.setdefault(name(o), {})[o["threads"]] = [f"{o[share]:.3f}", *ratios(o)]
    head = [first]
    for count in threads:
        head += [f"share, {'one thread' if count == 1 else f'{count} threads'}", *PEERS]
    return table(head, [[case, *(cell for count in threads for cell in found.get(count, [""] * 3))] for case, found in rows.items()])


def decode_name(o):
    heads = f"{o['heads']}/{o['kv_heads']}" if o["heads"] != o["kv_heads"] else f"{o['heads']}"
    queries = f"{o['queries']} queries, " if o["queries"] != 1 else ""
    return f"{o['b']} x {heads} heads, {queries}{o['keys']} keys of {o['width']}, {o['stored']}" + (f", pages of {o['page']}" if o["page"] else "")


def additive(objects):
    def key(o):
        return o["threads"], o["b"], o["s"], o["a"], o["e"]
    torch = {key(o): o for o in objects if "peer" in o}
    rows = []
    for o in objects:
        t = torch.get(key(o))
        if t and o.get("lengths") == "ragged":  # the peer's own lengths
            row = [f"{o['b']}, {o['s']}, {o['a']}, {o['e']}", o["threads"]]
            for what in ("forward_ms", "forward_backward_ms"):
                row += [f"{o[what]:.3f}", f"{t[what]:.2f}", f"{t[what] / o[what]:.1f}"]
            rows.append(row)
    return table(["B, S, A, E", "threads", "forward, ms", "PyTorch", "ratio", "with backward, ms", "PyTorch", "ratio"], rows)


def by_length(objects):
    found = {}
    for o in objects:
        found.setdefault(o["n"], {})[o["system"], o["kind"]] = o
    return dict(sorted(found.items()))


def series_name(series):
    system, kind = series
    return f"{system}, {KINDS[kind]}"


def significant(x):
    """Three digits, or all before the point."""
    digits = 2 - math.floor(math.log10(x)) if x > 0 else 0
    return f"{x:,.{max(0, digits)}f}"


def lengths(objects, what):
    present = [series for series in SERIES if any((o["system"], o["kind"]) == series for o in objects)]
    rows = [[f"{n:,}", *(significant(found[series][what]) if series in found else "" for series in present)]
            for n, found in by_length(objects).items()]
    return table(["length", *map(series_name, present)], rows)


def versions(result):
    found = {o["peer"] for part in ("peers", "additive") for o in result[part] if "peer" in o}
    return ", ".join(sorted(found))


def markdown(result):
    text = f"One run of `make compare-attention PEERS=DIR`, {result['processor']}, {result['date']}; {versions(result)}.\n\n"
    if result["exact"]:
        text += ("**Exact attention**: share of the products' peak (512 cubed, one thread, times the threads), and how many times as long "
                 "the peers take; backward's share is backward alone, its ratio forward and backward together.\n\n")
        text += by_threads(result["exact"], lambda o: o["case"], "share", "batch, heads, length, width") + "\n"
    if result["decode"]:
        text += "**Decoding**, one query a head on a cache: share of a plain read's bandwidth.\n\n"
        text += by_threads(result["decode"], decode_name, "of_read", "items x heads (of queries/of keys)") + "\n"
    if result["additive"]:
        text += "**The additive step** against eager PyTorch, ragged sources:\n\n" + additive(result["additive"]) + "\n"
    if result["lengths"]:
        text += "**Against the length**, one head of 64, one thread, milliseconds:\n\n" + lengths(result["lengths"], "ms")
        text += "\nMiB beside operands and output (all scores: length x length x 4 bytes):\n\n"
        text += lengths(result["lengths"], "memory_mib")
    return text


def write_tsv(objects, path):
    """A row a length: for each series milliseconds and MiB, nan where it was not measured."""
    lines = ["n\t" + "\t".join(f"{series_name(series)}, {what}" for series in SERIES for what in ("ms", "MiB"))]
    for n, found in by_length(objects).items():
        values = [found[series][what] if series in found else float("nan") for series in SERIES for what in ("ms", "memory_mib")]
        lines.append("\t".join([str(n), *(f"{value:g}" for value in values)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def plot(objects, folder):
    data = folder / "attention.tsv"
    write_tsv(objects, data)
    if not shutil.which("gnuplot"):
        print(f"No picture: gnuplot-nox is missing; the numbers are in {data}", file=sys.stderr)
        return
    drawn = [(i, series) for i, series in enumerate(SERIES) if any((o["system"], o["kind"]) == series for o in objects)]

    def curves(column, titles):
        return [f'"{data}" using 1:(${2 * i + column} > 0.01 ? ${2 * i + column} : ${2 * i + column} >= 0 ? 0.01 : NaN) '
                f'with linespoints lw 1.8 ps 0.6 lc rgb "{colour}" dt {dash} pt {point} '
                + (f'title "{series_name(series)}"' if titles else "notitle")
                for i, series in drawn for colour, dash, point in [SERIES[series]]]
    low, high = min(o["n"] for o in objects), max(o["n"] for o in objects)
    ticks = ", ".join(f'"{n // 1024}k" {n}' if n % 1024 == 0 else f'"{n}" {n}' for n in by_length(objects))
    scores = f'[{low}:{high}] x * x * 4 / 2**20 with lines lw 1.2 lc rgb "#777777" dt 4'
    for terminal, name in (('svg size 1120,430 dynamic font "DejaVu Sans,12" background "#ffffff"', "attention.svg"),
                           ('pngcairo size 1680,645 font "DejaVu Sans,13" linewidth 1.5', "attention.png")):
        script = f"""
set terminal {terminal}
set output "{folder / name}"
set multiplot
set logscale xy
set grid lc rgb "#dddddd" lt 1
set border 3
set tics nomirror
set xtics ({ticks})
set format y "%g"
set xlabel "length in positions (1k = 1,024)"
set xrange [{low / 1.2}:{high * 1.2}]
set tmargin at screen 0.95
set bmargin at screen 0.15
set lmargin at screen 0.07
set rmargin at screen 0.355
set ylabel "time (ms)"
unset key
plot {", ".join(curves(2, False))}
set lmargin at screen 0.43
set rmargin at screen 0.715
set key at screen 0.995,0.93 right top Left reverse spacing 1.35 samplen 2.5
set ylabel "memory beside operands (MiB)"
plot {", ".join([*curves(3, True), scores + ' title "all scores in f32"'])}
unset multiplot
"""
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
        print(folder / name)


def report(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    if result["lengths"]:
        plot(result["lengths"], path.parent)
    text = markdown(result)
    (path.parent / "attention.md").write_text(text, encoding="utf-8")
    print(f"{path}, {path.parent / 'attention.md'}\n\n{text}", end="")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    report(pathlib.Path(sys.argv[1]))
