"""The layering check finds what it is there to find."""
import os
import tempfile
import unittest

import check_includes as check

TABLE = """
| folder | holds | may include |
|---|---|---|
| `regard/base` | errors | - |
| `regard/simd` | kernels | base |
| `regard/gemm` | products | base simd |
| `regard/cli` | verbs | all |
"""


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        self.allowed = check.read_table(TABLE)

    def found(self, path, text):
        return check.violations_of_file(path, text, self.allowed)

    def test_reads_the_table(self):
        self.assertEqual(self.allowed["base"], {"base"})
        self.assertEqual(self.allowed["gemm"], {"base", "simd", "gemm"})
        self.assertEqual(self.allowed["cli"], {"base", "simd", "gemm", "cli"})

    def test_allows_what_the_table_allows(self):
        text = '#include <vector>\n#include "regard/base/error.h"\n#include "regard/gemm/gemm.h"\n'
        self.assertEqual(self.found("regard/gemm/gemm.cc", text), [])

    def test_finds_a_forbidden_include_with_its_line(self):
        found = self.found("regard/simd/rows.h", '#pragma once\n#  include "regard/gemm/gemm.h"\n')
        self.assertEqual(found, ["regard/simd/rows.h:2: regard/simd may not include regard/gemm (regard/gemm/gemm.h)"])

    def test_a_test_may_include_support_but_no_other_folder(self):
        text = '#include "tests/support/temporary_folder.h"\n#include "regard/gemm/gemm.h"\n'
        self.assertEqual(len(self.found("regard/base/file_test.cc", text)), 1)
        self.assertEqual(len(self.found("regard/base/file.cc", text)), 2)

    def test_finds_a_folder_without_a_row_and_an_include_without_a_folder(self):
        self.assertEqual(len(self.found("regard/utils/x.h", "")), 1)
        self.assertEqual(len(self.found("regard/base/x.cc", '#include "x.h"\n')), 1)

    def test_refuses_a_table_that_allows_upwards_or_is_missing(self):
        with self.assertRaises(ValueError):
            check.read_table("| `regard/base` | x | cli |\n")
        with self.assertRaises(ValueError):
            check.read_table("no table\n")

    def test_a_whole_tree_with_one_wrong_file_fails(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "regard/base"))
            with open(os.path.join(root, "ARCHITECTURE.md"), "w", encoding="utf-8") as file:
                file.write(TABLE)
            self.assertEqual(check.main(root), 0)
            with open(os.path.join(root, "regard/base/wrong.cc"), "w", encoding="utf-8") as file:
                file.write('#include "regard/cli/verb.h"\n')
            self.assertEqual(check.main(root), 1)
            os.remove(os.path.join(root, "ARCHITECTURE.md"))
            self.assertEqual(check.main(root), 2)


if __name__ == "__main__":
    unittest.main()
