#include "regard/text/labelled.h"

#include <gtest/gtest.h>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "tests/support/temporary_folder.h"

namespace regard::text {
namespace {

TEST(Labelled, FieldsEscapesAndFurtherColumns) {
  const LabelledPair pair = labelled_pair("one\\ttwo\tthree \"four\"\tneutral\tmore", true, "f", 7);
  EXPECT_EQ(pair.premise, "one\ttwo");
  EXPECT_EQ(pair.hypothesis, "three \"four\"");
  EXPECT_EQ(pair.label, "neutral");
  EXPECT_EQ(pair.line, 7);
  EXPECT_EQ(labelled_pair("a\tb", false, "f", 1).label, "");
}

TEST(Labelled, WhatLacksAFieldIsNamed) {
  const tests::TemporaryFolder folder;
  write_file_atomically(folder / "pairs.tsv", "a\tb\tyes\n\nc\td\t\n");
  try {
    read_labelled(folder / "pairs.tsv");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("pairs.tsv:3: has no label"), std::string::npos) << error.what();
  }
  EXPECT_THROW(labelled_pair("no tab", false, "f", 1), DataError);
  write_file_atomically(folder / "good.tsv", "a\tb\tyes\r\n\nc\td\tno\n");
  const auto pairs = read_labelled(folder / "good.tsv");
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].label, "yes");
  EXPECT_EQ(pairs[1].line, 3);
}

}  // namespace
}  // namespace regard::text
