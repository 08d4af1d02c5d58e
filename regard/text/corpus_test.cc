#include "regard/text/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "regard/text/toy_grammar.h"
#include "tests/support/temporary_folder.h"

namespace regard::text {
namespace {

TEST(Corpus, DropsAndCounts) {
  std::string words;
  for (int i = 0; i < 201; ++i) words += "w ";
  const std::vector<Pair> pairs = {{"a", "b", "", 1}, {"a", "b", "ctx", 2},     {" ", "b", "", 3},
                                   {"a", "", "", 4},  {"a", "c", "", 5},        {words, "x", "", 6},
                                   {"d", "d", "", 7}, {"e\nf", "g\r\nh", "", 8}};
  const Corpus corpus = build_corpus(pairs, {});
  EXPECT_EQ(corpus.read, 8);
  EXPECT_EQ(corpus.empty, 2);
  EXPECT_EQ(corpus.duplicates, 1);
  EXPECT_EQ(corpus.overlong, 1);
  EXPECT_EQ(corpus.copies, 0);
  EXPECT_EQ(corpus.distinct(), 4);
  EXPECT_EQ(corpus.train.back().source + "|" + corpus.train.back().target, "e\\nf|g\\nh");
  EXPECT_EQ(build_corpus(pairs, {.drop_copies = true}).copies, 1);
}

TEST(Corpus, NoHeldOutSourceIsTrainedOn) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 600; ++i)
    pairs.push_back({"s" + std::to_string(i % 300), "t" + std::to_string(i), "", i + 1});
  const Corpus corpus = build_corpus(pairs, {.dev = 40, .test = 50, .seed = 3});
  EXPECT_EQ(corpus.dev.size(), 40u);
  EXPECT_EQ(corpus.test.size(), 50u);
  EXPECT_EQ(corpus.train.size(), 420u);
  EXPECT_EQ(corpus.held_out, 90);
  EXPECT_EQ(corpus.distinct(), 600);
  std::multiset<std::string> held;
  for (const Pair& pair : corpus.dev) held.insert(pair.source);
  for (const Pair& pair : corpus.test) held.insert(pair.source);
  EXPECT_EQ(std::set<std::string>(held.begin(), held.end()).size(), 90u);
  for (const Pair& pair : corpus.train) EXPECT_EQ(held.count(pair.source), 0u);

  EXPECT_EQ(build_corpus(pairs, {.dev = 40, .test = 50, .seed = 3}).dev, corpus.dev);
  EXPECT_NE(build_corpus(pairs, {.dev = 40, .test = 50, .seed = 4}).dev, corpus.dev);
}

TEST(Corpus, RefusesToHoldOutEverything) {
  const std::vector<Pair> pairs = {{"a", "b", "", 1}, {"c", "d", "", 2}};
  EXPECT_THROW(build_corpus(pairs, {.dev = 1, .test = 1}), DataError);
  EXPECT_THROW(build_corpus(pairs, {.dev = INT64_MAX, .test = INT64_MAX}), DataError);
  EXPECT_THROW(build_corpus(pairs, {.dev = -1}), UsageError);
  EXPECT_THROW(build_corpus({}, {}), DataError);
  EXPECT_EQ(build_corpus(pairs, {.dev = 1}).train.size(), 1u);
}

TEST(Corpus, WritesLineFiles) {
  const tests::TemporaryFolder folder;
  const std::vector<Pair> pairs = {{"a\nb", "c", "", 1}, {"d", "e", "", 2}, {"f", "g", "", 3}};
  const Corpus corpus = build_corpus(pairs, {.dev = 1});
  write_corpus(corpus, folder / "x/y", "en", "fr");
  EXPECT_EQ(read_parallel(folder / "x/y/train.en", folder / "x/y/train.fr").size(), 2u);
  EXPECT_EQ(read_lines(folder / "x/y/dev.en").at(0), corpus.dev[0].source);
  EXPECT_FALSE(std::filesystem::exists(folder / "x/y/test.en"));
  write_corpus(build_corpus(pairs, {}), folder / "x/y", "en", "fr");
  EXPECT_FALSE(std::filesystem::exists(folder / "x/y/dev.en"));
  EXPECT_EQ(read_lines(folder / "x/y/train.fr").size(), 3u);
  EXPECT_THROW(write_corpus(corpus, folder / "x", "en", "en"), UsageError);
  EXPECT_THROW(write_corpus(corpus, folder / "x", "../en", "fr"), UsageError);
  EXPECT_THROW(write_corpus(corpus, folder / "x/y/train.en", "en", "fr"), SystemError);
}

TEST(ToyGrammar, PairsAreDistinctAndAFunctionOfTheSeed) {
  const auto pairs = toy_pairs(5000, 1);
  std::set<std::string> sources;
  for (const Pair& pair : pairs) sources.insert(pair.source);
  EXPECT_EQ(sources.size(), 5000u);
  EXPECT_EQ(toy_pairs(5000, 1), pairs);
  EXPECT_NE(toy_pairs(5000, 2), pairs);
  const auto fewer = toy_pairs(10, 1);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), pairs.begin()));
  EXPECT_THROW(toy_pairs(-1, 1), UsageError);
}

TEST(ToyGrammar, FrenchAgrees) {
  const std::vector<std::pair<std::string, std::string>> phrases = {
      {"the small red house", "la petite maison rouge"},
      {"an old man", "un vieil homme"},
      {"the black man", "l'homme noir"},
      {"this island", "cette île"},
      {"my picture", "mon image"},
      {"my old picture", "ma vieille image"},
      {"this child", "cet enfant"},
      {"these white keys", "ces clés blanches"},
      {"two beautiful coats", "deux beaux manteaux"},
      {"the new tree", "le nouvel arbre"},
      {"an apple", "une pomme"},
      {"the old horses", "les vieux chevaux"},
      {"this old bird", "ce vieil oiseau"},
      {"the white flower", "la fleur blanche"},
  };
  const auto spaced = [](const std::string& text) { return " " + text + " "; };
  std::set<std::string> met;
  for (const Pair& pair : toy_pairs(40'000, 1)) {
    for (const auto& phrase : phrases) {
      if (spaced(pair.source).find(spaced(phrase.first)) == std::string::npos) continue;
      met.insert(phrase.first);
      EXPECT_NE(spaced(pair.target).find(spaced(phrase.second)), std::string::npos)
          << pair.source << " | " << pair.target;
    }
  }
  EXPECT_EQ(met.size(), phrases.size());
}

}  // namespace
}  // namespace regard::text
