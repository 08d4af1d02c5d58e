#include "regard/text/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "regard/base/error.h"
#include "regard/text/utf8.h"

namespace regard::text {
namespace {

std::vector<std::string> lines() {
  std::vector<std::string> result;
  const std::vector<std::string> nouns = {"file", "folder", "window", "colour", "picture", "écran", "größe"};
  const std::vector<std::string> verbs = {"Open", "Close", "Rename", "Delete", "Show", "Hide"};
  for (const auto& verb : verbs) {
    for (const auto& noun : nouns) {
      result.push_back(verb + " the " + noun + "\\nNow the " + noun + " is done.");
      result.push_back(verb + "  " + noun + " %1$s");
    }
  }
  return result;
}

std::shared_ptr<const Vocabulary> trained(VocabularyKind kind, int32_t size) {
  return train_vocabulary(lines(), {.kind = kind, .size = size, .seed = 1, .sample_lines = 1000});
}

const std::vector<std::string> kHard = {"",
                                        " ",
                                        "  ",
                                        "\t",
                                        "\xC2\xA0",
                                        "\xE3\x80\x80",
                                        " a",
                                        "a ",
                                        "a  b",
                                        "\xE2\x96\x81",
                                        "x\xE2\x96\x81y \xE2\x96\x81",
                                        "\xEE\x80\x80",
                                        std::string("\xEE\x80\x80") + "1",
                                        std::string("a\0b", 3),
                                        "<0x41>",
                                        "</s>",
                                        "<unk>",
                                        "a\\n\\n\\nb",
                                        "\\n",
                                        "\\n a \\n",
                                        "a\nb",
                                        "日本語",
                                        "\xF0\x9F\x98\x80!",
                                        "Hello %1$s, good to see you again!",
                                        "ﬁ ① Å"};

TEST(Vocabulary, SentencePieceGivesBackAllText) {
  const auto vocabulary = trained(VocabularyKind::sentencepiece, 400);
  for (const std::string& line : kHard) EXPECT_EQ(vocabulary->decode(vocabulary->encode(line)), line) << line;
  for (const std::string& line : lines())
    EXPECT_EQ(vocabulary->decode(vocabulary->encode(line)), line) << line;
  for (const std::string& line : kHard) {
    for (const int32_t id : vocabulary->encode(line)) {
      EXPECT_GT(id, Vocabulary::kUnknown) << line;
      EXPECT_LT(id, vocabulary->begin()) << line;
    }
  }
}

TEST(Vocabulary, SentencePieceSymbols) {
  const auto vocabulary = trained(VocabularyKind::sentencepiece, 400);
  EXPECT_EQ(vocabulary->piece(Vocabulary::kEnd), "</s>");
  EXPECT_EQ(vocabulary->piece(Vocabulary::kUnknown), "<unk>");
  EXPECT_EQ(vocabulary->piece(vocabulary->begin()), "<s>");
  EXPECT_LE(vocabulary->size(), 401);
  const auto ids = vocabulary->encode("a\\nb");
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [&](int32_t id) { return vocabulary->piece(id) == "\\n"; }),
            1);
}

TEST(Vocabulary, SameBytesTwiceAndAfterLoading) {
  for (const auto kind : {VocabularyKind::sentencepiece, VocabularyKind::words, VocabularyKind::characters}) {
    const auto first = trained(kind, 400), second = trained(kind, 400);
    EXPECT_EQ(first->serialise(), second->serialise());
    const auto loaded = load_vocabulary(kind, first->serialise(), "x");
    EXPECT_EQ(loaded->kind(), kind);
    EXPECT_EQ(loaded->serialise(), first->serialise());
    EXPECT_EQ(loaded->size(), first->size());
    for (const auto& line : lines()) EXPECT_EQ(loaded->encode(line), first->encode(line));
  }
}

