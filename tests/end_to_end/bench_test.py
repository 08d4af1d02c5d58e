#!/usr/bin/env python3
"""regard bench: the list of benchmarks, and the attention kernels measured briefly.

usage: bench_test.py PROGRAM
"""

import json
import signal
import time
import unittest

from support import Case, run, start


class Bench(Case):
    def test_without_a_name_it_lists_the_names(self):
        names = [line.split()[0] for line in run("bench").stdout.decode().splitlines()]
        self.assertIn("attention", names)
        listed = json.loads(run("bench", "--json").stdout)["benchmarks"]
        self.assertEqual([each["name"] for each in listed], names)
        self.assertTrue(all(each["summary"] for each in listed))

    def test_attention_as_json(self):
        """Each line's rate is its share of the yardstick of the same run; no claim on how fast that is."""
        result = json.loads(run("bench", "attention", "--quick", "--seconds", 0.001, "--threads", 2, "--json").stdout)
        self.assertEqual((result["benchmark"], result["threads"]), ("attention", 2))
        self.assertGreater(result["gemm_gflops"], 0)
        lines = {line["case"]: line for line in result["lines"]}
        self.assertEqual(len(lines), len(result["lines"]))
        for wanted in ("forward 1,8,1024,64", "forward 1,8,1024,64 causal", "backward 1,8,1024,64", "forward 1,8,1024,64 bf16",
                       "decode 1,8,4096,64", "decode 64,8,512,64", "additive B 64 S 30 A 256 E 512",
                       "additive B 64 S 30 A 256 E 512 with backward"):
            self.assertIn(wanted, lines)
        for name, line in lines.items():
            rate, yardstick = ("gb_per_s", "read_gb_per_s") if name.startswith("decode") else ("gflops", "gemm_gflops")
            self.assertGreater(line["ms"], 0)
            self.assertAlmostEqual(line["share"] * line[yardstick] / line[rate], 1, places=6)
        operations = 4 * 8 * 1024 * 1024 * 64  # a wrong count would be a wrong rate
        line = lines["forward 1,8,1024,64"]
        self.assertAlmostEqual(line["gflops"] * line["ms"] * 1e6 / operations, 1, places=6)

    def test_attention_as_a_table(self):
        text = run("bench", "attention", "--quick", "--seconds", 0, "--threads", 1).stdout.decode()
        rows = [line for line in text.splitlines() if line.startswith(("forward", "backward", "decode", "additive"))]
        self.assertGreater(len(rows), 15)
        self.assertTrue(all(" of " in row for row in rows), text)

    def test_models_each_on_the_same_data(self):
        """A line for every model that the data are for; what each is worth is not this test's matter."""
        result = json.loads(run("bench", "models", "--quick", "--models", "gru,bahdanau", "--json").stdout)
        self.assertEqual([row["model"] for row in result["models"]], ["gru", "bahdanau"])
        text = self.file("text", b"to be or not to be\nthat is the question\n" * 300)
        language = json.loads(run("bench", "models", "--quick", "--models", "rnn-lm,gru-lm", "--text", text,
                                  "--dev-fraction", 0.1, "--vocabulary", "characters", "--json").stdout)
        self.assertEqual(language["quality"], "bits/char")
        pairs = self.file("pairs.tsv", b"a b\ta b\tyes\na b\tno a\tno\n" * 100)
        classes = json.loads(run("bench", "models", "--quick", "--data", pairs, "--vocabulary", "words",
                                 "--json").stdout)
        for row in [*result["models"], *language["models"], *classes["models"]]:
            with self.subTest(row["model"]):
                self.assertGreater(row["parameters"], 1000)
                self.assertGreater(row["steps"], 0)
                self.assertGreater(row["dev_loss"], 0)
                self.assertGreater(row["peak_mib"], 10)
                self.assertGreaterEqual(row["quality"], 0)
        text = run("bench", "models", "--quick", "--models", "gru").stdout.decode()
        self.assertIn("dev loss", text)
        self.assertIn("\ngru  ", text)

    def test_an_interrupted_table_ends_soon(self):
        bench = start("bench", "models", "--models", "gru,bahdanau", "--minutes", 5)
        time.sleep(3)
        bench.send_signal(signal.SIGINT)
        _, errors = bench.communicate(timeout=60)
        self.assertEqual(bench.returncode, 130)
        self.assertIn(b"interrupted", errors)

    def test_bad_input(self):
        self.refused(2, "bench", "models", "--models", "bert", says="bert")
        self.refused(2, "bench", "models", "--models", "gru,gru", says="twice")
        self.refused(2, "bench", "models", "--seconds", 1, says="--minutes")
        self.refused(2, "bench", "attention", "--models", "gru", says="bench models")
        self.refused(2, "bench", "models", "--models", "gru-lm", says="gru-lm is not for these data")
        self.refused(2, "bench", "nothing", says=["nothing", "attention"])
        self.refused(2, "bench", "attention", "--seconds", -1, says="--seconds")
        self.refused(2, "bench", "attention", "--seconds", "nan", says="--seconds")


if __name__ == "__main__":
    unittest.main()
