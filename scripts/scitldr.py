#!/usr/bin/env python3
"""SciTLDR (Cachola et al. 2020) as line files, for docs/models.md's measurement of `intra-decoder`.

usage: scitldr.py FOLDER OUTPUT     FOLDER holds train, dev and test.jsonl.gz, or .jsonl

Writes OUTPUT/{train,dev,test}.source, an abstract a line; .target, its first summary; .lead, its first sentence, the baseline;
and test.target2, 3, ...: further summaries, where an abstract has fewer the first again, which changes no best score.
"""

import gzip
import json
import pathlib
import sys


def papers(folder, part):
    packed = folder / f"{part}.jsonl.gz"
    file = gzip.open(packed, "rt", encoding="utf-8") if packed.exists() else open(folder / f"{part}.jsonl", encoding="utf-8")
    with file:
        return [json.loads(line) for line in file]


def line(text):
    return " ".join(text.split())


def write(path, lines):
    path.write_text("".join(line(text) + "\n" for text in lines), encoding="utf-8")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n")[2])
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        rows = papers(folder, part)
        write(output / f"{part}.source", [" ".join(row["source"]) for row in rows])
        write(output / f"{part}.lead", [row["source"][0] for row in rows])
        write(output / f"{part}.target", [row["target"][0] for row in rows])
        for n in range(1, max(len(row["target"]) for row in rows)):
            write(output / f"{part}.target{n + 1}", [row["target"][n if n < len(row["target"]) else 0] for row in rows])


if __name__ == "__main__":
    main()
