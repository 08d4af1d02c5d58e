#include "regard/text/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "regard/base/error.h"
#include "regard/base/random.h"

namespace regard::text {
namespace {

Sentences random_sentences(int64_t count, uint64_t seed) {
  RandomStream random(seed, 0);
  Sentences sentences;
  for (int64_t i = 0; i < count; ++i) sentences.push_back(std::vector<int32_t>(1 + random.below(30), 7));
  return sentences;
}

TEST(Batches, PartitionAllSentencesWithinTheBudget) {
  const Sentences source = random_sentences(1003, 1), target = random_sentences(1003, 2);
  for (const bool shuffled : {true, false}) {
    const auto batches = make_batches(source, target, {.tokens = 100, .pool = 200}, 5, 0, shuffled);
    std::vector<int64_t> all;
    for (const auto& batch : batches) {
      int64_t longest = 0;
      for (const int64_t i : batch) longest = std::max({longest, source.length(i), target.length(i)});
      EXPECT_LE(longest * static_cast<int64_t>(batch.size()), 100);
      all.insert(all.end(), batch.begin(), batch.end());
    }
    std::sort(all.begin(), all.end());
    std::vector<int64_t> expected(1003);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

TEST(Batches, AStreamIsItsLinesAndNewlinesInChunks) {
  const std::vector<std::string> lines{"ab", "", "cab"};
  std::vector<std::string> closed;
  for (const std::string& line : lines) closed.push_back(closed_line(line));
  const auto vocabulary = train_vocabulary(closed, {.kind = VocabularyKind::characters, .size = 100});
  const Sentences chunks = encode_stream(*vocabulary, lines, 3);
  ASSERT_EQ(chunks.size(), 3);
  EXPECT_EQ(vocabulary->decode(chunks[0]), "ab\\n");
  EXPECT_EQ(vocabulary->decode(chunks[1]), "\\nca");
  EXPECT_EQ(vocabulary->decode(chunks[2]), "b\\n");
  for (int64_t i = 0; i < 3; ++i)
    for (const int32_t id : chunks[i]) EXPECT_GT(id, Vocabulary::kUnknown);
  EXPECT_EQ(encode_stream(*vocabulary, lines, 8).size(), 1);
  EXPECT_EQ(encode_stream(*vocabulary, {}, 8).size(), 0);
  EXPECT_THROW(encode_stream(*vocabulary, lines, 0), UsageError);
}

TEST(Batches, OfNothingAndTextAreFilledByTheText) {
  const Sentences target = random_sentences(100, 2);
  const auto batches = make_batches(empty_sentences(100), target, {.tokens = 100}, 5, 0);
  size_t all = 0;
  for (const auto& batch : batches) {
    int64_t longest = 0;
    for (const int64_t i : batch) longest = std::max(longest, target.length(i));
    EXPECT_LE(longest * static_cast<int64_t>(batch.size()), 100);
    all += batch.size();
  }
  EXPECT_EQ(all, 100U);
}

TEST(Batches, AreAFunctionOfSeedAndEpoch) {
  const Sentences source = random_sentences(500, 1), target = random_sentences(500, 2);
  const auto make = [&](uint64_t seed, uint64_t epoch) {
    return make_batches(source, target, {.tokens = 100, .pool = 200}, seed, epoch);
  };
  EXPECT_EQ(make(1, 3), make(1, 3));
  EXPECT_NE(make(1, 3), make(1, 4));
  EXPECT_NE(make(1, 3), make(2, 3));
}

TEST(Batches, UnshuffledAreInOrderOfLengthWithinPools) {
  Sentences sentences;
  for (const int length : {3, 1, 2, 2, 1, 3})
    sentences.push_back(std::vector<int32_t>(static_cast<size_t>(length), 2));
  const auto batches = make_batches(sentences, sentences, {.tokens = 4, .pool = 3}, 1, 1, false);
  EXPECT_EQ(batches, (std::vector<std::vector<int64_t>>{{1, 2}, {0}, {4, 3}, {5}}));
}

TEST(Batches, ASentenceLongerThanTheBudgetIsABatchOfItsOwn) {
  Sentences sentences;
  sentences.push_back(std::vector<int32_t>(50, 2));
  sentences.push_back(std::vector<int32_t>(2, 2));
  const auto batches = make_batches(sentences, sentences, {.tokens = 10, .pool = 10}, 1, 1, false);
  EXPECT_EQ(batches, (std::vector<std::vector<int64_t>>{{1}, {0}}));
}

TEST(Batches, EncodedLinesEndAndAreCut) {
  const std::vector<std::string> lines = {"a b c", "", "a"};
  const auto vocabulary = train_vocabulary(lines, {.kind = VocabularyKind::words, .size = 100});
  const Sentences sentences = encode_lines(*vocabulary, lines, 3);
  ASSERT_EQ(sentences.size(), 3);
  EXPECT_EQ(std::vector<int32_t>(sentences[0].begin(), sentences[0].end()), (std::vector<int32_t>{2, 3, 4}));
  EXPECT_EQ(std::vector<int32_t>(sentences[1].begin(), sentences[1].end()), (std::vector<int32_t>{0}));
  EXPECT_EQ(std::vector<int32_t>(sentences[2].begin(), sentences[2].end()), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(sentences.tokens(), 6);
}

TEST(Batches, RefuseUnequalSides) {
  EXPECT_THROW(make_batches(random_sentences(2, 1), random_sentences(3, 1), {}, 1, 1), ShapeError);
  EXPECT_THROW(make_batches(random_sentences(2, 1), random_sentences(2, 1), {.tokens = 0}, 1, 1), UsageError);
  EXPECT_TRUE(make_batches({}, {}, {}, 1, 1).empty());
}

}  // namespace
}  // namespace regard::text
