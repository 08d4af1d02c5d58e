// The cases of lines through a trained model that broke others: numbers as in the list of such cases.

#include "regard/decoding/translator.h"

#include <gtest/gtest.h>

#include "regard/models/registry.h"

namespace regard::decoding {
namespace {

/// A model with random weights over the words of `text`: what it says is noise, but it is always the same
/// noise.
models::TrainedModel random_model(text::VocabularyKind kind, const std::vector<std::string>& text,
                                  uint64_t seed = 3) {
  models::TrainedModel trained;
  trained.kind = &models::model_kind("bahdanau");
  trained.source = trained.target = text::train_vocabulary(text, {.kind = kind, .size = 300});
  models::ModelConfig config;
  config.source_vocabulary = config.target_vocabulary = trained.source->size();
  config.embedding = config.width = config.alignment_width = config.readout_width = 8;
  trained.model = models::make_encoder_decoder(*trained.kind, config, seed);
  trained.longest = 16;
  return trained;
}

const std::vector<std::string> kText = {"the red car is here", "a blue house", "they see the old cars .",
                                        "yes"};

models::TrainedModel words() { return random_model(text::VocabularyKind::words, kText); }

std::string best_text(const models::TrainedModel& model, const std::string& line,
                      const SearchOptions& options = {}) {
  ThreadPool pool(1);
  const auto translated = translate(model, std::vector{line}, options, pool);
  return translated[0].blank ? line
                             : text_of(model, translated[0], translated[0].hypotheses.at(0), line, false);
}

TEST(Translator, Case1And2BlankLinesKeepTheirPlace) {
  ThreadPool pool(1);
  const std::vector<std::string> lines = {"the car", "", " ", "\u00a0", "\u3000", "\t", "yes"};
  const auto translated = translate(words(), lines, {}, pool);
  ASSERT_EQ(translated.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(translated[i].blank, i > 0 && i < 6) << i;
    EXPECT_EQ(translated[i].hypotheses.empty(), translated[i].blank) << i;
  }
}

TEST(Translator, Case3And4ALongLineIsTranslatedInPartsThatAreEachTranslatedAlone) {
  const auto model = words();
  std::string line, joined;
  std::vector<std::string> parts;
  for (int i = 0; i < 1200; ++i) {
    line += (i ? " " : "") + std::string(i % 10 == 9 ? "." : i % 3 ? "red" : "car");
    if (i % 10 == 0) parts.emplace_back();
    parts.back() += (i % 10 ? " " : "") + std::string(i % 10 == 9 ? "." : i % 3 ? "red" : "car");
  }
  ThreadPool pool(1);
  const auto translated =
      translate(model, std::vector{std::string("yes"), line, std::string("a house")}, {}, pool);
  EXPECT_EQ(translated[0].parts, 1);
  EXPECT_EQ(translated[1].parts, 120);  // 15 words at most, cut after a full stop
  for (const auto& part : parts) joined += (joined.empty() ? "" : " ") + best_text(model, part);
  EXPECT_EQ(text_of(model, translated[1], translated[1].hypotheses[0], line, false), joined);
  EXPECT_EQ(text_of(model, translated[2], translated[2].hypotheses[0], "a house", false),
            best_text(model, "a house"));
}

TEST(Translator, Case5TheBatchDoesNotMatter) {
  const auto model = words();
  std::string longer = "the";
  for (int i = 1; i < 40; ++i) longer += " cars";
  const std::vector<std::string> lines = {"yes", longer, "car", longer + " old", "red"};
  ThreadPool one(1), two(2);
  const auto together = translate(model, lines, {.sentences = 5}, two);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto alone = translate(model, std::span(&lines[i], 1), {.sentences = 1}, one);
    ASSERT_EQ(alone[0].hypotheses.size(), together[i].hypotheses.size());
    for (size_t h = 0; h < alone[0].hypotheses.size(); ++h) {
      EXPECT_EQ(alone[0].hypotheses[h].ids, together[i].hypotheses[h].ids);
      EXPECT_EQ(alone[0].hypotheses[h].score, together[i].hypotheses[h].score);
      EXPECT_EQ(alone[0].hypotheses[h].attention, together[i].hypotheses[h].attention);
    }
  }
}

TEST(Translator, Case6And7TheFirstOfManyIsTheOnlyOneAndScoresFall) {
  const auto model = words();
  ThreadPool pool(1);
  for (const auto& line : kText) {
    const auto all = translate(model, std::vector{line}, {.beam = 5}, pool)[0];
    const auto one = translate(model, std::vector{line}, {.beam = 5}, pool, {.hypotheses = 1})[0];
    ASSERT_EQ(one.hypotheses.size(), 1u);
    EXPECT_EQ(one.hypotheses[0].ids, all.hypotheses[0].ids);
    EXPECT_EQ(one.hypotheses[0].score, all.hypotheses[0].score);
    for (size_t h = 1; h < all.hypotheses.size(); ++h)
      EXPECT_LE(all.hypotheses[h].score, all.hypotheses[h - 1].score);
  }
}

TEST(Translator, Case8OneRowOfAttentionForEveryPiece) {
  const auto model = words();
  ThreadPool pool(1);
  std::string line = "car";
  for (int i = 1; i < 40; ++i) line += " car";
  for (const int64_t limit : {0, 3}) {
    const auto translated = translate(model, std::vector{line}, {.beam = 3, .max_length = limit}, pool)[0];
    EXPECT_EQ(translated.parts, 3);
    for (const auto& hypothesis : translated.hypotheses) {
      const size_t rows = hypothesis.attention.size(), pieces = hypothesis.ids.size();
      EXPECT_TRUE(rows == pieces || rows == pieces + 1) << rows << " rows, " << pieces << " pieces";
      for (const auto& row : hypothesis.attention) EXPECT_EQ(row.size(), translated.source_ids.size());
      for (const int32_t id : hypothesis.ids)
        EXPECT_TRUE(id != text::Vocabulary::kEnd && id != model.target->begin());
    }
  }
}

TEST(Translator, Case10AnUnknownWordIsWrittenAsItStood) {
  const auto model = words();
  const std::string line = "the Zyxwvü-99 car";
  Translated translated;
  translated.source_ids = model.source->encode(line);
  translated.source_ids.push_back(text::Vocabulary::kEnd);
  const int32_t the = translated.source_ids[0];
  ASSERT_EQ(translated.source_ids[1], text::Vocabulary::kUnknown);
  Hypothesis hypothesis{
      {the, text::Vocabulary::kUnknown}, 0, true, {{1, 0, 0, 0}, {0.1F, 0.3F, 0.2F, 0.4F}, {0, 0, 0, 1}}};
  EXPECT_EQ(text_of(model, translated, hypothesis, line, true),
            "the Zyxwvü-99");  // the end symbol is no word
  EXPECT_EQ(text_of(model, translated, hypothesis, line, false), "the <unk>");
}

TEST(Translator, Case15AWordEndsAtTheLengthLimitAtTheLatest) {
  ThreadPool pool(1);
  for (uint64_t seed = 1; seed < 9; ++seed) {
    const auto model = random_model(text::VocabularyKind::characters, kText, seed);
    const auto translated = translate(model, std::vector<std::string>{"h"}, {}, pool);
    for (const auto& hypothesis : translated[0].hypotheses) EXPECT_LE(hypothesis.ids.size(), 2u * 2 + 10);
  }
}

TEST(Translator, Case16NulIsText) {
  const auto model = words();
  EXPECT_EQ(model.source->surfaces(std::string("a\0b car", 7)).front(), std::string("a\0b", 3));
  EXPECT_FALSE(best_text(model, std::string("a\0b", 3)).empty());
}

TEST(Translator, BytesOfPiecesNeverEndALine) {
  const auto model = random_model(text::VocabularyKind::sentencepiece, kText);
  Hypothesis hypothesis;
  for (int32_t id = 2; id < model.target->begin(); ++id)
    for (const char* byte : {"<0x0A>", "<0x0D>", "<0x41>"})
      if (model.target->piece(id) == byte) hypothesis.ids.push_back(id);
  ASSERT_EQ(hypothesis.ids.size(), 3u);
  EXPECT_EQ(text_of(model, {}, hypothesis, "", false), "\\n A");
}

TEST(Translator, TheMatrixOfALineThatIsTooLongIsLeftOut) {
  const auto model = words();
  std::string line = "car";
  for (int i = 1; i < 30000; ++i) line += " car";
  ThreadPool pool(2);
  const SearchOptions options{.beam = 1, .max_length = 2};
  const auto translated = translate(model, std::vector{line}, options, pool)[0];
  EXPECT_EQ(translated.source_ids.size(), 30001u);
  EXPECT_TRUE(translated.attention_left_out);
  EXPECT_TRUE(translated.hypotheses.at(0).attention.empty());
  const auto unwanted =
      translate(model, std::vector{std::string("the car")}, options, pool, {.attention = false})[0];
  EXPECT_FALSE(unwanted.attention_left_out);
  EXPECT_TRUE(unwanted.hypotheses.at(0).attention.empty());
}

}  // namespace
}  // namespace regard::decoding
