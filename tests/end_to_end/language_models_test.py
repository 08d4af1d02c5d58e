#!/usr/bin/env python3
"""Language models as a user runs them: text in, perplexity and more text out.

usage: language_models_test.py PROGRAM
"""

import json
import math
import unittest

from support import Case, reports, run

MODELS = ["rnn-lm", "lstm-lm", "gru-lm", "lstmn-lm", "transformer-lm"]


class LanguageModels(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = cls.root / "c/train.en"
        cls.options = ["--dev-fraction", "0.05", "--batch-tokens", 400, "--width", 32, "--evaluate-every", 40, "--learning-rate", "5e-3", "--warm-up", 30, "--threads", 1, "--quiet"]
        cls.recurrent = ["--embedding", 32]
        cls.model = cls.train_text("m", "lstm-lm", *cls.recurrent)

    @classmethod
    def training(cls, name, model, *options, steps=120, vocabulary="characters", longest=40):
        return ["train", "--model", model, "--text", cls.path, *cls.options, *options, "--vocabulary", vocabulary, "--longest", longest,
                "--output", cls.root / name, "--steps", steps]

    @classmethod
    def train_text(cls, name, *arguments, **more):
        run(*cls.training(name, *arguments, **more))
        return cls.root / name

    def test_every_model_learns_and_writes(self):
        lines = self.path.read_text().splitlines()
        uniform = math.log2(len(set("".join(lines))) + 1)
        for model in MODELS:
            with self.subTest(model):
                options = ["--heads", 4, "--feed-forward", 48] if model == "transformer-lm" else self.recurrent
                directory = self.train_text(f"m-{model}", model, *options)
                log = [r["dev_loss"] for r in reports(directory) if "dev_loss" in r]
                self.assertLess(log[-1], log[0] - 0.1)
                out = json.loads(run("evaluate", directory, "--text", self.root / "c/test.en", "--json").stdout)
                self.assertLess(out["bits_per_character"], uniform - 1)
                text = run("generate", directory, "--quiet", "--max-length", 20, text=b"the \n\n").stdout.decode()
                first, second = text.split("\n")[:2]
                self.assertTrue(first.startswith("the "))
                self.assertEqual(len(first.replace("\\n", "n")), 24)
                self.assertEqual(len(second.replace("\\n", "n")), 20)

    def test_a_text_looks_back_at_itself(self):
        model = self.train_text("lstmn", "lstmn-lm", *self.recurrent, steps=20)
        matrix = json.loads(run("view", model, "the car", "--json").stdout)
        self.assertEqual(matrix["source"], ["<s>", *"the car"])
        self.assertEqual(matrix["target"], matrix["source"])
        for t, row in enumerate(matrix["weights"]):
            self.assertAlmostEqual(sum(row[:t]), float(t > 0), places=5)
            self.assertEqual(sum(row[t:]), 0)
        self.refused(2, "view", model, "the car", "--target", "x", says="--target")
        run("report", model, "--output", self.root / "r.html")
        self.assertIn("A language model", (self.root / "r.html").read_text())

    def test_bits_are_of_the_files_characters_and_bytes(self):
        text = self.file("t", "the red car\nthe cär\n".encode())
        out = json.loads(run("evaluate", self.model, "--text", text, "--json").stdout)
        self.assertEqual([out["characters"], out["bytes"], out["tokens"]], [20, 21, 20])
        self.assertEqual(out["unknown"], 1)  # the umlaut
        bits = out["nats_per_token"] * out["tokens"] / math.log(2)
        self.assertAlmostEqual(out["bits_per_character"], bits / 20, places=9)
        self.assertAlmostEqual(out["bits_per_byte"], bits / 21, places=9)
        self.assertAlmostEqual(out["perplexity"], math.exp(out["nats_per_token"]), places=6)
        plain = run("evaluate", self.model, "--text", text).stdout.decode()
        self.assertIn(f"perplexity = {out['perplexity']:.2f} ", plain)
        self.assertIn(f"{out['bits_per_character']:.4f} bits per character (20 characters)", plain)
        # A stream is the lines of all its files.
        parts = [self.file("t1", b"the red car\n"), self.file("t2", "the cär\n".encode())]
        self.assertEqual(json.loads(run("evaluate", self.model, "--text", *parts, "--json").stdout), out)

    def test_draws_depend_on_seed_and_line_alone(self):
        prompts = b"the\na\n\nthe red\nb\n"
        options = ["--quiet", "--max-length", 30]
        together = run("generate", self.model, *options, "--threads", 2, text=prompts).stdout
        self.assertEqual(together.count(b"\n"), 5)
        self.assertEqual(run("generate", self.model, *options, "--batch-sentences", 2, "--threads", 1, text=prompts).stdout, together)
        other = prompts.replace(b"a\n", b"the old man\n", 1)
        self.assertEqual(run("generate", self.model, *options, text=other).stdout.splitlines()[2:], together.splitlines()[2:])
        self.assertNotEqual(run("generate", self.model, *options, "--seed", 2, text=prompts).stdout, together)
        greedy = run("generate", self.model, *options, "--temperature", 0, text=prompts).stdout
        for same in (["--top-k", 1], ["--beam-size", 1], ["--top-p", "1e-9"], ["--temperature", 0, "--seed", 9]):
            self.assertEqual(run("generate", self.model, *options, *same, text=prompts).stdout, greedy, same)
        for line in run("generate", self.model, *options, "--json", text=prompts).stdout.splitlines():
            out = json.loads(line)
            self.assertTrue(out["text"].startswith(out["prompt"]))
            self.assertLess(out["score"], 0)
            self.assertEqual([out["tokens"], out["complete"]], [30, False])

    def test_raw_text_has_its_newlines(self):
        line = run("generate", self.model, "--quiet", "--max-length", 200, text=b"the car\\nthe\n").stdout.decode()
        raw = run("generate", self.model, "--quiet", "--max-length", 200, "--raw", text=b"the car\\nthe\n").stdout.decode()
        self.assertEqual(raw, line.replace("\\n", "\n"))
        self.assertTrue(raw.startswith("the car\nthe"))
        told = run("generate", self.model, "--quiet", "--max-length", 200, "--json", text=b"the car\\nthe\n").stdout
        self.assertEqual((json.loads(told)["prompt"], json.loads(told)["text"] + "\n"), ("the car\nthe", raw))

    def test_lines_end_by_themselves(self):
        model = self.train_text("lines", "gru-lm", *self.recurrent, "--text-lines")
        out = [json.loads(line) for line in
               run("generate", model, "--quiet", "--json", "--max-length", 400, text=b"the\n" * 20).stdout.splitlines()]
        self.assertTrue(any(line["complete"] for line in out))
        text = self.file("l", b"the red car\nthe car\n")
        scores = json.loads(run("evaluate", model, "--text", text, "--json").stdout)
        self.assertEqual([scores["tokens"], scores["characters"]], [20, 20])  # an end symbol for a newline

    def test_words_are_joined_to_the_prompt(self):
        model = self.train_text("words", "gru-lm", *self.recurrent, steps=40, vocabulary="words")
        out = run("generate", model, "--quiet", "--max-length", 5, text=b"the red\nZyxwv\n").stdout.decode().splitlines()
        self.assertRegex(out[0], r"^the red( |\\n)\S")
        self.assertTrue(out[1].startswith("Zyxwv"))

    def test_resuming_is_to_the_bit_and_checks_the_kind_of_text(self):
        whole = self.train_text("whole", "lstm-lm", *self.recurrent, steps=20)
        halves = self.train_text("halves", "lstm-lm", *self.recurrent, steps=10)
        again = ["halves", "lstm-lm", *self.recurrent, "--resume"]
        self.refused(2, *self.training(*again, "--text-lines"), says="text_lines was false and is now true")
        self.refused(2, *self.training(*again, longest=50), says="longest was 40 and is now 50")
        run(*self.training(*again, steps=20))
        self.assertEqual((halves / "model.safetensors").read_bytes(), (whole / "model.safetensors").read_bytes())

    def test_what_does_not_fit_is_refused(self):
        out = ["--output", self.root / "refused", "--steps", 1]
        pair = ["--source", self.path, "--target", self.path]
        text = ["--text", self.path]
        self.refused(2, "train", "--model", "lstm-lm", *pair, *out, says=["--source", "--text F"])
        self.refused(2, "train", "--model", "lstm-lm", *text, "--guided-alignment", self.path, *out, says="--guided-alignment")
        self.refused(2, "train", "--model", "lstm-lm", *text, "--reverse-source", *out, says="--reverse-source says nothing")
        self.refused(2, "train", "--model", "lstm-lm", *text, "--dev-data", self.path, *out, says="--dev-data")
        self.refused(2, "train", "--model", "lstm-lm", *out, says="give --text F")
        self.refused(2, "train", "--model", "bahdanau", *text, *out, says=["--text", "language models"])
        self.refused(2, "train", "--model", "gru", *pair, "--text-lines", *out, says="--text-lines")
        self.refused(2, "train", "--model", "lstm-lm", *text, "--dev-text", self.path, "--dev-fraction", "0.1", *out, says="--dev-text")
        self.refused(2, "train", "--model", "lstm-lm", *text, "--tied-embeddings", "--embedding", 8, *out, says="--tied-embeddings")
        one = self.file("one", b"a line\n")
        self.refused(2, "train", "--model", "lstm-lm", "--text", one, "--dev-fraction", "0.1", *out, says="one line")
        self.refused(3, "train", "--model", "lstm-lm", "--text", self.file("none", b""), *out, says="none: ")
        self.assertFalse((self.root / "refused").exists())
        for verb in (["translate", self.model], ["score", self.model, *pair], ["align", self.model, *pair]):
            self.refused(2, *verb, says="`regard generate`")
        self.refused(2, "view", self.model, "the car", says="lstmn-lm or transformer-lm")
        self.refused(2, "report", self.model, "--source", self.path, "--output", self.root / "r.html", says="--source")
        self.refused(2, "evaluate", self.model, *pair, says="`regard generate`")
        self.refused(2, "generate", self.model, "--beam-size", 2, "--top-k", 3, says="--top-k")
        self.refused(2, "generate", self.model, "--raw", "--json", says="--raw")
        self.refused(2, "generate", self.model, "--top-p", 0, says="--top-p")
        translator = self.train_model("translator", 2)
        self.refused(2, "generate", translator, says="`regard translate`")
        self.refused(2, "evaluate", translator, "--text", self.path, says="`regard translate`")


if __name__ == "__main__":
    unittest.main()
