#include "regard/text/readers.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace regard::text {
namespace {

using tests::error_message;
using Lines = std::vector<std::string>;

void write_gzip(const std::filesystem::path& path, const std::string& bytes) {
  const gzFile file = ::gzopen(path.c_str(), "wb");
  ASSERT_EQ(::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  ASSERT_EQ(::gzclose(file), Z_OK);
}

TEST(Readers, OnlyLfAndCrlfEndALine) {
  EXPECT_EQ(lines_of("a\nb\r\n\nc", "f"), (Lines{"a", "b", "", "c"}));
  EXPECT_EQ(lines_of("a\rb\x0C\xC2\x85 \xE2\x80\xA8 c\n", "f"), (Lines{"a\rb\x0C\xC2\x85 \xE2\x80\xA8 c"}));
  EXPECT_EQ(lines_of("a\r", "f"), (Lines{"a\r"}));
  EXPECT_EQ(lines_of("", "f"), Lines{});
  EXPECT_EQ(lines_of("\n", "f"), (Lines{""}));
  EXPECT_EQ(lines_of(" \n\t\n\xC2\xA0\n\xE3\x80\x80\n", "f"), (Lines{" ", "\t", "\xC2\xA0", "\xE3\x80\x80"}));
  EXPECT_EQ(lines_of("\xEF\xBB\xBF"
                     "a\n",
                     "f"),
            (Lines{"a"}));
}

// Case 16.
TEST(Readers, NulIsText) {
  const std::string text("a\0b\n\0\nc\0", 8);
  EXPECT_EQ(lines_of(text, "f"),
            (Lines{std::string("a\0b", 3), std::string("\0", 1), std::string("c\0", 2)}));
}

TEST(Readers, BytesThatAreNotUtf8AreNamedWithTheirLine) {
  EXPECT_EQ(error_message([] { lines_of("a\nb\nx\xE9t\n", "dir/f.fr"); }),
            "dir/f.fr:3: is not UTF-8 (byte 2 of the line); convert it with iconv");
}

TEST(Readers, ALineOfMegabytes) {
  const std::string text = std::string(5 << 20, 'x') + "\ny";
  const Lines lines = lines_of(text, "f");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), size_t{5} << 20);
}

TEST(Readers, MessagesAsLines) { EXPECT_EQ(line_of("a\n\nb\r\nc\rd\\n\t\r"), "a\\n\\nb\\nc d\\n\t "); }

TEST(Readers, GzipFilesAreRead) {
  const tests::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "line " + std::to_string(i) + "\n";
  write_gzip(folder / "a.en.gz", text);
  EXPECT_EQ(read_text(folder / "a.en.gz"), text);
  EXPECT_EQ(read_lines(folder / "a.en.gz").size(), 20'000u);
  const std::string bytes = read_file(folder / "a.en.gz");
  write_file_atomically(folder / "two.gz", bytes + bytes);
  EXPECT_EQ(read_text(folder / "two.gz"), text + text);
  write_file_atomically(folder / "cut.gz", bytes.substr(0, bytes.size() - 5));
  write_file_atomically(folder / "no.gz", "hello");
  write_file_atomically(folder / "empty.gz", "");
  for (const char* name : {"cut.gz", "no.gz", "empty.gz"}) {
    const std::string message = error_message([&] { read_text(folder / name); });
    EXPECT_NE(message.find(std::string(name) + ": is damaged or cut short"), std::string::npos) << message;
  }
}

TEST(Readers, ParallelFilesOfUnequalLengthNameBothCounts) {
  const tests::TemporaryFolder folder;
  write_file_atomically(folder / "a.en", "one\ntwo\nthree");
  write_file_atomically(folder / "a.fr", "un\r\ndeux\r\n");
  const std::string message = error_message([&] { read_parallel(folder / "a.en", folder / "a.fr"); });
  EXPECT_NE(message.find("a.en has 3 lines"), std::string::npos) << message;
  EXPECT_NE(message.find("a.fr has 2"), std::string::npos) << message;
  write_file_atomically(folder / "a.fr", "un\r\n\r\ntrois");
  const auto pairs = read_parallel(folder / "a.en", folder / "a.fr");
  EXPECT_EQ(pairs, (std::vector<Pair>{{"one", "un", "", 1}, {"two", "", "", 2}, {"three", "trois", "", 3}}));
  EXPECT_THROW(read_parallel(folder / "a.en", folder / "missing"), SystemError);
}

// Case 17: quotes, escapes, CRLF, no final newline.
TEST(Readers, TsvQuotesAreLiteralAndTabsEscaped) {
  const tests::TemporaryFolder folder;
  write_file_atomically(
      folder / "a.tsv",
      "say \"hi\tdis \"salut\"\tnote\r\n\na\\tb\tc\\nd\\\\e\nC:\\dir\t\\\n\"x\ty\"\t\t\nlast\tdernier");
  EXPECT_EQ(read_pairs(folder / "a.tsv"), (std::vector<Pair>{{"say \"hi", "dis \"salut\"", "", 1},
                                                             {"a\tb", "c\nd\\e", "", 3},
                                                             {"C:\\dir", "\\", "", 4},
                                                             {"\"x", "y\"", "", 5},
                                                             {"last", "dernier", "", 6}}));
  write_file_atomically(folder / "b.tsv", "a\tb\nc\n");
  EXPECT_NE(error_message([&] { read_pairs(folder / "b.tsv"); }).find("b.tsv:2: has no tab"),
            std::string::npos);
}

TEST(Readers, FormatsByName) {
  EXPECT_EQ(format_of("x/fr.po"), Format::po);
  EXPECT_EQ(format_of("x.pot"), Format::po);
  EXPECT_EQ(format_of("x.mo"), Format::mo);
  EXPECT_EQ(format_of("x.tsv.gz"), Format::tsv);
  EXPECT_EQ(format_of("x.po/train.en"), Format::automatic);
  EXPECT_THROW(read_pairs("x.en"), UsageError);
}

}  // namespace
}  // namespace regard::text
