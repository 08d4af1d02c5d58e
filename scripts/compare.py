#!/usr/bin/env python3
"""Regard beside its peers on the same work in one run, as ratios.

usage: compare.py --scripts DIR --data DIR [--steps N] [--threads N] [--only products,additive,sequences,training,decoding]
                  [--models bahdanau,transformer,gru]

  products  a product of 512 cubed on one thread, ours and oneDNN's: the peak that shares refer to
  additive  Bahdanau's attention step against additive_torch.py, one thread and two, forward and with backward
  sequences an LSTM over 1,024 steps and self-attention over 1,024 positions, forward and backward, against PyTorch
  training  `regard train` of bahdanau, transformer and gru against train_torch.py's rnnsearch, transformer and gru: the same
            data, vocabulary, sizes and batches; target tokens a second, share of the peak, peak memory, loss after equal steps
  decoding  greedy translation with the models just trained: target tokens a second beside those of training

DIR of --scripts holds additive_torch.py and train_torch.py, that of --data train.en.gz, train.de.gz, val.en.gz and val.de.gz.
"""

import argparse
import gzip
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
REGARD = ROOT / "build/release/bin/regard"
BENCH = ROOT / "build/bench/bin"


def run(*command, **more):
    """Standard output of a command and its peak memory in MiB."""
    wrapper = ("import resource, subprocess, sys\n"
               "status = subprocess.run(sys.argv[1:]).returncode\n"
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr)\n"
               "sys.exit(status)")
    done = subprocess.run([sys.executable, "-c", wrapper, *map(str, command)], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nfailed:\n{done.stderr}")
    lines = done.stderr.strip().split("\n")
    return done.stdout, "\n".join(lines[:-1]), int(lines[-1])


def objects(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def table(head, rows):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, ["-" * w for w in widths], *rows]:
        print("| " + " | ".join(str(cell).ljust(w) if i == 0 else str(cell).rjust(w)
                                for i, (cell, w) in enumerate(zip(row, widths))) + " |")
    print(flush=True)


def products():
    """The faster of our product and oneDNN's, 512 cubed, one thread: GFLOP/s."""
    out, _, _ = run(BENCH / "gemm_bench", 0.5)
    rows = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()[1:]]
    table(["GFLOP/s, one thread", "ours", "oneDNN", "ratio"], [[row[0], *row[-3:]] for row in rows])
    cube = next(line.split() for line in out.splitlines() if line.split()[-6:-3] == ["512", "512", "512"])
    return max(float(cube[-3]), float(cube[-2]))


def additive(scripts, seconds=0.3):
    """Prints the table; what was measured."""
    ours, rows, measured = objects(run(BENCH / "additive_bench", seconds)[0]), [], []
    for threads in (1, 2):
        theirs, _, _ = run(sys.executable, scripts / "additive_torch.py", threads)
        peer = {(o["b"], o["s"], o["a"], o["e"]): o for o in objects(theirs)}
        measured += [{**o, "threads": threads} for o in peer.values()]
        for o in ours:
            if o["threads"] != threads or o["lengths"] != "ragged":  # the peers' own lengths
                continue
            t = peer.get((o["b"], o["s"], o["a"], o["e"]))
            if t:
                rows.append([f"B {o['b']} S {o['s']} A {o['a']} E {o['e']}", threads,
                             *(cell for key in ("forward_ms", "forward_backward_ms")
                               for cell in (f"{o[key]:.4f}", f"{t[key]:.4f}", f"{t[key] / o[key]:.2f}"))])
    table(["additive step", "threads", "forward ms", "PyTorch", "ratio", "with backward ms", "PyTorch", "ratio"], rows)
    return ours + measured


def flops_per_target_token(work, vocabulary):
    """Products that bahdanau needs, forward and twice that backward, without padding; words are projected at every position."""
    lengths = []
    for name in ("train.en", "train.de"):
        lines = (work / name).read_text(encoding="utf-8").splitlines()[:5000]
        lengths.append(statistics.mean(len(vocabulary.encode(line)) + 1 for line in lines))
    S, T = lengths
    D = N = A = R = 256
    V = vocabulary.get_piece_size() + 1
    encoder = 2 * 3 * N * (D + N) + A * 2 * N
    decoder = A * N + 3 * N * (D + 2 * N + N) + R * (N + 2 * N + D) + V * R
    attention = S * (A + 2 * N)
    return 3 * 2 * (S / T * encoder + decoder + attention)


PEERS = {"bahdanau": "rnnsearch", "transformer": "transformer", "gru": "gru"}


def unpack(data, work):
    for part in ("train", "val"):
        for language in ("en", "de"):
            with gzip.open(data / f"{part}.{language}.gz") as file:
                (work / f"{part}.{language}").write_bytes(file.read())