TEST(Vocabulary, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  const auto vocabulary = trained(VocabularyKind::sentencepiece, 400);
  EXPECT_EQ(vocabulary->decode(vocabulary->encode("a\xFF"
                                                  "b\xC3")),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
}

TEST(Vocabulary, ListsGiveBackKnownText) {
  const std::vector<std::string> text = {"a  b ", " le chat\\nnoir", "x \\n y", "\\n\\n", "", " "};
  for (const auto kind : {VocabularyKind::words, VocabularyKind::characters}) {
    const auto vocabulary = train_vocabulary(text, {.kind = kind, .size = 100});
    for (const auto& line : text) EXPECT_EQ(vocabulary->decode(vocabulary->encode(line)), line) << line;
  }
}

TEST(Vocabulary, ListsAreOrderedByFrequency) {
  const std::vector<std::string> text = {"b a", "b c", "a b"};
  const auto words = train_vocabulary(text, {.kind = VocabularyKind::words, .size = 4});
  EXPECT_EQ(words->size(), 5);
  EXPECT_EQ(words->encode("b a c"), (std::vector<int32_t>{2, 3, Vocabulary::kUnknown}));
  EXPECT_EQ(words->decode(words->encode("a c")), "a <unk>");
}

TEST(Vocabulary, EveryPieceBelongsToOneWord) {
  for (const auto kind : {VocabularyKind::sentencepiece, VocabularyKind::words, VocabularyKind::characters}) {
    const auto vocabulary = trained(kind, 400);
    for (const std::string line : {"Open the écran", "Open  the\\nécran", " Open"}) {
      auto ids = vocabulary->encode(line);
      ids.push_back(Vocabulary::kEnd);
      const auto words = vocabulary->words(ids);
      int64_t at = 0;
      for (const Word& word : words) {
        EXPECT_EQ(word.begin, at);
        EXPECT_GT(word.end, word.begin);
        at = word.end;
      }
      EXPECT_EQ(at, static_cast<int64_t>(ids.size()));
      EXPECT_EQ(words.back().text, "</s>");
    }
    auto ids = vocabulary->encode("Open the\\nécran");
    std::vector<std::string> texts;
    for (const Word& word : vocabulary->words(ids)) texts.push_back(word.text);
    EXPECT_EQ(texts, (std::vector<std::string>{"Open", "the", "\\n", "écran"}));
  }
}

TEST(Vocabulary, SamplesBySeed) {
  std::vector<std::string> text;
  for (int i = 0; i < 1000; ++i) text.push_back("w" + std::to_string(i));
  const auto train = [&](uint64_t seed) {
    return train_vocabulary(text,
                            {.kind = VocabularyKind::words, .size = 5000, .seed = seed, .sample_lines = 100});
  };
  EXPECT_EQ(train(1)->size(), 103);
  EXPECT_EQ(train(1)->serialise(), train(1)->serialise());
  EXPECT_NE(train(1)->serialise(), train(2)->serialise());
}

TEST(Vocabulary, TrainsOnVeryLittle) {
  const std::vector<std::string> text = {"a b"};
  const auto vocabulary = train_vocabulary(text, {});
  EXPECT_EQ(vocabulary->decode(vocabulary->encode("a b c")), "a b c");
}

TEST(Vocabulary, ALineOfAMegabyte) {
  std::string line(1 << 20, 'x');
  for (size_t i = 7; i < line.size(); i += 11) line[i] = ' ';
  const auto vocabulary = train_vocabulary(std::vector<std::string>{line, "a b"}, {.size = 300});
  EXPECT_EQ(vocabulary->decode(vocabulary->encode(line)), line);
}

TEST(Vocabulary, RefusesBadInput) {
  const std::vector<std::string> nothing = {"", "  "};
  EXPECT_THROW(train_vocabulary(nothing, {}), DataError);
  EXPECT_THROW(train_vocabulary(lines(), {.size = 2}), UsageError);
  EXPECT_THROW(trained(VocabularyKind::sentencepiece, 50), UsageError);
  for (const auto kind : {VocabularyKind::sentencepiece, VocabularyKind::words}) {
    for (const std::string bytes : {"", "xyz", "{}", "{\"kind\":\"words\",\"pieces\":[1]}"}) {
      try {
        load_vocabulary(kind, bytes, "model/source.spm");
        FAIL() << bytes;
      } catch (const DataError& error) {
        EXPECT_EQ(std::string(error.what()).find("model/source.spm: "), 0u) << error.what();
      }
    }
  }
}

TEST(Utf8, FollowsTheStandard) {
  for (const std::string good : {"", "a", "é", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"}) {
    EXPECT_EQ(invalid_utf8(good), std::string::npos);
  }
  for (const std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                                "\xF4\x90\x80\x80", "\xF0\x8F\xBF\xBF", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    EXPECT_EQ(invalid_utf8("ab" + bad), 2u);
  }
  EXPECT_EQ(utf8_of(0xE9) + utf8_of(0x2581) + utf8_of(0x1F600) + utf8_of('a'), "é▁😀a");
}

}  // namespace
}  // namespace regard::text
