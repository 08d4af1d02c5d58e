#include "regard/evaluation/evaluate_files.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>

#include "regard/base/error.h"
#include "regard/evaluation/accuracy.h"
#include "regard/evaluation/alignment_error.h"
#include "tests/support/error_message.h"

namespace regard::evaluation {
namespace {

using tests::error_message;

class EvaluateFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("regard_evaluate_") + test->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

TEST_F(EvaluateFiles, PrintsALineForEachMetric) {
  const auto h = file("h", "the cat sat on the mat\r\nyes\n");
  const auto r = file("r", "the cat is on the mat\nyes");
  EXPECT_EQ(evaluate_files(h, {r}, {.metrics = {"accuracy", "bleu", "chrf", "chrf++", "bleu"}}),
            "accuracy = 50.00 (1 of 2 lines)\n"
            "BLEU = 38.26 (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:regard-0.1)\n"
            "chrF2 = 65.50 (nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:regard-0.1)\n"
            "chrF2++ = 67.35 (nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:regard-0.1)\n");
}

TEST_F(EvaluateFiles, ScoresSummaries) {
  const auto h = file("h", "the cat sat on the mat\na b c a b c\n");
  const auto r = file("r", "the cat is on the mat\na b c\n");
  // ROUGE-1 (5/6 + 2/3) / 2, ROUGE-2 (3/5 + 4/7) / 2
  EXPECT_EQ(evaluate_files(h, {r}, {.metrics = {"rouge", "repetition"}}),
            "ROUGE-1 = 75.00, ROUGE-2 = 58.57, ROUGE-L = 75.00 (f1|nrefs:1|stem:no|version:regard-0.1)\n"
            "repeated trigrams = 12.50 % (1 of 8)\n");
  const auto json =
      boost::json::parse(evaluate_files(h, {r}, {.metrics = {"rouge", "repetition"}, .json = true}));
  EXPECT_NEAR(json.at("rouge").at("rouge2").to_number<double>(), 100 * (3 / 5.0 + 4 / 7.0) / 2, 1e-12);
  EXPECT_EQ(json.at("repetition").at("repeated"), 1);
}

TEST_F(EvaluateFiles, ScoresBandsOfLength) {
  const auto h = file("h", "the cat sat\nyes\na b c d\nno\n");
  const auto r = file("r", "the cat sat\nno\na b c e\nno\n");
  const auto s = file("s", "le chat assis\noui\n  u  v w x y\nnon\n");
  EvaluateOptions options{.metrics = {"accuracy", "repetition"}, .lengths = s, .band_ends = {1, 2, 4}};
  EXPECT_EQ(evaluate_files(h, {r}, options),
            "accuracy = 50.00 (2 of 4 lines)\n"
            "repeated trigrams = 0.00 % (0 of 3)\n"
            "       words    lines   accuracy repeated %\n"
            "      0 to 1        2      50.00       0.00\n"
            "      3 to 4        1     100.00       0.00\n"
            "   5 or more        1       0.00       0.00\n");
  options.json = true;
  const auto bands = boost::json::parse(evaluate_files(h, {r}, options)).at("by_length").as_array();
  ASSERT_EQ(bands.size(), 3u);
  EXPECT_EQ(bands[1].at("from"), 3);
  EXPECT_EQ(bands[1].at("to"), 4);
  EXPECT_EQ(bands[1].at("accuracy").at("correct"), 1);
  EXPECT_FALSE(bands[2].as_object().contains("to"));
  options.lengths = file("short", "oui\n");
  EXPECT_NE(error_message<DataError>([&] { evaluate_files(h, {r}, options); }).find("has 1"),
            std::string::npos);
  options.band_ends = {4, 4};
  EXPECT_THROW(evaluate_files(h, {r}, options), UsageError);
}

TEST_F(EvaluateFiles, PrintsJson) {
  const auto h = file("h", "the cat sat on the mat\n");
  const auto r = file("r", "the cat is on the mat\n");
  const std::string text = evaluate_files(h, {r}, {.tokenization = Tokenization::none, .json = true});
  EXPECT_EQ(text.back(), '\n');
  const auto json = boost::json::parse(text).as_object();
  EXPECT_EQ(json.size(), 2u);
  const auto& bleu = json.at("bleu").as_object();
  EXPECT_NEAR(bleu.at("score").to_number<double>(), 37.9917842826, 1e-9);
  EXPECT_EQ(bleu.at("signature"), "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:regard-0.1");
  EXPECT_EQ(bleu.at("counts"), boost::json::parse("[5, 3, 1, 0]"));
  EXPECT_EQ(bleu.at("ref_len"), 6);
  EXPECT_NEAR(json.at("chrf").at("score").to_number<double>(), 64.5779420625, 1e-9);
}

TEST_F(EvaluateFiles, OnlyLineFeedsEndLines) {
  const auto h = file("h", "a\rb\u2028c\vd\n\n");
  const auto r = file("r", "a\rb\u2028c\vd\r\n\r\n");
  EXPECT_EQ(evaluate_files(h, {r}, {.metrics = {"accuracy"}}), "accuracy = 100.00 (2 of 2 lines)\n");
}

TEST_F(EvaluateFiles, SeveralReferences) {
  const auto h = file("h", "the cat sat on the mat today\na dog\n");
  const auto r1 = file("r1", "the cat is on the mat\nthe dog\n");
  const auto r2 = file("r2", "on the mat the cat sat\na dog\n");
  EXPECT_EQ(evaluate_files(h, {r1, r2}, {.metrics = {"accuracy"}}), "accuracy = 50.00 (1 of 2 lines)\n");
  EXPECT_NE(evaluate_files(h, {r1, r2}).find("(nrefs:2|"), std::string::npos);
}

TEST_F(EvaluateFiles, ErrorsNameTheFile) {
  const auto two = file("two", "a\nb\n");
  const auto three = file("three", "a\nb\nc\n");
  EXPECT_EQ(error_message<DataError>([&] { evaluate_files(two, {three}); }),
            two.string() + ": has 2 lines, but " + three.string() +
                " has 3; line N of one belongs to line N of the other");
  const auto empty = file("empty", "");
  EXPECT_EQ(error_message<DataError>([&] { evaluate_files(empty, {empty}); }),
            empty.string() + ": has no lines; there is nothing to score");
  const auto latin = file("latin", "a\n\xe9t\xe9\n");
  EXPECT_EQ(error_message<DataError>([&] { evaluate_files(two, {latin}); }),
            latin.string() + ":2: is not UTF-8; convert the file first, for example with iconv");
  const std::string missing = error_message<SystemError>([&] { evaluate_files(two, {path("missing")}); });
  EXPECT_NE(missing.find(path("missing").string()), std::string::npos) << missing;
  EXPECT_THROW(evaluate_files(two, {two}, {.metrics = {"ter"}}), UsageError);
  EXPECT_THROW(evaluate_files(two, {two}, {.metrics = {}}), UsageError);
  EXPECT_THROW(evaluate_files(two, {}), UsageError);
}

TEST_F(EvaluateFiles, AlignmentErrorRate) {
  // A = {0-0, 1-1, 2-2, 3-3}, S = {0-0, 1-1, 2-3}, P = S and {2-2}: 1 - (2 + 3) / (4 + 3) = 2/7.
  const auto a = file("a", "0-0 1-1  2-2\t3-3 \n\n");
  const auto g = file("g", "0-0 1-1 2?2 2-3\r\n\n");
  EXPECT_EQ(evaluate_alignment_files(a, g), "AER = 28.57 (precision 75.00, recall 66.67, 4 links, 3 sure)\n");
  const auto json = boost::json::parse(evaluate_alignment_files(a, g, true));
  EXPECT_NEAR(json.at("aer").at("score").to_number<double>(), 200.0 / 7, 1e-12);
  for (const char* wrong :
       {"0-0\n0-\n", "0-0\n-1-0\n", "0-0\n1:2\n", "0-0\n1-2x\n", "0-0\n99999999999999999999-1\n"}) {
    const auto bad = file("bad", wrong);
    const std::string text = error_message<DataError>([&] { evaluate_alignment_files(bad, g); });
    EXPECT_EQ(text.find(bad.string() + ":2: '"), 0u) << text;
  }
  const auto one = file("one", "0-0\n");
  EXPECT_THROW(evaluate_alignment_files(one, g), DataError);
}

TEST(AlignmentError, EmptySidesAreDefined) {
  const std::vector<Links> none(1), some{parse_links("0-0 1p1")};
  EXPECT_EQ(some[0].sure.size(), 1u);
  EXPECT_EQ(some[0].possible.size(), 2u);
  EXPECT_EQ(alignment_error(none, none).rate, 0);
  EXPECT_EQ(alignment_error(none, some).rate, 1);
  EXPECT_EQ(alignment_error(some, none).rate, 1);
  EXPECT_THROW(alignment_error(none, {}), ShapeError);
}

TEST(Accuracy, CountsExactLines) {
  const std::vector<std::string> h = {"a", "b ", ""}, r = {"a", "b", ""};
  EXPECT_EQ(accuracy(h, r).correct, 2);
  EXPECT_NEAR(accuracy(h, r).score, 200.0 / 3, 1e-12);
  EXPECT_EQ(accuracy(std::span<const std::string>(), std::span<const std::string>()).score, 0);
  EXPECT_THROW(accuracy(h, std::span(r).first(2)), ShapeError);
}

}  // namespace
}  // namespace regard::evaluation
