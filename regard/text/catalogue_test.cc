#include "regard/text/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "regard/base/random.h"
#include "tests/support/error_message.h"

namespace regard::text {
namespace {

const std::string kHeader =
    "msgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n\"Plural-Forms: nplurals=2; "
    "plural=(n > 1);\\n\"\n\n";

std::string po_error(const std::string& text) {
  return tests::error_message([&] { parse_po(text, "fr.po"); });
}

std::vector<Pair> po_pairs(const std::string& text) { return catalogue_pairs(parse_po(text, "fr.po")); }

std::string number(uint32_t value, bool big) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * (big ? 3 - i : i)));
  return bytes;
}

/// A MO file as the manual draws it: header, two tables, strings.
std::string mo_of(const std::vector<std::pair<std::string, std::string>>& entries, bool big) {
  const auto count = static_cast<uint32_t>(entries.size());
  std::string keys, values, strings;
  const uint32_t start = 28 + 16 * count;
  const auto add = [&](std::string& table, const std::string& text) {
    table += number(static_cast<uint32_t>(text.size()), big) +
             number(start + static_cast<uint32_t>(strings.size()), big);
    strings += text + '\0';
  };
  for (const auto& entry : entries) add(keys, entry.first);
  for (const auto& entry : entries) add(values, entry.second);
  std::string bytes;
  for (const uint32_t value : {0x950412DEu, 0u, count, 28u, 28 + 8 * count, 0u, start})
    bytes += number(value, big);
  return bytes + keys + values + strings;
}

const std::vector<std::pair<std::string, std::string>> kEntries = {
    {"", "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n > 1);\n"},
    {"Open", "Ouvrir"},
    {std::string("%d file\0%d files", 16), std::string("%d fichier\0%d fichiers", 22)},
    {"menu\4Close", "Fermer l'écran"},
};

TEST(Po, ReadsEntriesWithContextsPluralsAndContinuations) {
  const auto pairs = po_pairs(
      kHeader +
      "# a comment\n#. note\n#: a.c:1\nmsgid \"Open\"\nmsgstr \"Ouvrir\"\n\n"
      "msgctxt \"menu\"\nmsgid \"\"\n\"Close \"\n\"it\"\nmsgstr \"Ferme\" \"r\"\n\n"
      "msgid \"%d file\"\nmsgid_plural \"%d files\"\nmsgstr[0] \"%d fichier\"\nmsgstr[1] \"%d fichiers\"\n");
  EXPECT_EQ(pairs, (std::vector<Pair>{{"Open", "Ouvrir", "", 9},
                                      {"Close it", "Fermer", "menu", 12},
                                      {"%d file", "%d fichier", "", 18},
                                      {"%d files", "%d fichiers", "", 18}}));
}

TEST(Po, PluralsFollowTheHeader) {
  const std::string one = "msgid \"\"\nmsgstr \"Plural-Forms: nplurals=1; plural=0;\\n\"\n";
  EXPECT_EQ(po_pairs(one + "msgid \"a\"\nmsgid_plural \"b\"\nmsgstr[0] \"c\"\n"),
            (std::vector<Pair>{{"a", "c", "", 3}, {"b", "c", "", 3}}));
  EXPECT_EQ(po_error(one + "msgid \"a\"\nmsgid_plural \"b\"\nmsgstr[0] \"c\"\nmsgstr[1] \"d\"\n"),
            "fr.po:6: msgstr[1], but the header says nplurals=1; correct one of them");
  const std::string three = "msgid \"\"\nmsgstr \"Plural-Forms: nplurals=3; plural=0;\\n\"\n";
  EXPECT_EQ(po_pairs(three +
                     "msgid \"a\"\nmsgid_plural \"b\"\nmsgstr[0] \"c\"\nmsgstr[1] \"d\"\nmsgstr[2] \"e\"\n"),
            (std::vector<Pair>{{"a", "c", "", 3}, {"b", "d", "", 3}, {"b", "e", "", 3}}));
}

