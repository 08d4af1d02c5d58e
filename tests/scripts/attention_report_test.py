#!/usr/bin/env python3
"""attention_report.py: ratios, shares and pictures from invented measurements.

usage: attention_report_test.py SCRIPTS
"""

import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, sys.argv.pop(1))
import attention_report  # noqa: E402


def exact(case, threads, ms, share, **peers_ms):
    return {"case": case, "threads": threads, "share": share, "compared_ms": ms,
            "peers_ms": {name.replace("_", " "): value for name, value in peers_ms.items()}}


def length(system, kind, n, ms, mib):
    return {"system": system, "kind": kind, "n": n, "ms": ms, "memory_mib": mib}


RESULT = {
    "processor": "P", "date": "2026-01-02", "peers": [{"peer": "torch 1"}, {"op": "a peer without a name"}],
    "exact": [exact("forward a", 1, 2.0, 0.875, PyTorch=5.0, ONNX_Runtime=3.0), exact("forward b", 1, 1.0, 0.5),
              exact("forward a", 2, 1.0, 0.75, PyTorch=4.0)],
    "decode": [{"b": 1, "heads": 32, "kv_heads": 8, "queries": 1, "keys": 512, "width": 64, "stored": "f32", "page": 16, "threads": 1,
                "of_read": 0.9, "compared_ms": 1.0, "peers_ms": {}}],
    "additive": [{"b": 1, "s": 2, "a": 3, "e": 4, "threads": 1, "lengths": lengths, "forward_ms": ms, "forward_backward_ms": 2 * ms}
                 for lengths, ms in (("ragged", 0.5), ("full", 0.25))] +
                [{"peer": "torch 1", "b": 1, "s": 2, "a": 3, "e": 4, "threads": 1, "forward_ms": 1.0, "forward_backward_ms": 5.0}],
    "lengths": [length("Regard", kind, n, n / 100 * (i + 1), 0.25 * (i + 1)) for n in (512, 1024, 4096)
                for i, kind in enumerate(attention_report.KINDS)] +
               [length("PyTorch", "exact", n, n / 10, 0) for n in (512, 1024)],
}


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="regard-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "attention.json").write_text(json.dumps(RESULT))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            attention_report.report(self.folder / "attention.json")
        self.lines = (self.folder / "attention.md").read_text().splitlines()

    def test_tables(self):
        for line in ("One run of `make compare-attention PEERS=DIR`, P, 2026-01-02; torch 1.",
                     "| forward a | 0.875 | 2.50 | 1.50 | 0.750 | 4.00 |  |",  # a peer's time over ours
                     "| forward b | 0.500 |  |  |  |  |  |",
                     "| 1 x 32/8 heads, 512 keys of 64, f32, pages of 16 | 0.900 |  |  |",
                     "| 1, 2, 3, 4 | 1 | 0.500 | 1.00 | 2.0 | 1.000 | 5.00 | 5.0 |",  # ragged, as the peer's sources
                     "| 1,024 | 10.2 | 20.5 | 30.7 | 41.0 | 51.2 | 102 |",
                     "| 4,096 | 41.0 | 81.9 | 123 | 164 | 205 |  |",
                     "| 512 | 0.250 | 0.500 | 0.750 | 1.00 | 1.25 | 0 |"):
            self.assertIn(line, self.lines)

    def test_numbers_of_the_picture(self):
        rows = [line.split("\t") for line in (self.folder / "attention.tsv").read_text().splitlines()]
        self.assertEqual(rows[0][1], "Regard, exact, ms")
        self.assertEqual([row[0] for row in rows[1:]], ["512", "1024", "4096"])
        self.assertEqual(rows[2][1:3], ["10.24", "0.25"])
        self.assertEqual(rows[3][11:13], ["nan", "nan"])  # PyTorch was not measured there

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is missing")
    def test_pictures(self):
        root = xml.etree.ElementTree.parse(self.folder / "attention.svg").getroot()
        words = "".join(root.itertext())
        for word in ("Regard, exact", "Regard, linear, causal", "PyTorch, exact", "all scores in f32", "time (ms)",
                     "memory beside operands (MiB)", "4k", "512"):
            self.assertIn(word, words)
        self.assertNotIn("ONNX Runtime", words)
        self.assertTrue((self.folder / "attention.png").read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main()
