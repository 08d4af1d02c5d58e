#include "regard/evaluation/rouge.h"

#include <gtest/gtest.h>

#include "regard/base/error.h"

namespace regard::evaluation {
namespace {

using Lines = std::vector<std::string>;

struct Case {
  const char* what;
  std::string hypothesis;
  Lines references;
  double rouge1, rouge2, rougeL;
};

// Counted by hand; the package rouge-score 0.1.2 gives the same.
const Case kCases[] = {
    {"equal", "a b c", {"a b c"}, 1, 1, 1},
    {"five of six words, three of five pairs",
     "the cat sat on the mat",
     {"the cat is on the mat"},
     5 / 6.0,
     3 / 5.0,
     5 / 6.0},
    {"a word counts as often as both have it", "a a a a b", {"a a c b b"}, 3 / 5.0, 1 / 4.0, 3 / 5.0},
    {"P = 1, R = 3/4 and 2/3", "the the the", {"the the the the"}, 6 / 7.0, 4 / 5.0, 6 / 7.0},
    {"order matters to pairs and sequences", "a b c d", {"d c b a"}, 1, 0, 1 / 4.0},
    {"each score takes its best reference",
     "Police killed the gunman.",
     {"police kill the gunman", "the gunman kill police", "the gunman police killed"},
     1,
     2 / 3.0,
     3 / 4.0},
    {"nothing said", "", {"a b"}, 0, 0, 0},
    {"nothing to say", "a b", {""}, 0, 0, 0},
    {"no words", "?!", {"..."}, 0, 0, 0},
    {"one word has no pairs", "a", {"a"}, 1, 0, 1},
    {"capitals and punctuation",
     "It's a state-of-the-art (2019) model, isn't it?",
     {"state of the art models in 2019; it is"},
     4 / 7.0,
     6 / 19.0,
     4 / 7.0},
    {"only a-z and 0-9 are letters, also those whose small letter is one",
     "Größe 25 \u212A, \u0130stanbul",
     {"gr e 25 k i stanbul"},
     1,
     1,
     1},
};

TEST(Rouge, KnownValues) {
  for (const Case& c : kCases) {
    std::vector<Lines> references;
    for (const std::string& reference : c.references) references.push_back({reference});
    const Rouge result = rouge(Lines{c.hypothesis}, references);
    EXPECT_NEAR(result.rouge1, c.rouge1, 1e-15) << c.what;
    EXPECT_NEAR(result.rouge2, c.rouge2, 1e-15) << c.what;
    EXPECT_NEAR(result.rougeL, c.rougeL, 1e-15) << c.what;
  }
}

/// Lines of up to 29 words, small numbers among them more often than large ones.
class RandomLines {
 public:
  Lines operator()(int count) {
    Lines lines(static_cast<size_t>(count));
    for (std::string& line : lines) {
      const int64_t words = below(30);
      for (int64_t k = 0; k < words; ++k) {
        const int64_t a = below(12);
        line += (k > 0 ? " w" : "w") + std::to_string(a * below(12));
      }
    }
    return lines;
  }

 private:
  int64_t below(int64_t n) {
    state_ = (state_ * 1103515245 + 12345) % (int64_t{1} << 31);
    return (state_ >> 16) % n;
  }
  int64_t state_ = 5;
};

// The numbers are those of the package rouge-score 0.1.2 for the same 300 lines.
TEST(Rouge, EqualsThePackageOnRandomLines) {
  RandomLines random;
  const Lines hypotheses = random(300), first = random(300), second = random(300);
  const Rouge one = rouge(hypotheses, std::span(&first, 1));
  EXPECT_NEAR(one.rouge1, 0.19774211617435697, 1e-14);
  EXPECT_NEAR(one.rouge2, 0.012917896069214773, 1e-14);
  EXPECT_NEAR(one.rougeL, 0.14666404590479476, 1e-14);
  const Rouge two = rouge(hypotheses, std::vector{first, second});
  EXPECT_NEAR(two.rouge1, 0.271875742745651, 1e-14);
  EXPECT_NEAR(two.rouge2, 0.025067131976030596, 1e-14);
  EXPECT_NEAR(two.rougeL, 0.19402093367047168, 1e-14);
}

TEST(Rouge, UnequalLinesAreRefused) {
  const Lines two = {"a", "b"}, one = {"a"};
  EXPECT_THROW(rouge(two, std::vector{two, one}), ShapeError);
  EXPECT_THROW(rouge(two, {}), ShapeError);
  EXPECT_EQ(rouge(Lines(), std::vector<Lines>(1)).rouge1, 0);
}

TEST(RepeatedTrigrams, AreCountedWithinALine) {
  // abc bca cab abc; aaa aaa; none across lines
  const RepeatedTrigrams result = repeated_trigrams(Lines{"a b c, A B C!", "a a a a", "a b", ""});
  EXPECT_EQ(result.total, 6);
  EXPECT_EQ(result.repeated, 2);
  EXPECT_EQ(result.share(), 2 / 6.0);
  EXPECT_EQ(repeated_trigrams(Lines{"a b"}).share(), 0);
}

}  // namespace
}  // namespace regard::evaluation