// Case 21: previous msgids with junk, fuzzy and obsolete entries; plurals are in PluralsFollowTheHeader.
TEST(Po, FuzzyObsoleteAndPreviousAreNoPairs) {
  const auto pairs = po_pairs(
      kHeader +
      "#, fuzzy\n#| msgid \"junk \\q unclosed\n#| msgctxt\n#|\nmsgid \"a\"\nmsgstr \"b\"\n\n"
      "#, c-format\n#| msgid \"old\"\n#| \"\n#| junk junk [\nmsgid \"c\"\nmsgstr \"d\"\n\n"
      "#, fuzzy\n#~ msgid \"e\"\n#~ msgstr \"f\"\n\n#~| msgid \"x\"\n"
      "msgid \"g\"\nmsgstr \"h\"\n#, c-format, fuzzy\nmsgid \"i\"\nmsgstr \"j\"\nmsgid \"k\"\nmsgstr \"\"\n"
      "#~ msgid \"l\"\n#~ msgstr \"m\"");
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].source + "=" + pairs[0].target, "c=d");
  EXPECT_EQ(pairs[1].source + "=" + pairs[1].target, "g=h");
}

// Case 22, reading.
TEST(Po, EscapesAreReadOnce) {
  const auto pairs =
      po_pairs(kHeader + "msgid \"a\\\\n\\n\\t\\\"/\\r\"\nmsgstr \"\\\\\\\\ / \\101\\x42 \\\\t\"\n");
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].source, "a\\n\n\t\"/\r");
  EXPECT_EQ(pairs[0].target, "\\\\ / AB \\t");
}

TEST(Po, ErrorsNameFileAndLine) {
  EXPECT_EQ(po_error("msgid \"a\nmsgstr \"b\"\n"),
            "fr.po:1: has a string that does not end; correct the line");
  EXPECT_EQ(po_error("\n\nmsgid \"a\\q\"\n"), "fr.po:3: has the unknown escape \\q; correct the line");
  EXPECT_EQ(po_error("msgstr \"a\"\n"), "fr.po:1: msgstr without msgid; complete the entry");
  EXPECT_EQ(po_error("msgid \"a\"\n\nmsgid \"b\"\nmsgstr \"c\"\n"),
            "fr.po:1: msgid without msgstr; complete the entry");
  EXPECT_EQ(po_error("msgid \"a\"\nmsgstr \"b\"\n\nmsgid \"c\""),
            "fr.po:4: msgid without msgstr; complete the entry");
  EXPECT_EQ(po_error("msgid \"a\"\nmsgid_plural \"b\"\nmsgstr \"c\"\n"),
            "fr.po:3: msgstr without a number after msgid_plural; write msgstr[N]");
  EXPECT_EQ(po_error("msgid \"a\"\nmsgid_plural \"b\"\nmsgstr[1] \"c\"\n"),
            "fr.po:3: msgstr out of order, expected number 0; correct the entry");
  EXPECT_EQ(po_error("msgid \"a\"\nmsgstr[99999999999999999999] \"c\"\n"),
            "fr.po:2: has a plural form's number above 99; correct the line");
  EXPECT_EQ(po_error("msgid \"a\"\nmessage \"b\"\n"), "fr.po:2: unknown keyword message; correct the line");
  EXPECT_EQ(po_error("msgid\n"), "fr.po:1: msgid without a string; correct the line");
  EXPECT_EQ(po_error("msgid \"a\"\nmsgstr \"\xE9\"\n"),
            "fr.po:2: is not UTF-8; convert it with iconv or msgconv");
  EXPECT_EQ(po_error("msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=x-none\\n\"\n"),
            "fr.po: is in an unknown charset x-none; correct its header");
}

TEST(Po, OtherCharsetsAreConverted) {
  const auto pairs = po_pairs(
      "msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=ISO-8859-15\\n\"\n\nmsgid \"a\"\nmsgstr "
      "\"\xE9\xA4\"\n");
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].target, "é€");
}

TEST(Po, CrlfAndNoFinalNewlineAndEmptyFiles) {
  EXPECT_EQ(po_pairs("msgid \"a\"\r\nmsgstr \"b\"").size(), 1u);
  EXPECT_TRUE(po_pairs("").empty());
  EXPECT_TRUE(po_pairs("\n# nothing\n").empty());
}

