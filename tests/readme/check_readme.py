#!/usr/bin/env python3
"""README's code blocks are true.

usage: check_readme.py cpp|python ROOT
  cpp      the block is examples/attention.cc, which is built and run as a test of its own
  python   the block runs, and every print gives the comment behind it; exit 77 (skipped) if regard is not installed
"""

import contextlib
import io
import pathlib
import re
import sys


def block(root, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (root / "README.md").read_text(encoding="utf-8"), re.M | re.S)


def check_cpp(root):
    blocks, example = block(root, "cpp"), (root / "examples/attention.cc").read_text(encoding="utf-8")
    if blocks != [example]:
        sys.exit("README.md: the C++ lines are not those of examples/attention.cc")


def check_python(root):
    try:
        import regard  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error} (pip install ./python)")
        sys.exit(77)
    for lines in block(root, "python"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(lines, "README.md", "exec"), {})
        expected = re.findall(r"^print\(.*\)\s+# (.+)$", lines, re.M)
        if not expected or printed.getvalue().splitlines() != expected:
            sys.exit(f"README.md: printed\n{printed.getvalue()}expected\n" + "\n".join(expected))


if __name__ == "__main__":
    {"cpp": check_cpp, "python": check_python}[sys.argv[1]](pathlib.Path(sys.argv[2]))
