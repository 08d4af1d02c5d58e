// Translations put into PO files; cases/translation.md, 21 and 22: untouched entries come back byte for byte.

#include "regard/text/po_edit.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "regard/base/error.h"
#include "regard/base/random.h"

namespace regard::text {
namespace {

const std::string kFile =
    "# A translator's comment\nmsgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n"
    "\"Plural-Forms: nplurals=2; plural=(n > 1);\\n\"\n\n"
    "#: src/a.c:1\n#, c-format\nmsgid \"Save \\\"%s\\\"\"\nmsgstr   \"Enregistrer \"\n   \"\\\"%s\\\"\"\n\n"
    "#, fuzzy\n#| msgid \"Opne\"\nmsgid \"Open\"\nmsgstr \"Ouvrir\"\n\n"
    "msgctxt \"menu\"\nmsgid \"%d file\"\nmsgid_plural \"%d files\"\nmsgstr[0] \"\"\nmsgstr[1] \"\"\n\n"
    "#~ msgid \"old\"\n#~ msgstr \"vieux\"\n";

std::string edited(const std::string& file, const std::vector<PoEdit>& edits) {
  return edit_po(file, parse_po(file, "fr.po"), edits, "fr.po");
}

TEST(PoEdit, WithoutEditsEveryByteComesBack) {
  EXPECT_EQ(edited(kFile, {}), kFile);
  EXPECT_EQ(edited("\xEF\xBB\xBF" + kFile, {}), "\xEF\xBB\xBF" + kFile);
  EXPECT_EQ(edited("", {}), "");
}

TEST(PoEdit, OneEntryChangesAndNothingElse) {
  const std::string result = edited(kFile, {{2, {"%d fichier", "%d fichiers"}}});
  std::string expected = kFile;
  const std::string before = "msgstr[0] \"\"\nmsgstr[1] \"\"";
  expected.replace(expected.find(before), before.size(),
                   "msgstr[0] \"%d fichier\"\nmsgstr[1] \"%d fichiers\"");
  EXPECT_EQ(result, expected);
}

TEST(PoEdit, AFuzzyMarkIsAddedOnce) {
  EXPECT_NE(edited(kFile, {{0, {"x"}, true}}).find("#, c-format\n#, fuzzy\nmsgid \"Save"), std::string::npos);
  const std::string twice = edited(kFile, {{1, {"x"}, true}});
  EXPECT_EQ(twice.find("fuzzy"), twice.rfind("fuzzy"));
  EXPECT_TRUE(parse_po(edited(kFile, {{0, {"x"}, true}}), "fr.po").messages[0].fuzzy);
}

TEST(PoEdit, EscapesAreWrittenOnceAndReadBack) {
  const std::string text = "a\\b \"c\"\td/e\nf\r\n";
  const std::string result = edited(kFile, {{0, {text}}});
  EXPECT_NE(result.find("msgstr \"\"\n\"a\\\\b \\\"c\\\"\\td/e\\n\"\n\"f\\r\\n\""), std::string::npos)
      << result;
  EXPECT_EQ(parse_po(result, "fr.po").messages[0].strings[0], text);
}

TEST(PoEdit, AnyTextIsReadBack) {
  RandomStream random(1, 2);
  const std::string alphabet = "ab\"\\\n\t\r\a\b\f\v/%é ";
  for (int round = 0; round < 200; ++round) {
    std::vector<PoEdit> edits{{2, {"", ""}}, {0, {""}}};
    for (auto& edit : edits)
      for (auto& text : edit.strings)
        for (uint64_t n = random.below(12); n > 0; --n) text += alphabet[random.below(alphabet.size() - 4)];
    const Catalogue read = parse_po(edited(kFile, edits), "fr.po");
    EXPECT_EQ(read.messages[2].strings, edits[0].strings);
    EXPECT_EQ(read.messages[0].strings, edits[1].strings);
    EXPECT_EQ(read.messages[1].strings[0], "Ouvrir");
  }
}

TEST(PoEdit, LineEndsOfTheFileAreKept) {
  const std::string crlf = "msgid \"a\"\r\nmsgstr \"\"\r\n";
  EXPECT_EQ(edited(crlf, {}), crlf);
  EXPECT_EQ(edited(crlf, {{0, {"x\ny"}}}), "msgid \"a\"\r\nmsgstr \"\"\r\n\"x\\n\"\r\n\"y\"\r\n");
}

TEST(PoEdit, AnotherCharsetIsRefusedByName) {
  const std::string latin =
      "msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=ISO-8859-1\\n\"\n\nmsgid \"a\"\nmsgstr "
      "\"\xE9\"\n";
  try {
    edited(latin, {});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("fr.po: is not in UTF-8"), std::string::npos) << error.what();
  }
}

TEST(PoEdit, RealFilesComeBackByteForByte) {
  const std::filesystem::path folder = std::filesystem::path(REGARD_SHARED_DIR) / "data/cat_files/po";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is missing";
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (format_of(entry.path()) != Format::po) continue;
    const std::string bytes = read_text(entry.path()), name = entry.path().string();
    try {
      const Catalogue catalogue = parse_po(bytes, name);
      std::vector<PoEdit> same;  // every entry written anew with its own translation
      for (size_t i = 0; i < catalogue.messages.size(); ++i)
        same.push_back({i, catalogue.messages[i].strings});
      EXPECT_EQ(edit_po(bytes, catalogue, {}, name), bytes);
      const Catalogue again = parse_po(edit_po(bytes, catalogue, same, name), name);
      ASSERT_EQ(again.messages.size(), catalogue.messages.size());
      for (size_t i = 0; i < again.messages.size(); ++i)
        EXPECT_EQ(again.messages[i].strings, catalogue.messages[i].strings);
      ++files;
    } catch (const DataError&) {
      continue;  // malformed on purpose, or in another charset
    }
  }
  EXPECT_GE(files, 15);
}

}  // namespace
}  // namespace regard::text
