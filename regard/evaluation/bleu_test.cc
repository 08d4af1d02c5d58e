#include "regard/evaluation/bleu.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "regard/base/error.h"
#include "regard/evaluation/known_answers.h"
#include "regard/evaluation/unicode.h"

namespace regard::evaluation {
namespace {

using Lines = std::vector<std::string>;

struct Answer {
  double score;
  std::array<int64_t, 4> counts, totals;
  double brevity_penalty;
  int64_t hypothesis_length, reference_length;
};

struct Case {
  const char* what;
  Lines hypotheses;
  std::vector<Lines> references;
  Answer answers[4];  // 13a, none, intl, char
};

constexpr std::array<Tokenization, 4> kTokenizations = {Tokenization::mteval_13a, Tokenization::none,
                                                        Tokenization::international, Tokenization::character};

// From sacreBLEU 2.6.0.
const Case kCases[] = {
    {"one",
     {"the cat sat on the mat"},
     {{"the cat is on the mat"}},
     {{37.9917842826, {5, 3, 1, 0}, {6, 5, 4, 3}, 1.0, 6, 6},
      {37.9917842826, {5, 3, 1, 0}, {6, 5, 4, 3}, 1.0, 6, 6},
      {37.9917842826, {5, 3, 1, 0}, {6, 5, 4, 3}, 1.0, 6, 6},
      {70.8587641194, {15, 12, 10, 8}, {17, 16, 15, 14}, 1.0, 17, 16}}},
    {"entities",
     {"Tom &amp; Jerry cost 1,234.56 dollars.", "well-known 1990-1995 state-of-the-art, yes"},
     {{"Tom & Jerry cost 1,234.56 dollars .", "well-known 1990-1996 state-of-the-art yes"}},
     {{64.3458884161, {12, 8, 6, 4}, {14, 12, 10, 8}, 1.0, 14, 13},
      {21.3935598905, {6, 2, 1, 0}, {10, 8, 6, 4}, 0.9048374180359595, 10, 11},
      {56.1941508851, {18, 13, 9, 6}, {22, 20, 18, 16}, 1.0, 22, 19},
      {84.4378462464, {66, 61, 56, 51}, {72, 70, 68, 66}, 1.0, 72, 67}}},
    {"empty hyp",
     {"", "a b c d e"},
     {{"x y z", "a b c d e"}},
     {{54.8811636094, {5, 4, 3, 2}, {5, 4, 3, 2}, 0.5488116360940264, 5, 8},
      {54.8811636094, {5, 4, 3, 2}, {5, 4, 3, 2}, 0.5488116360940264, 5, 8},
      {54.8811636094, {5, 4, 3, 2}, {5, 4, 3, 2}, 0.5488116360940264, 5, 8},
      {54.8811636094, {5, 4, 3, 2}, {5, 4, 3, 2}, 0.5488116360940264, 5, 8}}},
    {"empty ref",
     {"x y z", "a b c d e"},
     {{"", "a b c d e"}},
     {{74.7674390611, {5, 4, 3, 2}, {8, 6, 4, 2}, 1.0, 8, 5},
      {74.7674390611, {5, 4, 3, 2}, {8, 6, 4, 2}, 1.0, 8, 5},
      {74.7674390611, {5, 4, 3, 2}, {8, 6, 4, 2}, 1.0, 8, 5},
      {74.7674390611, {5, 4, 3, 2}, {8, 6, 4, 2}, 1.0, 8, 5}}},
    {"both empty",
     {"", "a b c d e"},
     {{"", "a b c d e"}},
     {{100.0000000000, {5, 4, 3, 2}, {5, 4, 3, 2}, 1.0, 5, 5},
      {100.0000000000, {5, 4, 3, 2}, {5, 4, 3, 2}, 1.0, 5, 5},
      {100.0000000000, {5, 4, 3, 2}, {5, 4, 3, 2}, 1.0, 5, 5},
      {100.0000000000, {5, 4, 3, 2}, {5, 4, 3, 2}, 1.0, 5, 5}}},
    {"all empty",
     {""},
     {{""}},
     {{0.0000000000, {0, 0, 0, 0}, {0, 0, 0, 0}, 1.0, 0, 0},
      {0.0000000000, {0, 0, 0, 0}, {0, 0, 0, 0}, 1.0, 0, 0},
      {0.0000000000, {0, 0, 0, 0}, {0, 0, 0, 0}, 1.0, 0, 0},
      {0.0000000000, {0, 0, 0, 0}, {0, 0, 0, 0}, 1.0, 0, 0}}},
    {"all hyp empty",
     {"", ""},
     {{"a b", "c"}},
     {{0.0000000000, {0, 0, 0, 0}, {0, 0, 0, 0}, 0.0, 0, 3},
      {0.0000000000, {0, 0, 0, 0}, {0, 0, 0, 0}, 0.0, 0, 3},
      {0.0000000000, {0, 0, 0, 0}, {0, 0, 0, 0}, 0.0, 0, 3},
      {0.0000000000, {0, 0, 0, 0}, {0, 0, 0, 0}, 0.0, 0, 3}}},
    {"no match",
     {"a b c d"},
     {{"e f g h"}},
     {{0.0000000000, {0, 0, 0, 0}, {4, 3, 2, 1}, 1.0, 4, 4},
      {0.0000000000, {0, 0, 0, 0}, {4, 3, 2, 1}, 1.0, 4, 4},
      {0.0000000000, {0, 0, 0, 0}, {4, 3, 2, 1}, 1.0, 4, 4},
      {0.0000000000, {0, 0, 0, 0}, {4, 3, 2, 1}, 1.0, 4, 4}}},
    {"short",
     {"a b"},
     {{"a b"}},
     {{0.0000000000, {2, 1, 0, 0}, {2, 1, 0, 0}, 1.0, 2, 2},
      {0.0000000000, {2, 1, 0, 0}, {2, 1, 0, 0}, 1.0, 2, 2},
      {0.0000000000, {2, 1, 0, 0}, {2, 1, 0, 0}, 1.0, 2, 2},
      {0.0000000000, {2, 1, 0, 0}, {2, 1, 0, 0}, 1.0, 2, 2}}},
    {"short3",
     {"a b c"},
     {{"a b d"}},
     {{0.0000000000, {2, 1, 0, 0}, {3, 2, 1, 0}, 1.0, 3, 3},
      {0.0000000000, {2, 1, 0, 0}, {3, 2, 1, 0}, 1.0, 3, 3},
      {0.0000000000, {2, 1, 0, 0}, {3, 2, 1, 0}, 1.0, 3, 3},
      {0.0000000000, {2, 1, 0, 0}, {3, 2, 1, 0}, 1.0, 3, 3}}},
    {"cjk",
     {"我喜欢吃苹果。", "今天天气很好"},
     {{"我爱吃苹果。", "今天的天气真好"}},
     {{0.0000000000, {0, 0, 0, 0}, {2, 0, 0, 0}, 1.0, 2, 2},
      {0.0000000000, {0, 0, 0, 0}, {2, 0, 0, 0}, 1.0, 2, 2},
      {0.0000000000, {1, 0, 0, 0}, {3, 1, 0, 0}, 1.0, 3, 3},
      {32.4586799188, {10, 5, 2, 1}, {13, 11, 9, 7}, 1.0, 13, 13}}},
    {"two",
     {"the cat sat on the mat today", "a dog"},
     {{"the cat is on the mat", "the dog"}, {"on the mat the cat sat", "a dog barks"}},
     {{42.2106812637, {8, 5, 2, 0}, {9, 7, 5, 4}, 1.0, 9, 8},
      {42.2106812637, {8, 5, 2, 0}, {9, 7, 5, 4}, 1.0, 9, 8},
      {42.2106812637, {8, 5, 2, 0}, {9, 7, 5, 4}, 1.0, 9, 8},
      {74.1480511954, {21, 19, 16, 13}, {26, 24, 22, 20}, 1.0, 26, 23}}},
    {"punct",
     {"(hi) he said: \"no\".", "l'été, déjà…"},
     {{"(hi) she said: \"no\"!", "l'été déjà ..."}},
     {{40.1224324268, {9, 6, 4, 2}, {13, 11, 9, 7}, 0.8574039191604413, 13, 15},
      {13.5213415247, {2, 0, 0, 0}, {6, 4, 2, 1}, 0.846481724890614, 6, 7},
      {40.8382465783, {12, 8, 5, 2}, {16, 14, 12, 10}, 0.9394130628134758, 16, 17},
      {67.7100179613, {24, 20, 16, 12}, {27, 25, 23, 21}, 0.9286029058931802, 27, 29}}},
};

void expect_equal(const Bleu& bleu, const Answer& answer, double tolerance, const std::string& what) {
  EXPECT_NEAR(bleu.score, answer.score, tolerance) << what;
  EXPECT_EQ(bleu.statistics.counts, answer.counts) << what;
  EXPECT_EQ(bleu.statistics.totals, answer.totals) << what;
  EXPECT_NEAR(bleu.brevity_penalty, answer.brevity_penalty, 1e-6) << what;
  EXPECT_EQ(bleu.statistics.hypothesis_length, answer.hypothesis_length) << what;
  EXPECT_EQ(bleu.statistics.reference_length, answer.reference_length) << what;
}

// Case 18 is among the samples: empty references and hypotheses, which count as length 0.
TEST(Bleu, EqualsSacreBleu) {
  for (const Case& c : kCases) {
    for (size_t t = 0; t < kTokenizations.size(); ++t) {
      const Bleu bleu = corpus_bleu(c.hypotheses, c.references, kTokenizations[t]);
      expect_equal(bleu, c.answers[t], 1e-9,
                   std::string(c.what) + " " + std::string(name(kTokenizations[t])));
    }
  }
}

struct SentenceCase {
  const char* hypothesis;
  Lines references;
  double score;
};

// From sacreBLEU 2.6.0 with effective_order=True.
const SentenceCase kSentences[] = {
    {"the cat sat on the mat", {"the cat is on the mat"}, 37.9917842826},
    {"Tom &amp; Jerry cost 1,234.56 dollars.", {"Tom & Jerry cost 1,234.56 dollars ."}, 100},
    {"well-known 1990-1995 state-of-the-art, yes",
     {"well-known 1990-1996 state-of-the-art yes"},
     27.7761903401},
    {"", {"x y z"}, 0},
    {"x y z", {""}, 0},
    {"", {""}, 0},
    {"a b", {"a b"}, 100},
    {"a b c", {"a b d"}, 55.0321208149},
    {"我喜欢吃苹果。", {"我爱吃苹果。"}, 0},
    {"the cat sat on the mat today", {"the cat is on the mat", "on the mat the cat sat"}, 41.1133616901},
    {"a dog", {"the dog", "a dog barks"}, 100},
    {"(hi) he said: \"no\".", {"(hi) she said: \"no\"!"}, 52.5381978885},
    {"l'été, déjà…", {"l'été déjà ..."}, 14.1272164615},
};

TEST(Bleu, SentencesEqualSacreBleu) {
  for (const SentenceCase& c : kSentences) {
    EXPECT_NEAR(sentence_bleu(c.hypothesis, c.references).score, c.score, 1e-9) << c.hypothesis;
  }
}

Answer answer_of(const boost::json::object& json) {
  return {json.at("score").to_number<double>(),
          boost::json::value_to<std::array<int64_t, 4>>(json.at("counts")),
          boost::json::value_to<std::array<int64_t, 4>>(json.at("totals")),
          json.at("bp").to_number<double>(),
          json.at("sys_len").to_number<int64_t>(),
          json.at("ref_len").to_number<int64_t>()};
}

// The first words of a line, with single blanks between.
std::string first_words(const std::string& line, size_t words) {
  const std::u32string text = code_points(line);
  std::string result;
  for (const auto word : split_words(text)) {
    if (words-- == 0) break;
    result += (result.empty() ? "" : " ") + utf8(word);
  }
  return result;
}

TEST(Bleu, EqualsSacreBleuOnRealText) {
  if (!known_answers::present()) GTEST_SKIP() << "no data at " << known_answers::folder();
  const Lines hypotheses = known_answers::hypotheses();
  const Lines references = known_answers::references();
  Lines reversed = hypotheses;
  std::reverse(reversed.begin(), reversed.end());
  Lines cut;
  for (size_t i = 0; i < 50; ++i) cut.push_back(first_words(hypotheses[i], 8));

  int compared = 0;
  for (const auto& value : known_answers::json_lines("expected.jsonl")) {
    const auto& json = value.as_object();
    const std::string what(json.at("case").as_string());
    const auto& options = json.at("options").as_object();
    if (json.at("metric") != "BLEU" || options.contains("lowercase")) continue;
    const Tokenization tokenization = tokenization_named(options.at("tokenize").as_string().c_str());
    Bleu bleu;
    if (what == "all 1997 segments") {
      bleu = corpus_bleu(hypotheses, references, tokenization);
    } else if (what.starts_with("two references")) {
      bleu = corpus_bleu(hypotheses, std::vector<Lines>{references, reversed}, tokenization);
    } else if (what.starts_with("first 50 segments")) {
      bleu = corpus_bleu(cut, std::span(references).first(50), tokenization);
    } else {
      continue;  // by length of a source that is not here
    }
    ++compared;
    expect_equal(bleu, answer_of(json), 5.1e-5, what);
  }
  EXPECT_EQ(compared, 6);
}

TEST(Bleu, SentencesEqualSacreBleuOnRealText) {
  if (!known_answers::present()) GTEST_SKIP() << "no data at " << known_answers::folder();
  const Lines hypotheses = known_answers::hypotheses();
  const Lines references = known_answers::references();
  for (const auto& value : known_answers::json_lines("expected-sentence-bleu.jsonl")) {
    const auto& json = value.as_object();
    const auto line = json.at("line").to_number<size_t>() - 1;
    const Bleu bleu = sentence_bleu(hypotheses[line], std::span(references).subspan(line, 1));
    EXPECT_NEAR(bleu.score, json.at("score").to_number<double>(), 5.1e-5) << "line " << line + 1;
  }
}

TEST(Bleu, SignatureSaysHowItWasCounted) {
  const Lines lines = {"a b c d"};
  EXPECT_EQ(corpus_bleu(lines, lines).signature,
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:regard-0.1");
  EXPECT_EQ(sentence_bleu(lines[0], lines, Tokenization::international).signature,
            "nrefs:1|case:mixed|eff:yes|tok:intl|smooth:exp|version:regard-0.1");
}

TEST(Bleu, UnequalLinesAreRefused) {
  const Lines two = {"a", "b"}, one = {"a"};
  EXPECT_THROW(corpus_bleu(two, one), ShapeError);
  EXPECT_THROW(corpus_bleu(one, two), ShapeError);
  EXPECT_THROW(sentence_bleu("a", {}), ShapeError);
  EXPECT_EQ(corpus_bleu(Lines(), Lines()).score, 0);
}

}  // namespace
}  // namespace regard::evaluation
