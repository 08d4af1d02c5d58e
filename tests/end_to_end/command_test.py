#!/usr/bin/env python3
"""Drives the command as a user would: corpus, train, kill and resume, translate, score, align, evaluate, view, report.

usage: command_test.py PROGRAM
"""

import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)


def run(*arguments, text=None, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=text, capture_output=True, timeout=300)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit {done.returncode}, expected {code}\n{done.stderr.decode()}")
    return done


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        out = run("corpus", "--toy", 2000, "--from", "en", "--to", "fr", "--output", cls.root / "c", "--dev", 50, "--test", 50)
        assert b"distinct pairs" in out.stdout, out.stdout
        cls.train = ["train", "--source", cls.root / "c/train.en", "--target", cls.root / "c/train.fr",
                     "--dev-source", cls.root / "c/dev.en", "--dev-target", cls.root / "c/dev.fr", "--vocabulary-size", 400,
                     "--width", 32, "--embedding", 32, "--batch-tokens", 300, "--evaluate-every", 40, "--quiet"]
        run(*cls.train, "--output", cls.root / "m", "--steps", 120, "--learning-rate", "5e-3", "--warm-up", 50)
        cls.test = (cls.root / "c/test.en").read_bytes()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_version_is_the_projects(self):
        cmake = (pathlib.Path(__file__).parents[2] / "CMakeLists.txt").read_text()
        version = re.search(r"project\(regard VERSION (\S+)", cmake)[1]
        self.assertEqual(run("--version").stdout.decode(), f"regard {version}\n")

    def test_log_tells_the_loss_falling(self):
        reports = [json.loads(line) for line in (self.root / "m/train.jsonl").read_text().splitlines()]
        self.assertEqual(reports[-1]["step"], 120)
        losses = [r["dev_loss"] for r in reports if "dev_loss" in r]
        self.assertLess(losses[-1], losses[0] - 0.3)

    def test_lines_in_lines_out(self):
        text = "the red car\n\n \n\u00a0\n\u3000\n\t\nthe\u2028car\nh\na\x00b\nlast".encode()
        out = run("translate", self.root / "m", "--quiet", text=text).stdout.decode().split("\n")
        self.assertEqual(len(out), 11)
        self.assertEqual(out[1:6], ["", " ", "\u00a0", "\u3000", "\t"])
        self.assertEqual(out[10], "")

    def test_a_line_of_1200_words_and_its_neighbours(self):
        text = b"the red car\n" + b"the red car " * 400 + b"\nthe car\n"
        out = run("translate", self.root / "m", "--quiet", "--max-length", 40, text=text).stdout
        self.assertEqual(out.count(b"\n"), 3)

    def test_batch_and_threads_do_not_matter(self):
        together = run("translate", self.root / "m", "--quiet", "--threads", 2, "--nbest", 1, text=self.test).stdout
        for i, line in list(enumerate(self.test.splitlines()))[:5]:
            alone = run("translate", self.root / "m", "--quiet", "--threads", 1, "--nbest", 1, text=line + b"\n").stdout
            self.assertEqual(alone.split(b" ||| ")[1:], together.splitlines(True)[i].split(b" ||| ")[1:])

    def test_n_best_is_sorted_and_begins_with_the_best(self):
        best = run("translate", self.root / "m", "--quiet", text=self.test).stdout.splitlines()
        n_best = [line.split(b" ||| ") for line in
                  run("translate", self.root / "m", "--quiet", "--nbest", 4, text=self.test).stdout.splitlines()]
        for i, line in enumerate(best):
            mine = [entry for entry in n_best if int(entry[0]) == i]
            self.assertEqual(mine[0][1], line)
            scores = [float(entry[2]) for entry in mine]
            self.assertEqual(scores, sorted(scores, reverse=True))

    def test_score_align_evaluate_view_report(self):
        hypothesis = self.root / "hyp"
        hypothesis.write_bytes(run("translate", self.root / "m", "--quiet", text=self.test).stdout)
        scores = run("score", self.root / "m", "--source", self.root / "c/test.en", "--target", hypothesis).stdout.split()
        self.assertEqual(len(scores), 50)
        self.assertTrue(all(float(s) < 0 for s in scores))
        links = run("align", self.root / "m", "--source", self.root / "c/test.en", "--target", hypothesis).stdout.splitlines()
        self.assertEqual(len(links), 50)
        for link, source, target in zip(links, self.test.splitlines(), hypothesis.read_bytes().splitlines()):
            for pair in link.split():
                i, j = map(int, pair.split(b"-"))
                self.assertLess(i, len(source.split()))
                self.assertLess(j, len(target.split()))
        result = json.loads(run("evaluate", "--json", "--hypothesis", hypothesis, "--reference", self.root / "c/test.fr").stdout)
        self.assertGreater(result["chrf"]["score"], 10)
        picture = run("view", self.root / "m", "the red car").stdout.decode()
        for word in run("translate", self.root / "m", "--quiet", text=b"the red car\n").stdout.decode().split():
            self.assertIn(word, picture)
        for kind, start in (("svg", b"<svg"), ("html", b"<!")):
            run("view", self.root / "m", "the red car", "--output", self.root / f"v.{kind}")
            self.assertTrue((self.root / f"v.{kind}").read_bytes().lstrip().lower().startswith(start))
        run("report", self.root / "m", "--output", self.root / "r.html", "--source", self.root / "c/test.en")
        self.assertIn(b"<svg", (self.root / "r.html").read_bytes())

    def test_mistakes_end_with_their_code_and_one_line(self):
        for arguments, code in ((["translate", self.root / "none"], 4), (["translate"], 2), (["nonsense"], 2),
                                ([*self.train, "--output", self.root / "m", "--steps", 5], 2),
                                (["evaluate", "--hypothesis", self.root / "none", "--reference", self.root / "none"], 4),
                                (["view", self.root / "m", "x", "--output", "x.gif"], 2)):
            error = run(*arguments, text=b"", code=code).stderr
            self.assertTrue(error.startswith(b"regard: "), error)
            self.assertEqual(error.count(b"\n"), 1, error)

    def test_killed_at_random_moments_it_always_resumes(self):
        output = self.root / "killed"
        command = [*self.train, "--output", output, "--steps", 100000, "--save-every", 0.05]
        random.seed(3)
        resume = []
        for _ in range(8):
            process = subprocess.Popen([PROGRAM, *map(str, command), *resume], stderr=subprocess.PIPE)
            deadline = time.time() + 60
            while not (output / "state/state.safetensors").exists() and time.time() < deadline:
                time.sleep(0.01)
            time.sleep(0.1 + 0.4 * random.random())
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            process.kill()
            process.wait()
            process.stderr.close()
            resume = ["--resume"]
            run("translate", output, "--quiet", "--beam-size", 1, "--max-length", 5, text=b"the red car\n")
        process = subprocess.Popen([PROGRAM, *map(str, command), "--resume"], stderr=subprocess.PIPE)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, error)
        self.assertIn(b"--resume", error)


if __name__ == "__main__":
    unittest.main()
