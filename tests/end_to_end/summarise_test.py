#!/usr/bin/env python3
"""Summaries, as a user trains a model for them and asks it.

usage: summarise_test.py PROGRAM
"""

import json
import pathlib
import random
import tempfile
import unittest

from support import run

WORDS = "a b c d e f g h i j".split()


def texts(count, seed):
    """Ten words, and what is said of them: the two that follow "so"."""
    choose = random.Random(seed)
    for _ in range(count):
        words = [choose.choice(WORDS) for _ in range(9)]
        at = choose.randrange(0, 8)
        yield " ".join(words[:at] + ["so"] + words[at:]), " ".join(words[at:at + 2])


class Summarise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="regard-test-")
        cls.root = pathlib.Path(cls.folder.name)
        for part, count in (("train", 3000), ("dev", 100)):
            pairs = list(texts(count, part))
            for side in range(2):
                (cls.root / f"{part}.{side}").write_text("".join(pair[side] + "\n" for pair in pairs))
        cls.model = cls.root / "m"
        cls.train = ["train", "--model", "intra-decoder", "--source", cls.root / "train.0", "--target", cls.root / "train.1",
                     "--dev-source", cls.root / "dev.0", "--dev-target", cls.root / "dev.1", "--vocabulary", "words",
                     "--width", 24, "--embedding", 24, "--batch-tokens", 600, "--learning-rate", "6e-3", "--warm-up", 50,
                     "--longest", 11, "--threads", 1, "--quiet"]
        run(*cls.train, "--output", cls.model, "--steps", 500)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def summaries(self, text, *options):
        return run("summarise", self.model, *options, text=text).stdout.decode()

    def test_it_finds_what_matters(self):
        out = self.root / "out"
        out.write_text(self.summaries((self.root / "dev.0").read_bytes(), "--quiet"))
        scores = json.loads(run("evaluate", "--hypothesis", out, "--reference", self.root / "dev.1", "--metric",
                                "rouge,repetition", "--json").stdout)
        self.assertGreater(scores["rouge"]["rouge2"], 90)
        self.assertEqual(scores["repetition"]["total"], 0)  # two words each

    def test_a_line_for_a_line(self):
        self.assertEqual(self.summaries(b"so a b c d\n\n  \na so d e\n").split("\n")[1:], ["", "  ", "d e", ""])

    def test_a_long_text_is_summarised_in_parts(self):
        done = run("summarise", self.model, text=b"a b c so d e f g h i b c d so e f g h i j\n")
        self.assertEqual(done.stdout, b"d e e f\n")
        self.assertRegex(done.stderr.decode(), r"warning: line 1 has 20 pieces, .*; summarised in 2 parts")

    def test_lengths_and_repetition(self):
        self.assertEqual(self.summaries(b"a so d e\n", "--max-length", 1, "--quiet"), "d\n")
        one = json.loads(self.summaries(b"a so d e\n", "--no-repeat-trigrams", "--json"))
        self.assertEqual((one["text"], one["complete"]), ("d e", True))

    def test_its_options_go_both_ways_into_the_directory(self):
        other = self.root / "other"
        run(*self.train, "--output", other, "--steps", 1, "--no-intra-attention", "--no-pointer", "--separate-embeddings")
        config = json.loads((other / "config.json").read_text())
        self.assertEqual([config[name] for name in ("intra_attention", "pointer", "separate_embeddings", "longest")],
                         [False, False, True, 11])
        config = json.loads((self.model / "config.json").read_text())
        self.assertEqual([config[name] for name in ("intra_attention", "pointer", "separate_embeddings")], [True, True, False])
        error = run("train", "--model", "gru", "--no-pointer", "--source", "a", "--target", "b", "--output", self.root / "x",
                    code=2).stderr.decode()
        self.assertIn("--no-pointer says nothing to --model gru", error)


if __name__ == "__main__":
    unittest.main()
