#!/usr/bin/env python3
"""A classifier of pairs, as a user trains and asks it.

usage: entail_test.py PROGRAM
"""

import json
import pathlib
import tempfile
import unittest

from support import run

WORDS = "a b c d e f".split()


def pairs():
    """Premise, hypothesis and label of every two words."""
    for x in WORDS:
        for y in WORDS:
            yield f"{x} {y}", f"{x} {y}", "entailment"
            yield f"{x} {y}", f"z {x}", "neutral"
            yield f"{x} {y}", f"no {x}", "contradiction"


class Entail(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="regard-test-")
        cls.root = pathlib.Path(cls.folder.name)
        cls.data = cls.root / "pairs.tsv"
        cls.data.write_text("".join("\t".join(pair) + "\n" for pair in pairs()))
        cls.model = cls.root / "m"
        done = run("train", "--model", "decomposable", "--data", cls.data, "--dev-data", cls.data, "--output", cls.model,
                   "--vocabulary", "words", "--width", 32, "--embedding", 32, "--batch-tokens", 200, "--steps", 200,
                   "--learning-rate", "5e-3", "--warm-up", 20, "--threads", 1)
        assert b"accuracy 100.0 %" in done.stderr, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_label_and_its_probability_for_every_line(self):
        out = run("entail", self.model, text=b"a b\ta b\n\nc d\tno c\r\ne a\tz e\tignored\tlabel\n").stdout.decode()
        lines = out.split("\n")
        self.assertEqual([line.split("\t")[0] for line in lines], ["entailment", "", "contradiction", "neutral", ""])
        for line in filter(None, lines):
            self.assertGreater(float(line.split("\t")[1]), 0.5)

    def test_json_tells_all_probabilities_and_the_attention(self):
        one = json.loads(run("entail", self.model, "--json", text=b"a b\tno a\n").stdout)
        self.assertEqual(one["label"], "contradiction")
        self.assertAlmostEqual(sum(one["probabilities"].values()), 1, delta=1e-6)
        self.assertEqual((one["premise"], one["hypothesis"]), (["a", "b", "</s>"], ["no", "a", "</s>"]))
        for row in one["attention"]:
            self.assertAlmostEqual(sum(row), 1, delta=1e-5)

    def test_accuracy_and_confusion(self):
        text = run("entail", self.model, "--test", self.data).stdout.decode()
        self.assertIn("accuracy = 100.00 % of 108 pairs", text)
        result = json.loads(run("entail", self.model, "--test", self.data, "--json").stdout)
        self.assertEqual(result["accuracy"], 1)
        self.assertEqual(result["confusion"]["neutral"], {"contradiction": 0, "entailment": 0, "neutral": 36})
        binary = self.root / "binary.tsv"
        binary.write_text("a b\ta b\tentailment\na b\tno a\tnot at all\n")
        result = json.loads(run("entail", self.model, "--test", binary, "--binary", "entailment", "--json").stdout)
        self.assertEqual((result["accuracy"], result["pairs"]), (1, 2))
        self.assertIn(b"binary.tsv:2: the label", run("entail", self.model, "--test", binary, code=3).stderr)

    def test_what_is_cut_is_told(self):
        done = run("entail", self.model, text=b"a b\tb\n" + b"a " * 500 + b"\tb\n")
        self.assertEqual(done.stdout.count(b"\n"), 2)
        self.assertIn(b"1 pair has a side of more than 128 pieces", done.stderr)
        self.assertIn(b"the first is line 2", done.stderr)
        self.assertEqual(run("entail", self.model, "--quiet", text=b"a " * 500 + b"\tb\n").stderr, b"")

    def test_the_matrix_of_a_pair(self):
        text = run("view", self.model, "a b", "--target", "no a").stdout.decode()
        self.assertIn("contradiction", text.splitlines()[0])
        matrix = json.loads(run("view", self.model, "a b", "--target", "no a", "--json").stdout)
        self.assertEqual((matrix["premise"], matrix["hypothesis"]), (["a", "b", "</s>"], ["no", "a", "</s>"]))
        self.assertIn(b"--target", run("view", self.model, "a b", code=2).stderr)

    def test_what_does_not_fit_is_refused(self):
        self.assertIn(b"regard entail", run("translate", self.model, code=2).stderr)
        done = run("entail", self.model, text=b"a\tb\nabc\n", code=3)
        self.assertIn(b"standard input:2: has no tab", done.stderr)
        self.assertEqual(done.stdout.count(b"\n"), 1)  # what stands before it is answered
        bad = self.root / "bad.tsv"
        bad.write_text("a\tb\tneutral\na\tb\n")
        empty = self.root / "empty.tsv"
        empty.write_text("\n")
        train = ["train", "--output", self.root / "n", "--steps", 1, "--vocabulary", "words"]
        for message, code, options in [
                (b"bad.tsv:2: has no label", 3, ["--model", "decomposable", "--data", bad]),
                (b"premise TAB hypothesis TAB label", 2, ["--model", "decomposable", "--source", bad, "--target", bad]),
                (b"--guided-alignment says nothing here", 2,
                 ["--model", "decomposable", "--data", bad, "--guided-alignment", bad]),
                (b"empty.tsv: has no pairs", 3, ["--model", "decomposable", "--data", self.data, "--dev-data", empty]),
                (b"--dev-data and --dev-fraction", 2, ["--model", "decomposable", "--data", self.data, "--dev-data", self.data,
                                                       "--dev-fraction", 0.1]),
                (b"--dev-data", 2, ["--source", bad, "--target", bad, "--dev-data", bad])]:
            self.assertIn(message, run(*train, *options, code=code).stderr)
        self.assertFalse((self.root / "n").exists())


if __name__ == "__main__":
    unittest.main()
