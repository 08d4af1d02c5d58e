#!/usr/bin/env python3
"""What is left when training is killed, interrupted or runs out of room: nothing, or a directory that loads and resumes.

KILLS=50 kills so often, with a checkpoint every second, and takes some minutes.

usage: interruptions_test.py PROGRAM
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
import unittest

from support import Case, reports, run, start

KILLS = int(os.environ.get("KILLS", "0"))
FOREVER = ["--steps", 10**6]


def translates(directory):
    run("translate", directory, "--quiet", "--beam-size", 1, "--max-length", 5, text=b"the red car\n")


def wait_for(condition, seconds=60):
    deadline = time.time() + seconds
    while not condition():
        if time.time() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.01)


class Kills(Case):
    def test_killed_at_random_moments_nothing_is_lost(self):
        """Number 23. Each round trains into one directory, from its very beginning, and is killed again and again; a
        quarter of the rounds is given up for a new one. In the end the weights are those of a run never killed."""
        kills, save_every, longest = (KILLS, 1, 4.0) if KILLS else (14, 0.1, 0.5)
        dice = random.Random(3)
        counts = {"nothing": 0, "loads": 0}
        output = self.root / "0"
        began = time.time()
        self.train_model("measured", 1)
        start_up = time.time() - began  # how early is early depends on the machine
        for kill in range(kills):
            if output.exists() and kill < kills * 2 / 3 and dice.random() < 0.25:
                output = self.root / str(kill)
            resume = ["--resume"] if output.exists() else []
            process = start(*self.train, "--output", output, *FOREVER, "--save-every", save_every, *resume)
            time.sleep((longest + start_up if resume else 2 * start_up) * dice.random() if kill else 0.01)
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            process.kill()
            process.communicate()
            counts["loads" if output.exists() else "nothing"] += 1
            if output.exists():
                translates(output)
                run(*self.train, "--output", output, "--steps", 1, "--resume")
        if KILLS:
            print(f"{kills} kills: {counts}")
        self.assertGreater(counts["loads"], 0)
        self.assertGreater(counts["nothing"], 0)
        resume = ["--resume"] if output.exists() else []
        steps = (reports(output)[-1]["step"] if output.exists() and reports(output) else 0) + 45
        run(*self.train, "--output", output, "--steps", steps, *resume)
        run(*self.train, "--output", self.root / "whole", "--steps", steps)
        self.assertEqual((output / "model.safetensors").read_bytes(),
                         (self.root / "whole/model.safetensors").read_bytes())
        self.assertEqual([r["step"] for r in reports(output)], sorted(r["step"] for r in reports(output)))
        self.assertEqual([p.name for p in self.root.glob("*.part")], [])

    def test_killed_while_the_vocabulary_is_trained(self):
        output = self.root / "early"
        for _ in range(3):
            process = start(*self.train, "--output", output, *FOREVER)
            wait_for(lambda: (self.root / "early.part").exists() or output.exists())
            process.kill()
            process.communicate()
            shutil.rmtree(output, ignore_errors=True)
        run(*self.train, "--output", output, "--steps", 2)
        self.assertFalse((self.root / "early.part").exists())
        translates(output)

    def test_interrupted_it_saves_and_says_how_to_go_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            output = self.root / f"signal{number}"
            process = start(*self.train, "--output", output, *FOREVER)
            wait_for(lambda: output.exists())
            time.sleep(0.3)
            process.send_signal(number)
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, error)
            self.assertIn(b"--resume", error)
            step = reports(output)[-1]["step"]
            run(*self.train, "--output", output, "--steps", step + 1, "--resume")
            self.assertEqual(reports(output)[-1]["step"], step + 1)

    def test_what_may_differ_on_resuming_and_what_may_not(self):
        output = self.train_model("r", 10)
        for option, value, name in (("--learning-rate", 0.01, "learning_rate was 0.005 and is now 0.01"),
                                    ("--seed", 7, "seed was 1 and is now 7"), ("--width", 16, "width was 32 and is now 16"),
                                    ("--vocabulary-size", 500, "vocabulary_size was 400 and is now 500"),
                                    ("--vocabulary", "words", "vocabulary"), ("--patience", 3, "patience was 0"),
                                    ("--evaluate-every", 7, "evaluate_every was 40"), ("--clip", 2, "clip was 1")):
            changed = [*map(str, self.train)]
            if option in changed:
                del changed[changed.index(option):changed.index(option) + 2]
            self.refused(2, *changed, option, value, "--output", output, "--steps", 20, "--resume", says=name)
        other = [*map(str, self.train)]
        other[other.index("--source") + 1] = str(self.root / "c/train.fr")
        self.refused(2, *other, "--output", output, "--steps", 20, "--resume", says="data differ")
        allowed = [*map(str, self.train)]
        allowed[allowed.index("--threads") + 1] = "2"
        run(*allowed, "--output", output, "--steps", 20, "--epochs", 9, "--minutes", 9, "--save-every", 9,
            "--report-every", 3, "--resume")


class FullDisk(Case):
    def test_a_file_may_not_grow_further(self):
        """A limit on the size of files is a failed write, not a death: SIGXFSZ is ignored."""
        output = self.train_model("limited", 10)
        state = (output / "state/state.safetensors").stat().st_size

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (state // 2, state // 2))

        error = self.refused(4, *self.train, "--output", self.root / "new", "--steps", 5, says="File too large",
                             preexec_fn=limit)
        self.assertIn("state.safetensors", error)
        self.assertEqual(list(self.root.glob("new*")), [])
        done = run(*self.train, "--output", output, "--steps", 30, "--save-every", 0, "--resume", code=4,
                   preexec_fn=limit)
        lines = done.stderr.decode().splitlines()
        self.assertGreater(len([line for line in lines if line.startswith("regard: warning: cannot write")]), 5)
        self.assertIn("the last good checkpoint is kept", lines[-1])
        self.assertIn("--resume", lines[-1])
        translates(output)
        run(*self.train, "--output", output, "--steps", 60, "--resume")
        run(*self.train, "--output", self.root / "whole", "--steps", 60)
        self.assertEqual((output / "model.safetensors").read_bytes(),
                         (self.root / "whole/model.safetensors").read_bytes())

    def test_the_disk_is_full(self):
        disk = self.root / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("needs the right to mount a file system")
        try:
            self.fill_while_training(disk)
        finally:
            subprocess.run(["umount", disk], check=True)

    def fill_while_training(self, disk):
        output, filler = disk / "m", disk / "filler"
        process = start(*self.train, "--output", output, "--minutes", 0.05, "--save-every", 0.1)
        wait_for(lambda: (output / "train.jsonl").exists())
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError:
                pass
        _, error = process.communicate(timeout=60)
        lines = error.decode().splitlines()
        self.assertEqual(process.returncode, 4, error)
        self.assertGreater(len(lines), 1)
        self.assertTrue(all(line.startswith("regard: warning: cannot write") for line in lines[:-1]), error)
        self.assertIn("No space left on device; the last good checkpoint is kept", lines[-1])
        translates(output)
        self.refused(4, *self.train, "--output", disk / "new", "--steps", 5, says="No space left")
        self.assertEqual(list(disk.glob("new*")), [])
        filler.unlink()
        run(*self.train, "--output", output, "--minutes", 0.01, "--resume")
        json.dumps(reports(output))  # every line is whole
        translates(output)


if __name__ == "__main__":
    unittest.main()
