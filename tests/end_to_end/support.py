"""What the end-to-end tests share: the command, and a small model that it trained.

Each test file is called with the path of the program, and with unittest's arguments after it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))


def start(*arguments, **options):
    """A running command; its standard error can be read."""
    return subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, **options)


def run(*arguments, text=b"", code=0, stdout_path=None, **options):
    """The command, run to its end, which must be `code`. Its output is kept, or goes to `stdout_path`."""
    with open(stdout_path or os.devnull, "wb") as file:
        if text is not None:
            options["input"] = text
        done = subprocess.run([PROGRAM, *map(str, arguments)], stderr=subprocess.PIPE, timeout=300,
                              stdout=file if stdout_path else subprocess.PIPE, **options)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit {done.returncode}, expected {code}\n{done.stderr.decode()}")
    return done


class Case(unittest.TestCase):
    """Tests with a folder of their own, toy text in c/ and the options to train on it."""

    vocabulary = ["--vocabulary-size", 400]

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="regard-test-")
        cls.root = pathlib.Path(cls.folder.name)
        run("corpus", "--toy", 2000, "--from", "en", "--to", "fr", "--output", cls.root / "c", "--dev", 50, "--test", 50)
        cls.text = ["--source", cls.root / "c/train.en", "--target", cls.root / "c/train.fr",
                    "--dev-source", cls.root / "c/dev.en", "--dev-target", cls.root / "c/dev.fr"]
        cls.sizes = [*cls.vocabulary, "--width", 32, "--embedding", 32, "--alignment-width", 32, "--readout-width", 32,
                     "--batch-tokens", 300, "--evaluate-every", 40, "--learning-rate", "5e-3", "--warm-up", 50,
                     "--threads", 1, "--quiet"]
        cls.train = ["train", *cls.text, *cls.sizes]
        cls.test = (cls.root / "c/test.en").read_bytes()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def train_model(cls, name="m", steps=120):
        run(*cls.train, "--output", cls.root / name, "--steps", steps)
        return cls.root / name

    def file(self, name, content):
        """A file in the folder, given as bytes."""
        path = self.root / name
        path.write_bytes(content)
        return path

    def refused(self, code, *arguments, says=(), text=b"", **options):
        """The command must end with `code`, no result, and one line of error that holds all of `says`."""
        done = run(*arguments, text=text, code=code, **options)
        error = done.stderr.decode()
        self.assertEqual(done.stdout, b"", arguments)
        self.assertTrue(error.startswith("regard: "), error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertLess(len(error), 600, error)
        for part in says if isinstance(says, (list, tuple)) else [says]:
            self.assertIn(str(part), error)
        return error


def reports(directory):
    """The objects of train.jsonl."""
    return [json.loads(line) for line in (directory / "train.jsonl").read_text().splitlines()]
