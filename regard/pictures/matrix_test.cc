#include "regard/pictures/matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "regard/pictures/text.h"
#include "regard/pictures/well_formed_xml.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace regard::pictures {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

AttentionMatrix small() { return {{"the", "cat"}, {"le", "chat"}, {0.9F, 0.1F, 0.3F, 0.7F}, "cats"}; }

AttentionMatrix large(size_t size, float weight) {
  AttentionMatrix matrix;
  for (size_t i = 0; i < size; ++i) {
    matrix.source.push_back("s" + std::to_string(i));
    matrix.target.push_back("t" + std::to_string(i));
  }
  matrix.weights.assign(size * size, weight);
  return matrix;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    result.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

TEST(TerminalMatrix, DrawsWordsDownwardsAndShades) {
  EXPECT_EQ(terminal_matrix(small()),
            "cats\n"
            "     t c\n"
            "     h a\n"
            "     e t\n"
            "le   ██░░\n"
            "chat ▒▒▓▓\n"
            "weight  ░░ ≥ 0.05 ▒▒ ≥ 0.25 ▓▓ ≥ 0.5 ██ ≥ 0.75\n");
}

TEST(TerminalMatrix, CjkLinesUp) {
  const AttentionMatrix matrix = {{"中文", "x"}, {"字", "abc"}, {1, 0, 0, 1}, ""};
  EXPECT_EQ(lines(terminal_matrix(matrix)),
            (std::vector<std::string>{"    中", "    文x", "字  ██", "abc   ██",
                                      lines(terminal_matrix(small())).back()}));
}

TEST(TerminalMatrix, ColourOfEachKind) {
  const AttentionMatrix matrix = {{"a", "b", "c"}, {"x"}, {0, 1, kNaN}, ""};
  const std::string indexed = lines(terminal_matrix(matrix, {.colour = true}))[1];
  EXPECT_EQ(indexed, "x \x1b[48;5;231m  \x1b[0m\x1b[48;5;18m  \x1b[0m");
  const std::string exact = lines(terminal_matrix(matrix, {.colour = true, .true_colour = true}))[1];
  EXPECT_EQ(exact, "x \x1b[48;2;255;255;255m  \x1b[0m\x1b[48;2;8;60;160m  \x1b[0m");
}

TEST(TerminalMatrix, WideOnesAreCutIntoBlocks) {
  const AttentionMatrix matrix = large(50, 1);
  const std::string text = terminal_matrix(matrix, {.width = 40});
  EXPECT_EQ(count(text, "source words "), 3U);
  EXPECT_NE(text.find("source words 1 to 18 of 50\n"), std::string::npos);
  EXPECT_NE(text.find("source words 37 to 50 of 50\n"), std::string::npos);
  for (const auto& line : lines(text)) {
    if (!line.starts_with("weight")) {
      EXPECT_LE(display_width(line), 40) << line;
    }
  }
  EXPECT_EQ(count(text, "██"), 50U * 50U + 1);
}

TEST(TerminalMatrix, EscapesControlCharacters) {
  const AttentionMatrix matrix = {{"\x1b[2J"}, {"a\nb\x07"}, {1}, "t\x1b]0;x\x07"};
  const std::string text = terminal_matrix(matrix);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_NE(text.find("a\\nb\\x07 ██\n"), std::string::npos);
}

TEST(TerminalMatrix, EmptyAndTinyTerminal) {
  EXPECT_EQ(terminal_matrix({}), "(no words)\n");
  EXPECT_EQ(terminal_matrix({{"a"}, {}, {}, "t"}), "t\n(no words)\n");
  EXPECT_EQ(count(terminal_matrix(small(), {.width = 0}), "source words"), 0U);
}

TEST(SvgMatrix, IsWellFormedWithEscapedWords) {
  const AttentionMatrix matrix = {{"<a>&\"", "\xff\x01"}, {"'b'", "مرحبا"}, {1, 0, 0.25F, 0.75F}, "<&>"};
  const std::string svg = svg_matrix(matrix);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_NE(svg.find("<title>&#39;b&#39; → &lt;a&gt;&amp;&quot;: 1.000</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>مرحبا → \uFFFD\uFFFD: 0.750</title>"), std::string::npos);
  EXPECT_EQ(valid_utf8(svg), svg);
}

TEST(SvgMatrix, CellsHaveTheColourOfTheirWeight) {
  const std::string svg = svg_matrix({{"a", "b", "c"}, {"x"}, {0, 1, 0.5F}, ""});
  EXPECT_EQ(count(svg, "<title>x → "), 3U);
  const auto cell = [&](const std::string& title) {
    const size_t begin = svg.rfind("<rect", svg.find(title));
    return svg.substr(begin, svg.find(" x=", begin) - begin);
  };
  EXPECT_EQ(cell("x → a: 0.000"), "<rect class=\"k0\" fill=\"#ffffff\"");
  EXPECT_EQ(cell("x → b: 1.000"), "<rect class=\"k32\" fill=\"#083ca0\"");
  EXPECT_TRUE(cell("x → c: 0.500").starts_with("<rect class=\"k16\""));
}

TEST(SvgMatrix, LongWordsAreCutAndWholeInTheTitle) {
  const std::string word(200, 'w');
  const std::string svg = svg_matrix({{word}, {word}, {1}, ""});
  EXPECT_EQ(count(svg, ">" + std::string(23, 'w') + "…<title>" + word + "</title>"), 2U);
}

TEST(SvgMatrix, AWordOfAMegabyteIsNotRepeated) {
  const std::string word(1000000, 'w');
  EXPECT_LT(svg_matrix({{word, word}, {word, word}, {1, 0, 0, 1}, word}).size(), 10000U);
}

TEST(SvgMatrix, NotANumberIsEmpty) {
  const std::string svg = svg_matrix({{"a", "b"}, {"x"}, {kNaN, 1}, ""});
  EXPECT_EQ(count(svg, "<title>x → "), 1U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(SvgMatrix, EmptyIsWellFormed) {
  EXPECT_EQ(xml_fault(svg_matrix({})), "");
  EXPECT_EQ(xml_fault(svg_matrix({{"a"}, {}, {}, ""})), "");
}

TEST(SvgMatrix, LargeOnesStayBounded) {
  const std::string uniform = svg_matrix(large(500, 1.0F / 500));
  EXPECT_LT(uniform.size(), 500000U);
  EXPECT_LT(svg_matrix(large(500, 1)).size(), 40000000U);
  EXPECT_LT(matrix_html(large(500, 1.0F / 500)).size(), 1000000U);
}

TEST(Matrix, WeightsMustFitTheWords) {
  const AttentionMatrix matrix = {{"a", "b"}, {"x"}, {1}, ""};
  EXPECT_THROW(svg_matrix(matrix), ShapeError);
  EXPECT_THROW(matrix_html(matrix), ShapeError);
  EXPECT_THROW(write_png("/nonexistent/x.png", matrix), ShapeError);
  EXPECT_EQ(tests::error_message<ShapeError>([&] { terminal_matrix(matrix); }),
            "[attention matrix] weights [1], expected [1, 2] (target words, source words)");
}

TEST(MatrixHtml, IsOnePageWithTheTable) {
  const std::string page = matrix_html({{"<a>", "b"}, {"x"}, {0.25F, kNaN}, "A & B"});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(page.find("<h1>A &amp; B</h1>"), std::string::npos);
  EXPECT_NE(page.find("<tr><th scope=\"row\"><bdi>x</bdi></th><td>0.25</td><td></td></tr>"),
            std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http", page.find("<body>")), page.find("http://www.w3.org/2000/svg"));
  EXPECT_EQ(page.find("src="), std::string::npos);
}

TEST(MatrixHtml, LargeTablesNameTheStrongest) {
  AttentionMatrix matrix = large(60, 0);
  matrix.weights[7] = 0.75F;
  matrix.weights[3] = 0.25F;
  const std::string table = matrix_table(matrix);
  EXPECT_NE(
      table.find(
          "<bdi>t0</bdi></th><td class=\"words\"><bdi>s7</bdi>: 0.75, <bdi>s3</bdi>: 0.25, <bdi>s0</bdi>"),
      std::string::npos);
}

TEST(MatrixTsv, HoldsWordsAndWeights) {
  EXPECT_EQ(matrix_tsv({{"a\tb", "c"}, {"x"}, {0.25F, kNaN}, ""}), "\ta\\tb\tc\nx\t0.25\tNaN\n");
}

TEST(MatrixPng, DrawsBesideItsData) {
  const tests::TemporaryFolder folder;
  const auto path = folder / "it's `touch x` <picture>.png";
  const AttentionMatrix matrix = {{"`touch y`", "'q", "中文", "a\nb"},
                                  {"@x", "\"$(touch z)\"", "\\"},
                                  std::vector<float>(12, kNaN),
                                  "t '\" `id`"};
  AttentionMatrix drawn = matrix;
  for (size_t i = 0; i < 11; ++i) drawn.weights[i] = static_cast<float>(i) / 11;
  try {
    write_png(path, drawn);
  } catch (const SystemError& error) {
    if (std::string(error.what()).find("gnuplot-nox") != std::string::npos) GTEST_SKIP() << error.what();
    throw;
  }
  const std::string bytes = read_file(path);
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(read_file(path.string() + ".tsv"), matrix_tsv(drawn));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

/// The picture's bytes; empty if gnuplot is not there.
std::string png_of(const AttentionMatrix& matrix) {
  const tests::TemporaryFolder folder;
  try {
    write_png(folder / "x.png", matrix);
  } catch (const SystemError&) {
    if (std::system("command -v gnuplot >/dev/null") == 0) throw;
    return "";
  }
  return read_file(folder / "x.png");
}

TEST(MatrixPng, PercentSignsInWordsArePercentSigns) {
  const std::string with = png_of({{"100%", "%d", "%s"}, {"%"}, {0.5F, 0.25F, 0.25F}, "100% %d"});
  if (with.empty()) GTEST_SKIP() << "gnuplot is not installed";
  // The number beneath the label, which gnuplot would write for %d, is 1.
  EXPECT_NE(with, png_of({{"100%", "1", "%s"}, {"%"}, {0.5F, 0.25F, 0.25F}, "100% %d"}));
}

TEST(MatrixPng, OneRowAndOneColumnAreDrawn) {
  const std::string faint = png_of({{"a", "b"}, {"x"}, {0.1F, 0.1F}, ""});
  if (faint.empty()) GTEST_SKIP() << "gnuplot is not installed";
  EXPECT_NE(faint, png_of({{"a", "b"}, {"x"}, {1.0F, 0.5F}, ""}));
  EXPECT_NE(png_of({{"a"}, {"x", "y"}, {0.1F, 0.1F}, ""}), png_of({{"a"}, {"x", "y"}, {1.0F, 0.5F}, ""}));
}

TEST(MatrixPng, MissingGnuplotNamesThePackage) {
  const tests::TemporaryFolder folder;
  try {
    write_png(folder / "x.png", small(), {.program = "no-such-gnuplot"});
    FAIL();
  } catch (const SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("gnuplot-nox"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "x.png.tsv"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.png"));
}

TEST(MatrixPng, FailuresAreErrors) {
  const tests::TemporaryFolder folder;
  EXPECT_THROW(write_png(folder / "x.png", small(), {.program = "false"}), SystemError);
  EXPECT_THROW(write_png(folder / "no/x.png", small()), SystemError);
  EXPECT_THROW(write_png(folder / "x.png", {}), DataError);
  EXPECT_THROW(write_png(folder / "a\nb.png", small()), UsageError);
}

}  // namespace
}  // namespace regard::pictures
