#include "regard/evaluation/tokenization.h"

#include <gtest/gtest.h>

#include "regard/base/error.h"
#include "regard/evaluation/unicode.h"
#include "regard/text/utf8.h"

namespace regard::evaluation {
namespace {

std::string tokens(std::string_view line, Tokenization tokenization) {
  std::string result;
  for (const auto& token : tokenize(line, tokenization)) result += (result.empty() ? "" : " ") + utf8(token);
  return result;
}

struct Case {
  const char* line;
  const char* mteval_13a;
  const char* international;
};

// From sacreBLEU 2.6.0.
const Case kCases[] = {
    {"Tom &amp; &quot;Jerry&quot; &lt;b&gt; &amp;lt;", "Tom & \" Jerry \" < b > <",
     "Tom & amp ; & quot ; Jerry & quot ; & lt ; b & gt ; & amp ; lt ;"},
    {"It cost 1,234.56 dollars, or 3.5% (approx.).", "It cost 1,234.56 dollars , or 3.5 % ( approx . ) .",
     "It cost 1,234.56 dollars , or 3.5 % ( approx . ) ."},
    {"well-known 1990-1995 state-of-the-art", "well-known 1990 - 1995 state-of-the-art",
     "well - known 1990-1995 state - of - the - art"},
    {"<skipped>end.", "end .", "< skipped > end ."},
    {"a..b ,,c 5. .5 5,x x,5", "a . . b , , c 5 . . 5 5 , x x , 5", "a . . b , , c 5 . . 5 5 , x x , 5"},
    {"rock'n'roll l'eau, d’accord – non…", "rock'n'roll l'eau , d’accord – non…",
     "rock ' n ' roll l ' eau , d ’ accord – non …"},
    {"50€ + ½ a_b [x]{y}~z^w|v", "50€ + ½ a _ b [ x ] { y } ~ z ^ w | v",
     "50 € + ½ a _ b [ x ] { y } ~ z ^ w | v"},
    {"año 2020.", "año 2020 .", "año 2020."},
    {"12.", "12 .", "12."},
    {"“1.5”—3,5", "“1.5”—3,5", "“1.5 ” — 3,5"},
    {"日本語。テスト、１２３．５", "日本語。テスト、１２３．５", "日本語 。 テスト 、 １２３．５"},
    {"a\u00a0b\u3000c\u2009d", "a b c d", "a b c d"},
    {"", "", ""},
    {"   ", "", ""},
    {"x\u200bd", "x\u200bd", "x\u200bd"},
    {"é.è,ê", "é . è , ê", "é . è , ê"},
    {"Z.\t", "Z .", "Z ."},
    {"٣.٤ Ⅷ.x", "٣ . ٤ Ⅷ . x", "٣.٤ Ⅷ . x"},
    {"a@b.com http://x.y/z?q=1&r=2", "a @ b . com http : / / x . y / z ? q = 1 & r = 2",
     "a @ b . com http : / / x . y / z ? q = 1 & r = 2"},
};

TEST(Tokenization, TokensAreSacreBleus) {
  for (const Case& c : kCases) {
    EXPECT_EQ(tokens(c.line, Tokenization::mteval_13a), c.mteval_13a) << c.line;
    EXPECT_EQ(tokens(c.line, Tokenization::international), c.international) << c.line;
  }
  EXPECT_EQ(tokens("a-\nb\nc", Tokenization::mteval_13a), "ab c");
  EXPECT_EQ(tokens("Tom &amp; l’été.\u00a0", Tokenization::character), "T o m & a m p ; l ’ é t é .");
  EXPECT_EQ(tokens("  l'eau,\u3000oui. \t", Tokenization::none), "l'eau, oui.");
}

TEST(Tokenization, NamesGoBothWays) {
  for (const char* each : {"13a", "none", "intl", "char"}) EXPECT_EQ(name(tokenization_named(each)), each);
  EXPECT_THROW(tokenization_named("zh"), UsageError);
}

TEST(Unicode, WhiteSpaceIsPythons) {
  // The code points of which str.isspace() is true in Python 3.11.
  const std::u32string expected =
      U"\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
      U"\u2009\u200a\u2028\u2029\u202f\u205f\u3000";
  std::u32string spaces;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (text::is_space(c)) spaces += c;
  }
  EXPECT_EQ(spaces, expected);
}

TEST(Unicode, BytesThatAreNotUtf8SurviveAndCountOne) {
  const std::string bytes = "a\xff\xc3 \xed\xa0\x80\xe2\x82";
  EXPECT_EQ(code_points(bytes).size(), 9u);
  EXPECT_EQ(utf8(code_points(bytes)), bytes);
  EXPECT_EQ(utf8(code_points("é€😀")), "é€😀");
  EXPECT_EQ(code_points("é€😀").size(), 3u);
}

}  // namespace
}  // namespace regard::evaluation
