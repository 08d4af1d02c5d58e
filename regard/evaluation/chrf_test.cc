#include "regard/evaluation/chrf.h"

#include <gtest/gtest.h>

#include "regard/base/error.h"
#include "regard/evaluation/known_answers.h"

namespace regard::evaluation {
namespace {

using Lines = std::vector<std::string>;

struct Case {
  const char* what;
  Lines hypotheses;
  std::vector<Lines> references;
  double chrf, chrf_plus_plus;
};

// From sacreBLEU 2.6.0.
const Case kCases[] = {
    {"one", {"the cat sat on the mat"}, {{"the cat is on the mat"}}, 64.5779420625, 66.3606707208},
    {"entities",
     {"Tom &amp; Jerry cost 1,234.56 dollars.", "well-known 1990-1995 state-of-the-art, yes"},
     {{"Tom & Jerry cost 1,234.56 dollars .", "well-known 1990-1996 state-of-the-art yes"}},
     85.5729987170,
     79.3893762113},
    {"empty hypothesis", {"", "a b c d e"}, {{"x y z", "a b c d e"}}, 84.0554592721, 80.0},
    {"empty reference", {"x y z", "a b c d e"}, {{"", "a b c d e"}}, 100, 100},
    {"both empty", {"", "a b c d e"}, {{"", "a b c d e"}}, 100, 100},
    {"all empty", {""}, {{""}}, 0, 0},
    {"hypotheses empty", {"", ""}, {{"a b", "c"}}, 0, 0},
    {"no match", {"a b c d"}, {{"e f g h"}}, 0, 0},
    {"short", {"a b"}, {{"a b"}}, 100, 100},
    {"short, different", {"a b c"}, {{"a b d"}}, 38.8888888889, 46.6666666667},
    {"Chinese",
     {"我喜欢吃苹果。", "今天天气很好"},
     {{"我爱吃苹果。", "今天的天气真好"}},
     26.4809264809,
     22.6979369837},
    {"two references",
     {"the cat sat on the mat today", "a dog"},
     {{"the cat is on the mat", "the dog"}, {"on the mat the cat sat", "a dog barks"}},
     67.1045062817,
     70.3681855471},
    {"punctuation",
     {"(hi) he said: \"no\".", "l'été, déjà…"},
     {{"(hi) she said: \"no\"!", "l'été déjà ..."}},
     58.0571937303,
     54.7493974650},
};

// Case 18 is among the samples: empty references and hypotheses.
TEST(Chrf, EqualsSacreBleu) {
  for (const Case& c : kCases) {
    EXPECT_NEAR(corpus_chrf(c.hypotheses, c.references).score, c.chrf, 1e-9) << c.what;
    EXPECT_NEAR(corpus_chrf(c.hypotheses, c.references, ChrfKind::chrf_plus_plus).score, c.chrf_plus_plus,
                1e-9)
        << c.what;
  }
}

TEST(Chrf, EqualsSacreBleuOnRealText) {
  if (!known_answers::present()) GTEST_SKIP() << "no data at " << known_answers::folder();
  const Lines hypotheses = known_answers::hypotheses();
  const Lines references = known_answers::references();
  ASSERT_EQ(hypotheses.size(), 1997u);
  EXPECT_NEAR(corpus_chrf(hypotheses, references).score, 57.7207, 5.1e-5);
  EXPECT_NEAR(corpus_chrf(hypotheses, references, ChrfKind::chrf_plus_plus).score, 55.5232, 5.1e-5);
}

TEST(Chrf, SignatureSaysWhatWasCounted) {
  const Lines lines = {"a"};
  EXPECT_EQ(corpus_chrf(lines, lines).signature,
            "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:regard-0.1");
  EXPECT_EQ(corpus_chrf(lines, lines, ChrfKind::chrf_plus_plus).signature,
            "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:regard-0.1");
}

TEST(Chrf, UnequalLinesAreRefused) {
  const Lines two = {"a", "b"}, one = {"a"};
  EXPECT_THROW(corpus_chrf(two, one), ShapeError);
  EXPECT_THROW(corpus_chrf(two, std::vector<Lines>()), ShapeError);
  EXPECT_EQ(corpus_chrf(Lines(), Lines()).score, 0);
}

}  // namespace
}  // namespace regard::evaluation
