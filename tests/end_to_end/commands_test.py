#!/usr/bin/env python3
"""The verbs as a user runs them on a model that was just trained, each by itself and one after the other.

usage: commands_test.py PROGRAM
"""

import json
import pathlib
import re
import unittest

from support import Case, reports, run

VERBS = ["corpus", "train", "translate", "summarise", "generate", "score", "align", "evaluate", "entail", "view", "report",
         "bench"]


class Commands(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.train_model()
        cls.hypothesis = cls.root / "hypothesis"
        cls.hypothesis.write_bytes(run("translate", cls.model, "--quiet", text=cls.test).stdout)

    def test_version_is_the_projects(self):
        cmake = (pathlib.Path(__file__).parents[2] / "CMakeLists.txt").read_text()
        version = re.search(r"project\(regard VERSION (\S+)", cmake)[1]
        self.assertEqual(run("--version").stdout.decode(), f"regard {version}\n")

    def test_log_tells_the_loss_falling(self):
        log = reports(self.model)
        self.assertEqual(log[-1]["step"], 120)
        losses = [r["dev_loss"] for r in log if "dev_loss" in r]
        self.assertLess(losses[-1], losses[0] - 0.3)

    def test_batch_and_threads_do_not_matter(self):
        """Number 5 of the cases: the same text and score alone and in any batch."""
        together = run("translate", self.model, "--quiet", "--threads", 2, "--nbest", 1, text=self.test).stdout
        pairs = run("translate", self.model, "--quiet", "--batch-sentences", 2, "--nbest", 1, text=self.test).stdout
        self.assertEqual(pairs, together)
        for i, line in list(enumerate(self.test.splitlines()))[:5]:
            alone = run("translate", self.model, "--quiet", "--threads", 1, "--nbest", 1, text=line + b"\n").stdout
            self.assertEqual(alone.split(b" ||| ")[1:], together.splitlines(True)[i].split(b" ||| ")[1:])

    def test_n_best_is_sorted_and_begins_with_the_best(self):
        """Numbers 6 and 7."""
        best = run("translate", self.model, "--quiet", text=self.test).stdout.splitlines()
        n_best = [line.split(b" ||| ") for line in
                  run("translate", self.model, "--quiet", "--nbest", 4, text=self.test).stdout.splitlines()]
        for i, line in enumerate(best):
            mine = [entry for entry in n_best if int(entry[0]) == i]
            self.assertEqual(mine[0][1], line)
            scores = [float(entry[2]) for entry in mine]
            self.assertEqual(scores, sorted(scores, reverse=True))

    def test_alignments_have_a_row_for_every_word(self):
        """Number 8: one row for each output word, none for the end symbol but </s> in the soft form."""
        plain = self.hypothesis.read_text().splitlines()
        hard = run("translate", self.model, "--quiet", "--alignment", "pharaoh", text=self.test).stdout.decode()
        soft = run("translate", self.model, "--quiet", "--alignment", "soft", text=self.test).stdout.decode()
        for source, text, links, rows in zip(self.test.decode().splitlines(), plain, hard.splitlines(),
                                             soft.splitlines()):
            words, length = len(text.split()), len(source.split())
            self.assertEqual(links.split(" ||| ")[0], text)
            pairs = [tuple(map(int, link.split("-"))) for link in links.split(" ||| ")[1].split()]
            self.assertEqual([j for _, j in pairs], list(range(words)))
            self.assertTrue(all(i < length for i, _ in pairs), links)
            matrix = [[float(w) for w in row.split()] for row in rows.split(" ||| ")[1].split(" ; ")]
            self.assertEqual(len(matrix), words + 1)  # the end symbol's row is last
            for row in matrix:
                self.assertEqual(len(row), length + 1)
                self.assertAlmostEqual(sum(row), 1, delta=0.01)

    def test_score_align_evaluate_view_report(self):
        scores = run("score", self.model, "--source", self.root / "c/test.en", "--target", self.hypothesis).stdout.split()
        self.assertEqual(len(scores), 50)
        self.assertTrue(all(float(s) < 0 for s in scores))
        links = run("align", self.model, "--source", self.root / "c/test.en", "--target", self.hypothesis).stdout
        self.assertEqual(links.count(b"\n"), 50)
        for link, source, target in zip(links.splitlines(), self.test.splitlines(),
                                        self.hypothesis.read_bytes().splitlines()):
            for pair in link.split():
                i, j = map(int, pair.split(b"-"))
                self.assertLess(i, len(source.split()))
                self.assertLess(j, len(target.split()))
        drawn = run("view", self.model, "the red car").stdout.decode()
        title = run("translate", self.model, text=b"the red car\n").stdout.decode().strip()
        self.assertEqual(drawn.splitlines()[0], title)
        for word in [*title.split(), "</s>"]:
            self.assertIn(f"\n{word} ", drawn)
        for kind, begin in (("svg", b"<svg"), ("html", b"<!")):
            run("view", self.model, "the red car", "--output", self.root / f"v.{kind}")
            self.assertTrue((self.root / f"v.{kind}").read_bytes().lstrip().lower().startswith(begin))
        run("report", self.model, "--output", self.root / "r.html", "--source", self.root / "c/test.en")
        self.assertIn(b"<svg", (self.root / "r.html").read_bytes())

    def test_json_of_every_verb(self):
        pair = ["--source", self.root / "c/test.en", "--target", self.root / "c/test.fr"]
        links = self.file("links", b"0-0 1-1\n")
        one = {
            "corpus": ["corpus", "--toy", 50, "--from", "en", "--to", "fr", "--output", self.root / "j"],
            "train": [*self.train, "--output", self.root / "jm", "--steps", 3],
            "evaluate": ["evaluate", "--hypothesis", self.hypothesis, "--reference", self.root / "c/test.fr",
                         "--metric", "bleu,chrf,chrf++,accuracy"],
            "lengths": ["evaluate", "--hypothesis", self.hypothesis, "--reference", self.root / "c/test.fr",
                        "--by-length", self.root / "c/test.en", "--length-bands", "2,4"],
            "perplexity": ["evaluate", self.model, *pair],
            "aer": ["evaluate", "--alignment", links, "--gold", links],
            "view": ["view", self.model, "the red car"],
            "report": ["report", self.model, "--output", self.root / "j.html", *pair],
        }
        keys = {"corpus": "distinct", "train": "ending", "evaluate": "chrf", "lengths": "by_length", "perplexity": "perplexity", "aer": "aer",
                "view": "weights", "report": "matrices"}
        for name, arguments in one.items():
            with self.subTest(name):
                out = run(*arguments, "--json").stdout.decode()
                self.assertEqual(out.count("\n"), 1)
                self.assertIn(keys[name], json.loads(out))
        many = {
            "translate": ["translate", self.model, "--nbest", 2, "--alignment", "soft"],
            "translate --format": ["translate", self.model, "--format", "json", "--alignment", "pharaoh"],
            "score": ["score", self.model, *pair],
            "align": ["align", self.model, *pair],
        }
        for name, arguments in many.items():
            with self.subTest(name):
                out = run(*arguments, "--json", text=self.test).stdout.decode()
                self.assertEqual(len([json.loads(line) for line in out.splitlines()]), 50)
        odd = run("translate", self.model, "--json", text=b"\xff\xfe \"\\\n\n\x00\x01\n").stdout.decode()
        self.assertEqual(len([json.loads(line) for line in odd.splitlines()]), 3)

    def test_help_of_every_verb(self):
        top = run("--help").stdout.decode()
        for verb in VERBS:
            self.assertIn(f"\n  {verb} ", top)
            text = run(verb, "--help").stdout.decode()
            self.assertIn(f"Usage: regard {verb}", text)
            self.assertIn(f"\n  regard {verb} ", text)  # an example
            for wrong in (" in [", "INT", "FLOAT", "NONNEGATIVE", "POSITIVE"):
                self.assertNotIn(wrong, text)
            self.assertLessEqual(max(map(len, (top + text).splitlines())), 104, verb)
        self.assertIn("Exit codes", top)

    def test_a_run_ends_when_its_reader_goes_away(self):
        done = run("translate", self.model, "--quiet", text=self.test, code=4, stdout_path="/dev/full")
        self.assertIn(b"No space left", done.stderr)


class Unknowns(Case):
    vocabulary = ["--vocabulary", "words", "--vocabulary-size", 60]

    def test_unknown_words_are_written_as_they_stood(self):
        """Number 10: with --replace-unknown the surface form of the source word, never <unk>."""
        model = self.train_model("words", 200)
        text = "the Zyxwvü-99 car\nthe red Qqq\n".encode() + self.test
        plain = run("translate", model, "--quiet", text=text).stdout.decode()
        self.assertIn("<unk>", plain)
        source = text.decode().splitlines()
        replaced = run("translate", model, "--quiet", "--replace-unknown", text=text).stdout.decode()
        self.assertNotIn("<unk>", replaced)
        for before, after, line in zip(plain.splitlines(), replaced.splitlines(), source):
            before, after = before.split(" "), after.split(" ")
            self.assertEqual(len(before), len(after))
            for old, new in zip(before, after):
                self.assertTrue(new in line.split(" ") if old == "<unk>" else new == old, (line, before, after))


if __name__ == "__main__":
    unittest.main()