TEST(Mo, BothByteOrders) {
  for (const bool big : {false, true}) {
    const Catalogue catalogue = parse_mo(mo_of(kEntries, big), "fr.mo");
    EXPECT_EQ(catalogue.plurals, 2);
    EXPECT_EQ(catalogue_pairs(catalogue), (std::vector<Pair>{{"Open", "Ouvrir", "", 2},
                                                             {"%d file", "%d fichier", "", 3},
                                                             {"%d files", "%d fichiers", "", 3},
                                                             {"Close", "Fermer l'écran", "menu", 4}}));
  }
}

TEST(Mo, EveryCutIsNamed) {
  const std::string bytes = mo_of(kEntries, false);
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A buffer of just that size lets the address sanitizer see a read past its end.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    try {
      parse_mo({cut.data(), cut.size()}, "fr.mo");
      FAIL() << length;
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("fr.mo: ", 0), 0u);
    }
  }
}

TEST(Mo, HostileNumbersNeverReadOutside) {
  const std::string good = mo_of(kEntries, false);
  for (size_t at = 4; at + 4 <= 28 + 16 * kEntries.size(); at += 4) {
    for (const uint32_t value : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 0xFFFFFFF0u, 0x20000000u}) {
      std::string bytes = good;
      bytes.replace(at, 4, number(value, false));
      try {
        parse_mo(bytes, "fr.mo");
      } catch (const DataError&) {
      }
    }
  }
  std::string tables = good;
  tables.replace(8, 4, number(0xFFFFFFFF, false));
  EXPECT_THROW(parse_mo(tables, "fr.mo"), DataError);
  tables = good;
  tables.replace(28 + 4, 4, number(0xFFFFFFFF, false));
  EXPECT_THROW(parse_mo(tables, "fr.mo"), DataError);
}

TEST(Mo, RandomDamageGivesDataErrorOrAResult) {
  const std::string good = mo_of(kEntries, true);
  RandomStream random(7, 0);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (uint64_t n = 1 + random.below(4); n > 0; --n)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    try {
      catalogue_pairs(parse_mo(bytes, "fr.mo"));
    } catch (const DataError&) {
    }
  }
}

TEST(Mo, OverlappingStringsThatMultiplyTheFileAreRefused) {
  std::vector<std::pair<std::string, std::string>> entries(1000, {"k", "v"});
  entries.push_back({"long", std::string(100'000, 'x')});
  std::string bytes = mo_of(entries, false);
  const std::string place = bytes.substr(28 + 8 * 1001 + 8 * 1000, 8);
  for (size_t i = 0; i < 1000; ++i) bytes.replace(28 + 8 * 1001 + 8 * i, 8, place);
  EXPECT_THROW(parse_mo(bytes, "fr.mo"), DataError);
}

TEST(Mo, NotUtf8NamesTheEntry) {
  auto entries = kEntries;
  entries[1].second = "\xE9";
  EXPECT_THROW(parse_mo(mo_of(entries, false), "fr.mo"), DataError);
  EXPECT_THROW(parse_mo("msgid \"hello\" and more than 28 bytes", "fr.mo"), DataError);
}

TEST(Catalogue, RealPoFiles) {
  const std::filesystem::path folder = std::filesystem::path(REGARD_SHARED_DIR) / "data/cat_files/po";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is missing";
  int64_t files = 0, read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (format_of(entry.path()) != Format::po) continue;
    ++files;
    try {
      read += !read_pairs(entry.path()).empty();
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).rfind(entry.path().string(), 0), 0u) << error.what();
    }
  }
  EXPECT_GE(files, 20);
  EXPECT_GE(read, 15);
  // As `msgattrib --translated --no-fuzzy --no-obsolete` counts the entries, header apart;
  // plurals add one each.
  const auto pairs = read_pairs(folder / "okapi/Test_nautilus.af.po");
  EXPECT_EQ(pairs.size(), 1155u);
}

}  // namespace
}  // namespace regard::text
