"""Checks every #include "regard/..." against the table of folders in ARCHITECTURE.md.

usage: check_includes.py ROOT
Exit 0: none against the table. Exit 1: one line for each that is. Exit 2: the table cannot be read.
"""
import os
import re
import sys

ROW = re.compile(r"^\|\s*`regard/(\w+)`\s*\|[^|]*\|\s*([^|]*?)\s*\|\s*$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"(regard/(\w+)/[^"]+|tests/[^"]+|[^"]+)"')
ALL = ("all", "all above")


def read_table(text):
    """The folders that each folder may include, itself among them, in the table's order."""
    allowed = {}
    for line in text.splitlines():
        row = ROW.match(line)
        if not row:
            continue
        folder, cell = row.groups()
        names = list(allowed) if cell in ALL else [] if cell == "-" else cell.split()
        unknown = [name for name in names if name not in allowed]
        if unknown:
            raise ValueError(f"the row of regard/{folder} allows what stands in no row above it: {' '.join(unknown)}")
        if folder in allowed:
            raise ValueError(f"regard/{folder} has two rows")
        allowed[folder] = set(names) | {folder}
    if not allowed:
        raise ValueError("no row of the table of folders found")
    return allowed


def violations_of_file(path, text, allowed):
    """Messages for one file; path is relative to the root: regard/FOLDER/..."""
    folder = path.split("/")[1]
    is_test = path.endswith("_test.cc")
    if folder not in allowed:
        return [f"{path}: the folder regard/{folder} has no row in ARCHITECTURE.md"]
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target, other = match.group(1), match.group(2)
        if other is not None:
            if other not in allowed[folder]:
                found.append(f"{path}:{number}: regard/{folder} may not include regard/{other} ({target})")
        elif target.startswith("tests/"):
            if not (is_test and target.startswith("tests/support/")):
                found.append(f"{path}:{number}: only *_test.cc may include tests/support ({target})")
        elif not is_test or not target.startswith("gtest/"):
            found.append(f'{path}:{number}: write "regard/FOLDER/FILE" or <LIBRARY> instead of "{target}"')
    return found


def violations(root, allowed):
    found = []
    for folder, _, names in sorted(os.walk(os.path.join(root, "regard"))):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            if name.endswith((".h", ".cc")) and path.count("/") >= 2:
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    found += violations_of_file(path, file.read(), allowed)
    return found


def main(root):
    try:
        with open(os.path.join(root, "ARCHITECTURE.md"), encoding="utf-8") as file:
            allowed = read_table(file.read())
    except (OSError, ValueError) as error:
        print(f"ARCHITECTURE.md: {error}")
        return 2
    found = violations(root, allowed)
    print("\n".join(found) if found else f"No include against the table of {len(allowed)} folders.")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