def training(scripts, name, steps, threads, work, peak):
    """Prints the tables of one model; its speed."""
    import sentencepiece
    model = work / name
    options = ["--bidirectional"] if name == "gru" else []  # as the peer's
    _, _, our_memory = run(REGARD, "train", "--output", model, "--model", name, *options, "--source", work / "train.en", "--target",
                           work / "train.de", "--dev-source", work / "val.en", "--dev-target", work / "val.de", "--batch-tokens",
                           3000, "--steps", steps, "--threads", threads, "--seed", 1, "--quiet")
    theirs, _, their_memory = run(sys.executable, scripts / "train_torch.py", PEERS[name], model / "source.spm",
                                  *(work / f"{part}.{language}" for part in ("train", "val") for language in ("en", "de")),
                                  "--steps", steps, "--minutes", 600, "--threads", threads)
    ours, torch = objects((model / "train.jsonl").read_text()), objects(theirs)
    our_speed = statistics.harmonic_mean([o["target_tokens_per_s"] for o in ours if "target_tokens_per_s" in o])
    their_speed = torch[-1]["target_tokens_per_s"]
    our_dev, their_dev = [o["dev_loss"] for o in ours if "dev_loss" in o][-1], torch[-1]["dev_loss"]
    rows = [["target tokens a second", f"{our_speed:.0f}", f"{their_speed}", f"{our_speed / their_speed:.2f}"],
            ["peak memory, MiB", our_memory, their_memory, f"{our_memory / their_memory:.2f}"],
            ["development loss, nats a token", f"{our_dev:.3f}", f"{their_dev:.3f}", f"{our_dev / their_dev:.3f}"]]
    if peak and name == "bahdanau":
        vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(model / "source.spm"))
        flops = flops_per_target_token(work, vocabulary)
        rows.insert(1, ["share of the product peak", *(f"{speed * flops / (threads * peak * 1e9):.2f}"
                                                       for speed in (our_speed, their_speed)), ""])
    table([f"training of {name}, {steps} steps, {threads} threads", "Regard", "PyTorch", "ratio"], rows)
    curve = {o["steps"]: o["loss"] for o in torch if "loss" in o}
    table(["training loss, mean of the last 50 steps", "Regard", "PyTorch"],
          [[f"step {o['step']}", f"{o['loss']:.3f}", f"{curve[o['step']]:.3f}"] for o in ours if o["step"] in curve and "loss" in o])
    return our_speed


def sequences(seconds=1.0):
    rows = []
    for threads in (1, 2):
        ours = {o["case"]: o for o in objects(run(BENCH / "sequence_bench", threads, seconds)[0])}
        theirs = {o["case"]: o for o in objects(run(sys.executable, ROOT / "scripts/sequence_torch.py", threads, seconds)[0])}
        rows += [[case, threads, *(cell for key in ("forward_ms", "forward_backward_ms")
                                   for cell in (f"{o[key]:.2f}", f"{theirs[case][key]:.2f}", f"{theirs[case][key] / o[key]:.2f}"))]
                 for case, o in ours.items()]
    table(["1,024 steps", "threads", "forward ms", "PyTorch", "ratio", "with backward ms", "PyTorch", "ratio"], rows)


def decoding(work, name, threads, training_speed):
    source = (work / "val.en").read_bytes().splitlines(keepends=True)[:1000]
    rows = []
    for beam in (1, 4):
        speeds = []
        for _ in range(3):
            _, log, _ = run(REGARD, "translate", work / name, "--beam-size", beam, "--threads", threads,
                            input=b"".join(source).decode())
            speeds.append(float(re.findall(r"([\d.]+) tokens/s", log)[-1]))
        rows.append([f"beam {beam}" if beam > 1 else "greedy", f"{max(speeds):.0f}",
                     f"{max(speeds) / training_speed:.2f}" if training_speed else ""])
    table([f"decoding 1,000 lines, {name}", "target tokens a second", "to training"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="products,additive,sequences,training,decoding")
    parser.add_argument("--models", default=",".join(PEERS))
    arguments = parser.parse_args()
    parts, peak = arguments.only.split(","), None
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if "products" in parts:
            peak = products()
        if "additive" in parts:
            additive(arguments.scripts)
        if "sequences" in parts:
            sequences()
        unpack(arguments.data, work)
        for name in arguments.models.split(",") if "training" in parts else []:
            speed = training(arguments.scripts, name, arguments.steps, arguments.threads, work, peak)
            if "decoding" in parts:
                decoding(work, name, arguments.threads, speed)


if __name__ == "__main__":
    main()
