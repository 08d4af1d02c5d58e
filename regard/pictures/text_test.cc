#include "regard/pictures/text.h"

#include <gtest/gtest.h>

#include "regard/pictures/colour.h"
#include "regard/pictures/page.h"

namespace regard::pictures {
namespace {

TEST(PictureText, WidthOfScripts) {
  EXPECT_EQ(display_width("house"), 5);
  EXPECT_EQ(display_width("中文"), 4);
  EXPECT_EQ(display_width("e\u0301te\u0301"), 3);
  EXPECT_EQ(display_width("\u200b"), 0);
  EXPECT_EQ(display_width("👩‍👩‍👧"), 2);
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("▁the"), 4);
}

TEST(PictureText, EscapesMarkup) {
  EXPECT_EQ(xml_escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(xml_escaped(std::string_view("a\0b\x1b\xff", 5)), "a\uFFFDb\uFFFD\uFFFD");
}

TEST(PictureText, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(terminal_text("a\nb\t\x1b[31m\x7f\r"), "a\\nb\\t\\x1b[31m\\x7f\\r");
  EXPECT_EQ(terminal_text("\u202e\u009b"), "\\u{202e}\\x9b");
  EXPECT_EQ(terminal_text("\xc3"), "\uFFFD");
  EXPECT_EQ(terminal_text("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");
}

TEST(PictureText, TruncatesByColumns) {
  EXPECT_EQ(truncated("abcdef", 6), "abcdef");
  EXPECT_EQ(truncated("abcdefg", 6), "abcde…");
  EXPECT_EQ(truncated("中文字", 6), "中文字");
  EXPECT_EQ(truncated("中文字", 5), "中文…");
  EXPECT_EQ(truncated("中文字", 4), "中…");
  EXPECT_EQ(truncated("abc", 1), "…");
  EXPECT_EQ(truncated("abc", 0), "");
  EXPECT_EQ(truncated("e\u0301e\u0301e\u0301", 2), "e\u0301…");
}

TEST(PictureText, GraphemesKeepCombiningMarks) {
  const auto parts = graphemes("e\u0301中");
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].bytes, "e\u0301");
  EXPECT_EQ(parts[0].width, 1);
  EXPECT_EQ(parts[1].width, 2);
}

TEST(PictureColour, ScaleRunsFromWhiteToBlueInEvenSteps) {
  EXPECT_EQ(hex(light_scale(0)), "#ffffff");
  EXPECT_EQ(hex(light_scale(kLevels)), "#083ca0");
  const Rgb white = light_scale(0);
  double before = 1;
  for (int level = 1; level <= kLevels; ++level) {
    const double now = contrast(white, light_scale(level));
    EXPECT_GT(now, before) << level;
    before = now;
  }
}

TEST(PictureColour, ContrastIsWcags) {
  EXPECT_NEAR(contrast({0, 0, 0}, {255, 255, 255}), 21, 1e-9);
  EXPECT_NEAR(contrast({0x76, 0x76, 0x76}, {255, 255, 255}), 4.54, 0.01);
}

/// The colour of `--name` in the page's `which`-th rule (0 light, 1 dark).
Rgb page_colour(const std::string& page, const std::string& name, int which) {
  size_t at = page.find("--" + name + ": #");
  if (which == 1) at = page.find("--" + name + ": #", at + 1);
  const auto value = std::stoul(page.substr(at + name.size() + 5, 6), nullptr, 16);
  return {static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value)};
}

TEST(PictureColour, PageTextIsAa) {
  const std::string page = html_page("t", "");
  for (const int which : {0, 1}) {
    for (const char* ink : {"ink", "soft"}) {
      for (const char* paper : {"paper", "band"}) {
        EXPECT_GE(contrast(page_colour(page, ink, which), page_colour(page, paper, which)), 4.5)
            << ink << paper << which;
      }
    }
  }
  EXPECT_EQ(hex(page_colour(page, "paper", 1)), hex(dark_scale(0)));
}

TEST(PictureColour, Levels) {
  EXPECT_EQ(level_of(0), 0);
  EXPECT_EQ(level_of(0.5F), kLevels / 2);
  EXPECT_EQ(level_of(7), kLevels);
  EXPECT_EQ(level_of(-1), 0);
  EXPECT_EQ(level_of(std::numeric_limits<float>::quiet_NaN()), -1);
}

}  // namespace
}  // namespace regard::pictures
