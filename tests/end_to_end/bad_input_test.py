#!/usr/bin/env python3
"""Input that is missing, damaged or odd: one line of error that says where and what to do, the exit code that the
manual promises, nothing half-written; and text that must pass unharmed.

usage: bad_input_test.py PROGRAM
"""

import os
import resource
import shutil
import unittest

from support import Case, reports, run


def memory_limit():
    """Enough for a small model; what grows with the square of a long line is not."""
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


class TextThroughTranslate(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.train_model()

    def translate(self, text, *options, **more):
        done = run("translate", self.model, "--threads", 1, *options, text=text, **more)
        return done.stdout.split(b"\n"), done.stderr.decode()

    def test_blank_lines_come_back(self):
        """Numbers 1 and 2: an empty line, a space, NBSP, U+3000, a tab; number 16: NUL inside a text."""
        text = "the red car\n\n \n\u00a0\n\u3000\n\t\nthe\u2028car\nh\na\x00b\nlast".encode()
        out, _ = self.translate(text)
        self.assertEqual(len(out), 11)
        self.assertEqual([line.decode() for line in out[1:6]], ["", " ", "\u00a0", "\u3000", "\t"])
        self.assertEqual(out[10], b"")
        self.assertTrue(all(out[i] for i in (0, 6, 7, 8, 9)))
        alone, _ = self.translate(b"a\x00b")
        self.assertEqual(alone[0], out[8])
        self.assertEqual(self.translate(b"")[0], [b""])

    def test_a_line_of_1200_words_and_its_neighbours(self):
        """Number 3: three lines, the long one in parts, with a warning that names it; number 4: longer than any
        sentence of training, and cut at the length limit."""
        text = b"the red car\n" + b"the red car " * 400 + b"\nthe car\n"
        out, error = self.translate(text)
        self.assertEqual(len(out), 4)
        self.assertEqual([out[0], out[2]], [self.translate(line)[0][0] for line in (b"the red car\n", b"the car\n")])
        self.assertGreater(len(out[1].split()), 20)
        self.assertRegex(error, r"(?m)^regard: warning: line 2 has \d+ pieces, .* translated in \d+ parts$")
        out, error = self.translate(text, "--max-length", 3)
        self.assertEqual(len(out), 4)
        self.assertIn("line 2 has a translation that was cut at its length limit", error)

    def test_one_word_inputs_stop(self):
        """Number 15."""
        for word in (b"Hello", b"h"):
            out, _ = self.translate(word)
            self.assertLessEqual(len(run("translate", self.model, "--json", text=word).stdout), 4000)
            self.assertEqual(len(out), 2)

    def test_a_line_of_a_megabyte(self):
        """Time grows with the length, and memory is bounded, with alignments too."""
        text = b"the red car " * 87500 + b"\nthe car\n"
        for options in ([], ["--alignment", "pharaoh", "--nbest", 2]):
            out, error = self.translate(text, "--beam-size", 2, "--max-length", 20, *options, preexec_fn=memory_limit)
            self.assertEqual(len(out), 5 if options else 3)
            self.assertIn("line 1 has", error)
            self.assertEqual("too long for its attention" in error, bool(options))
        source = self.file("long", b"the red car " * 87500 + b"\n")
        for verb in ("score", "align"):
            self.refused(3, verb, self.model, "--source", source, "--target", source, says=f"{source}:1: ",
                         preexec_fn=memory_limit)
        self.refused(3, "evaluate", self.model, "--source", source, "--target", source, says=f"{source}:1: ",
                     preexec_fn=memory_limit)
        self.refused(2, "view", self.model, "the red car " * 500, says="one sentence")

    def test_ends_of_lines_and_marks(self):
        """Number 17: CRLF, no final newline; a byte-order mark; a lone CR is text."""
        plain, _ = self.translate(b"the red car\n\nthe car\n")
        self.assertEqual(self.translate(b"the red car\r\n\r\nthe car\r\n")[0], plain)
        self.assertEqual(self.translate(b"\xef\xbb\xbfthe red car\n\nthe car")[0], plain)
        self.assertEqual(len(self.translate(b"the\rcar\r\r\nx\r")[0]), 3)

    def test_bytes_that_are_not_utf8(self):
        out, error = self.translate(b"the car\n\xff\xfet\x00h\xe9\nthe car\n")
        self.assertEqual(len(out), 4)
        self.assertEqual(out[0], out[2])
        self.assertIn("line 2 is not UTF-8", error)
        for line in out:
            line.decode()

    def test_no_output_breaks_a_line(self):
        """Byte pieces could spell a line feed: an untrained model must still write as many lines as it read."""
        raw = self.train_model("raw", 1)
        text = self.test + bytes(range(1, 10)) + bytes(range(11, 256)) + b"\n"
        out = run("translate", raw, "--quiet", "--length-penalty", -3, text=text).stdout
        self.assertEqual(out.count(b"\n"), 51)
        self.assertNotIn(b"\r", out)

    def test_directories_and_closed_inputs(self):
        with open(os.devnull, "rb") as nothing:
            self.assertEqual(run("translate", self.model, "--quiet", text=None, stdin=nothing).stdout, b"")
        descriptor = os.open(self.root, os.O_RDONLY)
        self.refused(4, "translate", self.model, "--quiet", text=None, stdin=descriptor, says="standard input")
        os.close(descriptor)


class Models(Case):
    def test_every_damage_of_every_file_is_named(self):
        model = self.train_model("m", 10)
        names = sorted(str(p.relative_to(model)) for p in model.rglob("*") if p.is_file())
        self.assertIn("state/state.safetensors", names)
        resume = [*self.train, "--output", model, "--steps", 20, "--resume"]
        for name in names:
            path, whole = model / name, (model / name).read_bytes()
            if name == "train.jsonl":
                continue  # a log; see test_a_damaged_log
            flips = [bytes([whole[0] ^ 1]) + whole[1:], whole[:-1] + bytes([whole[-1] ^ 128]),
                     whole[:len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 4]) + whole[len(whole) // 2 + 1:]]
            for damaged in (b"", whole[:-1], whole[:len(whole) // 2], whole + b"x", *flips, None):
                with self.subTest(name, size=-1 if damaged is None else len(damaged)):
                    path.unlink()
                    if damaged is not None:
                        path.write_bytes(damaged)
                    if name.startswith("state/"):
                        run("translate", model, text=b"the car\n")
                    else:
                        self.refused(3, "translate", model, text=b"the car\n", says=[path, "train again"])
                    if name != "model.safetensors":  # the state holds the best weights and writes them again
                        self.refused(3, *resume, says=[path, "train again"])
                    else:
                        copy = self.root / "copy"
                        shutil.copytree(model, copy)
                        run(*self.train, "--output", copy, "--steps", 20, "--resume")
                        run("translate", copy, text=b"the car\n")
                        shutil.rmtree(copy)
                    path.write_bytes(whole)
        run(*resume)

    def test_a_damaged_log(self):
        model = self.train_model("log", 50)
        log = model / "train.jsonl"
        whole = log.read_bytes()
        log.write_bytes(whole + b'{"step": 51, "lo')  # what a kill leaves
        run("report", model, "--output", self.root / "r.html")
        run(*self.train, "--output", model, "--steps", 60, "--resume")
        self.assertEqual([r["step"] for r in reports(model)], sorted(r["step"] for r in reports(model)))
        log.write_bytes(b"{}\n" + whole)
        self.refused(3, "report", model, "--output", self.root / "s.html", says=log)
        self.assertFalse((self.root / "s.html").exists())

    def test_what_is_no_model(self):
        self.refused(4, "translate", self.root / "none", says="none: No such file")
        self.refused(3, "translate", self.root / "c", says="manifest.json: missing")
        self.refused(3, "translate", self.root / "c/dev.en", says="a model is a directory")
        for verb in (["score"], ["align"], ["evaluate"]):
            self.refused(4, *verb, self.root / "none", "--source", self.root / "c/dev.en", "--target",
                         self.root / "c/dev.fr", says="none: No such file")


class Files(Case):
    """What train, corpus, score and evaluate read and write."""

    def train_on(self, source, target, *more):
        return ["train", "--source", source, "--target", target, *self.sizes, "--output", self.root / "m", "--steps", 2,
                *more]

    def tearDown(self):
        self.assertFalse((self.root / "m").exists())
        self.assertEqual(list(self.root.glob("*.part")), [])

    def test_missing_and_unreadable(self):
        good = self.root / "c/dev.en"
        self.refused(4, *self.train_on(self.root / "none", good), says="none: No such file or directory")
        self.refused(4, *self.train_on(self.root, good), says=f"{self.root}: Is a directory")
        self.refused(4, *self.train, "--output", good / "m", "--steps", 1, says="m.part: Not a directory")
        self.refused(2, *self.train, "--output", good, "--steps", 1, says="choose another --output")
        self.refused(2, *self.train, "--output", self.root / "c", "--steps", 1, says="not empty")
        self.refused(2, *self.train, "--output", self.root / "n", "--steps", 1, "--resume", says="leave out --resume")
        self.refused(4, "evaluate", "--hypothesis", self.root / "none", "--reference", good, says="none: No such file")
        self.refused(4, "corpus", "--toy", 9, "--from", "en", "--to", "fr", "--output", good / "x", says="Not a directory")
        self.refused(4, "corpus", self.root / "none.po", "--from", "en", "--to", "fr", "--output", self.root / "x",
                     says="none.po: No such file")
        if os.getuid() != 0:
            secret = self.file("secret", b"a\n")
            secret.chmod(0)
            self.refused(4, *self.train_on(secret, secret), says="Permission denied")

    def test_empty_and_unequal(self):
        empty, blank, two, three = (self.file("empty", b""), self.file("blank", b"\n \n"), self.file("two", b"a\nb\n"),
                                    self.file("three", b"a\nb\nc"))
        self.refused(3, *self.train_on(empty, empty), says=f"{empty}")
        self.refused(3, *self.train_on(blank, blank), says="no text")
        self.refused(3, *self.train_on(two, three), says=[f"{two} has 2 lines, {three} has 3"])
        self.refused(3, *self.train_on(two, two, "--dev-source", two, "--dev-target", three), says="has 3")
        self.refused(3, "evaluate", "--hypothesis", two, "--reference", three, says=[two, three])
        self.refused(3, "evaluate", "--hypothesis", empty, "--reference", empty, says="no lines")
        self.refused(3, "corpus", empty, empty, "--from", "en", "--to", "fr", "--output", self.root / "x", says="no usable")
        self.assertFalse((self.root / "x").exists())

    def test_not_utf8(self):
        bad, good = self.file("bad", b"a\nb\xe9\nc\n"), self.file("good", b"a\nb\nc\n")
        self.refused(3, *self.train_on(bad, good), says=[f"{bad}:2: ", "iconv"])
        self.refused(3, "evaluate", "--hypothesis", good, "--reference", bad, says=f"{bad}:2: ")
        self.refused(3, "corpus", good, bad, "--from", "en", "--to", "fr", "--output", self.root / "x", says=f"{bad}:2: ")
        for name, text, where in (("a.tsv", b"a\tb\nno tab\n", "a.tsv:2: "), ("a.po", b'msgid "a"\nmsgstr "b\n', "a.po:2: "),
                                  ("a.mo", b"\xde\x12\x04\x95", "a.mo: "), ("a.po.gz", b"\x1f\x8b\x08", "a.po.gz: ")):
            path = self.file(name, text)
            self.refused(3, "train", "--data", path, "--from", "en", "--to", "fr", "--output", self.root / "m", says=where)
            self.refused(3, "corpus", path, "--from", "en", "--to", "fr", "--output", self.root / "x", says=where)

    def test_odd_but_sound_text_is_trained_on(self):
        """CRLF, a byte-order mark, NUL, no final newline, an empty line, one token, a line of a megabyte: all in one
        corpus, within bounded memory; number 25: a target of one token, and an empty one."""
        lines = [b"the red car"] * 40 + [b"", b"h", b"a\x00b", b"the red car " * 87500, b"last"]
        source, target = self.file("odd.en", b"\xef\xbb\xbf" + b"\r\n".join(lines)), self.file("odd.fr", b"\n".join(lines))
        output = self.root / "odd"
        command = ["train", "--source", source, "--target", target, *self.sizes[:-1], "--output", output, "--steps", 5]
        done = run(*command, preexec_fn=memory_limit)
        self.assertIn("1 of 45 pairs are longer than 128 pieces and were cut (the first is number 44)", done.stderr.decode())
        self.assertEqual(reports(output)[-1]["step"], 5)

    def test_a_corpus_is_written_whole_or_not_at_all(self):
        output = self.root / "whole"
        make = ["corpus", "--from", "en", "--to", "fr", "--output", output, "--dev", 5]
        run(*make, "--toy", 100)
        before = {p.name: p.read_bytes() for p in output.iterdir()}
        size = len(before["train.en"]) + 1000

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        self.refused(4, *make, "--toy", 110, "--seed", 2, says="File too large", preexec_fn=limit)
        self.assertEqual({p.name: p.read_bytes() for p in output.iterdir()}, before)


class Usage(Case):
    def test_mistakes_of_the_command_line(self):
        dev = self.root / "c/dev.en"
        links = self.file("links", b"0-0\n")
        bad_links = self.file("bad_links", b"0-0\n0:1\n")
        for arguments, code in ((["translate"], 2), (["nonsense"], 2), ([], 2), (["view", "m", "x", "--output", "x.gif"], 2),
                                (["view", "m", " "], 2), (["translate", "m", "--nbest", 9], 2),
                                (["evaluate"], 2), (["evaluate", "--hypothesis", dev], 2),
                                (["evaluate", "--hypothesis", dev, "--reference", dev, "--metric", "ter"], 2),
                                (["evaluate", "--alignment", bad_links, "--gold", links], 3),
                                (["corpus", "--from", "en", "--to", "fr", "--output", self.root / "x"], 2),
                                (["corpus", "--toy", 9, "--from", "../en", "--to", "fr", "--output", self.root / "x"], 2),
                                (["corpus", "--toy", 9, "--from", "en", "--to", "fr", "--test", 9, "--output", self.root / "x"], 3),
                                (["corpus", dev, "--from", "en", "--to", "fr", "--output", self.root / "x"], 2),
                                (["train", "--output", self.root / "m"], 2),
                                (["train", "--output", self.root / "m", "--source", dev], 2),
                                (["train", "--output", self.root / "m", "--data", dev], 2),
                                (["train", *self.text, "--output", ""], 2),
                                (["translate", "m", "--config", self.root / "none"], 4)):
            with self.subTest(arguments):
                self.refused(code, *arguments)
        self.assertFalse((self.root / "x").exists())
        self.assertFalse((self.root / "m").exists())

    def test_numbers_that_mean_nothing(self):
        huge = "9" * 30
        for option, values in (("--steps", ("-1", huge, "x", "", "1.5")), ("--minutes", ("nan", "inf", "-1")),
                               ("--learning-rate", ("0", "nan", "1e999", "-1e-3")), ("--batch-tokens", ("0", huge)),
                               ("--dropout", ("nan", "1", "-0.1")), ("--label-smoothing", ("nan", "1")),
                               ("--width", ("0", "1000000", huge, "016", "0x10")), ("--vocabulary-size", ("1", "-5", "99999999999")),
                               ("--seed", ("-1", "x", huge)), ("--threads", ("-1", "99999")), ("--clip", ("nan", "-1")),
                               ("--save-every", ("nan", "-1")), ("--dev-fraction", ("nan", "1")),
                               ("--patience", ("-1",)), ("--warm-up", ("0", "-5"))):
            for value in values:
                with self.subTest(option, value=value):
                    self.refused(2, "train", *self.text, "--output", self.root / "m", f"{option}={value}", says=option)
        for option, values in (("--beam-size", ("0", "1001", huge)), ("--length-penalty", ("nan", "inf", "99")),
                               ("--max-length", ("0", huge)), ("--batch-sentences", ("0", huge))):
            for value in values:
                with self.subTest(option, value=value):
                    self.refused(2, "translate", "m", f"{option}={value}", says=option)
        lines = self.file("lines", b"a b\nc\n")
        evaluate = ["evaluate", "--hypothesis", lines, "--reference", lines]
        for value in ("010", "0x10", huge, "", "-1", "20,10", "10,10", "a"):
            with self.subTest("--length-bands", value=value):
                self.refused(2, *evaluate, "--by-length", lines, f"--length-bands={value}")
        self.refused(2, *evaluate, "--by-length", "", says="--by-length")
        self.assertFalse((self.root / "m").exists())

    def test_options_that_say_nothing(self):
        text = [*self.text[:4], "--output", self.root / "m", "--steps", 1]
        side = self.file("side", b"a b\n")
        for arguments, says in ((["train", *text, "--guided-weight", 0.5], "--guided-alignment"),
                                (["train", *text, "--from", "en"], "--data"),
                                (["train", *text, "--dev-source", side, "--dev-target", side, "--dev-fraction", 0.1],
                                 "--dev-fraction"),
                                (["train", *text, "--patience", 2], "--patience"),
                                (["evaluate", "m", "--source", side, "--target", side, "--metric", "bleu"], "--metric"),
                                (["evaluate", "m", "--source", side, "--target", side, "--tokenize", "intl"],
                                 "--tokenize"),
                                (["view", "m", "a b", "--target", ""], "--target")):
            with self.subTest(arguments):
                self.refused(2, *arguments, says=says)
        self.assertFalse((self.root / "m").exists())

    def test_huge_but_legal_numbers(self):
        output = self.root / "huge"
        many = str(2**63 - 1)
        run(*[a for a in self.train if a not in ("--batch-tokens", 300)], "--batch-tokens", 10**12, "--output", output,
            "--steps", 2, "--epochs", many, "--minutes", "1e300", "--patience", many, "--save-every", "1e300",
            "--report-every", many, "--seed", str(2**64 - 1))
        self.assertEqual(reports(output)[-1]["step"], 2)
        run("translate", output, "--beam-size", 1000, "--batch-sentences", 10000, "--max-length", 3, text=self.test,
            preexec_fn=memory_limit)

    def test_a_configuration_file(self):
        good = self.file("good.toml", b"steps = 2\n[train]\nwidth = 16\n")
        train = [a for a in self.train if a not in ("--width", 32)]
        del train[train.index("--embedding"):train.index("--alignment-width")]
        del train[train.index("--alignment-width"):train.index("--batch-tokens")]
        run(*train, "--output", self.root / "configured", "--config", good)
        self.assertEqual(reports(self.root / "configured")[-1]["step"], 2)
        bad = self.file("bad.toml", b"stepz = 2\n")
        self.refused(2, *train, "--output", self.root / "other", "--config", bad, says="stepz")

    def test_places_of_a_model(self):
        """An empty directory, the current one, a trailing slash, a link to an empty one, a link to nothing."""
        for name in ("empty", "here", "linked"):
            (self.root / name).mkdir()
        (self.root / "link").symlink_to(self.root / "linked")
        (self.root / "dangling").symlink_to(self.root / "nowhere")
        for output, place, folder in ((self.root / "empty", "empty", None), (".", "here", "here"),
                                      (f"{self.root}/slash/", "slash", None), (self.root / "link", "linked", None),
                                      ("plain", "plain", ".")):
            with self.subTest(output):
                run(*self.train, "--output", output, "--steps", 1, cwd=self.root / folder if folder else None)
                run("translate", self.root / place, text=b"the car\n")
        self.refused(2, *self.train, "--output", self.root / "dangling", "--steps", 1, says="a link to nothing")
        self.assertEqual(list(self.root.glob("*.part")), [])
        mine = self.root / "mine.part"
        mine.mkdir()
        (mine / "thesis").write_text("years of work")
        self.refused(2, *self.train, "--output", self.root / "mine", "--steps", 1, says="mine.part: not empty")
        self.assertEqual((mine / "thesis").read_text(), "years of work")


if __name__ == "__main__":
    unittest.main()
