// Search over every registered model: what greedy and beam search promise, on models with random weights.

#include "regard/decoding/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "regard/decoding/forced.h"
#include "regard/decoding/translator.h"
#include "regard/text/vocabulary.h"
#include "tests/support/all_models.h"

namespace regard::decoding {
namespace {

using Ids = std::vector<int32_t>;

constexpr int64_t kV = 13;

/// Twenty sentences of lengths 1 and 40 and between.
std::vector<Ids> some_sentences() {
  std::vector<Ids> list;
  RandomStream random(3, 4);
  for (int i = 0; i < 20; ++i) {
    Ids ids;
    const int length = i % 5 == 0 ? 40 : 1 + i % 7;
    for (int k = 0; k < length; ++k) ids.push_back(static_cast<int32_t>(2 + random.below(kV - 3)));
    ids.push_back(text::Vocabulary::kEnd);
    list.push_back(ids);
  }
  return list;
}

std::vector<std::span<const int32_t>> spans(const std::vector<Ids>& list) {
  return {list.begin(), list.end()};
}

/// What the model reads: a language model's sources are empty.
std::vector<Ids> sentences(const tests::ModelVariant& variant) {
  const auto list = some_sentences();
  return variant.is_language_model() ? std::vector<Ids>(list.size()) : list;
}

void expect_equal(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t h = 0; h < a.size(); ++h) {
    EXPECT_EQ(a[h].ids, b[h].ids);
    EXPECT_EQ(a[h].score, b[h].score);
    EXPECT_EQ(a[h].attention, b[h].attention);
    EXPECT_EQ(a[h].complete, b[h].complete);
  }
}

class Search : public testing::TestWithParam<tests::ModelVariant> {
 protected:
  std::unique_ptr<models::EncoderDecoder> model_ = tests::make(GetParam(), kV);
  std::vector<Ids> sentences_ = sentences(GetParam());
  std::vector<std::span<const int32_t>> sources_ = spans(sentences_);
  ThreadPool pool_{1};
};

/// The most probable symbol at every step behind the prompt; the begin symbol is never one.
Ids greedy(const models::EncoderDecoder& model, std::span<const int32_t> source, size_t limit,
           const Ids& prompt = {}) {
  const std::vector<std::span<const int32_t>> one{source};
  const models::Memory memory = model.encode(one);
  models::State state = memory.initial_state;
  Ids ids;
  while (ids.size() < prompt.size() + limit) {
    const Ids previous{ids.empty() ? model.begin() : ids.back()};
    const models::Step step = model.step(previous, state, memory, Ids{0});
    const float* logits = step.logits.data<float>();
    auto y = static_cast<int32_t>(std::max_element(logits, logits + kV - 1) - logits);
    if (ids.size() < prompt.size()) y = prompt[ids.size()];
    if (y == text::Vocabulary::kEnd) break;
    ids.push_back(y);
    state = step.state;
  }
  return ids;
}

TEST_P(Search, ABeamOfOneIsGreedy) {
  const auto found = search(*model_, sources_, {.beam = 1}, pool_);
  for (size_t i = 0; i < sources_.size(); ++i) {
    ASSERT_EQ(found[i].size(), 1U);
    EXPECT_EQ(found[i][0].ids, greedy(*model_, sources_[i], 2 * sources_[i].size() + 10));
  }
}

TEST_P(Search, HypothesesBeginWithTheirPrompts) {
  std::vector<Ids> prompts;
  for (size_t i = 0; i < sources_.size(); ++i) prompts.push_back(Ids(i % 4, static_cast<int32_t>(2 + i % 5)));
  const auto best = search(*model_, sources_, {.beam = 1, .max_length = 5}, pool_, nullptr, spans(prompts));
  const auto found = search(*model_, sources_, {.beam = 3, .length_penalty = 0, .max_length = 5}, pool_,
                            nullptr, spans(prompts));
  for (size_t i = 0; i < sources_.size(); ++i) {
    EXPECT_EQ(best[i].at(0).ids, greedy(*model_, sources_[i], 5, prompts[i]));
    for (const Hypothesis& it : found[i]) {
      ASSERT_GE(it.ids.size(), prompts[i].size());
      EXPECT_TRUE(std::equal(prompts[i].begin(), prompts[i].end(), it.ids.begin()));
      EXPECT_LE(it.ids.size(), prompts[i].size() + 5);
      if (!it.complete) continue;  // the score is of what stands behind the prompt
      const std::vector<std::span<const int32_t>> whole{it.ids};
      const double all = force(*model_, std::span(&sources_[i], 1), whole, pool_)[0].score;
      EXPECT_LE(all, it.score + 1e-5);
      EXPECT_EQ(prompts[i].empty(), std::abs(it.score - all) < 1e-5);
    }
  }
}

TEST_P(Search, AloneAndInAnyBatchTheSameToTheBit) {
  for (const int64_t beam : {1, 3}) {
    const auto all = search(*model_, sources_, {.beam = beam}, pool_);
    const auto few = search(*model_, sources_, {.beam = beam, .sentences = 3}, pool_);
    for (size_t i = 0; i < sources_.size(); ++i) {
      expect_equal(few[i], all[i]);
      expect_equal(search(*model_, std::span(&sources_[i], 1), {.beam = beam}, pool_)[0], all[i]);
    }
  }
}

TEST_P(Search, HypothesesAreSortedDistinctAndScoredOnce) {
  const SearchOptions options{.beam = 4, .length_penalty = 0.7, .max_length = 12};
  const auto found = search(*model_, sources_, options, pool_);
  std::vector<Ids> targets;
  std::vector<std::span<const int32_t>> forced_sources;
  std::vector<const Hypothesis*> hypotheses;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_FALSE(found[i].empty());
    EXPECT_LE(found[i].size(), 4U);
    for (size_t h = 0; h < found[i].size(); ++h) {
      const Hypothesis& it = found[i][h];
      EXPECT_LE(it.score, found[i][h > 0 ? h - 1 : 0].score);
      for (size_t other = 0; other < h; ++other)
        EXPECT_TRUE(found[i][other].ids != it.ids || found[i][other].complete != it.complete);
      EXPECT_LE(it.ids.size(), 12U);
      EXPECT_EQ(it.attention.size(), model_->attends() ? it.ids.size() + (it.complete ? 1 : 0) : 0);
      if (!it.complete) continue;
      targets.push_back(it.ids);
      forced_sources.push_back(sources_[i]);
      hypotheses.push_back(&it);
    }
  }
  const auto forced = force(*model_, forced_sources, spans(targets), pool_);
  for (size_t k = 0; k < forced.size(); ++k) {
    const double tokens = static_cast<double>(targets[k].size()) + 1;
    EXPECT_NEAR(hypotheses[k]->score, forced[k].score / std::pow(tokens, 0.7), 1e-5);
    EXPECT_EQ(forced[k].attention, hypotheses[k]->attention);
  }
}

TEST_P(Search, OutputStopsAtTheLengthLimit) {
  for (const auto& list : search(*model_, sources_, {.beam = 2, .max_length = 3}, pool_))
    for (const auto& hypothesis : list) EXPECT_LE(hypothesis.ids.size(), 3U);
}

/// Whether three tokens in a row stand twice.
bool repeats_a_trigram(const Ids& ids) {
  std::set<std::array<int32_t, 3>> seen;
  for (size_t i = 2; i < ids.size(); ++i)
    if (!seen.insert({ids[i - 2], ids[i - 1], ids[i]}).second) return true;
  return false;
}

/// Greedy search that passes over what would write a trigram again.
Ids greedy_without_repetition(const models::EncoderDecoder& model, std::span<const int32_t> source,
                              size_t limit) {
  const std::vector<std::span<const int32_t>> one{source};
  const models::Memory memory = model.encode(one);
  models::State state = memory.initial_state;
  Ids ids;
  while (ids.size() < limit) {
    const Ids previous{ids.empty() ? model.begin() : ids.back()};
    const models::Step step = model.step(previous, state, memory, Ids{0});
    int32_t best = -1;
    for (int32_t y = 0; y < kV - 1; ++y) {
      Ids next = ids;
      next.push_back(y);
      const float* logits = step.logits.data<float>();
      if ((y == text::Vocabulary::kEnd || !repeats_a_trigram(next)) && (best < 0 || logits[y] > logits[best]))
        best = y;
    }
    if (best == text::Vocabulary::kEnd) break;
    ids.push_back(best);
    state = step.state;
  }
  return ids;
}

TEST_P(Search, NoTrigramIsRepeatedIfSoAsked) {
  const std::span<const std::span<const int32_t>> few(sources_.data(), 8);
  const auto banned = search(*model_, few, {.beam = 1, .no_repeat_trigrams = true}, pool_);
  for (size_t i = 0; i < few.size(); ++i)
    EXPECT_EQ(banned[i][0].ids, greedy_without_repetition(*model_, few[i], 2 * few[i].size() + 10));
  for (const auto& list : search(*model_, few, {.beam = 3, .no_repeat_trigrams = true}, pool_))
    for (const auto& hypothesis : list) EXPECT_FALSE(repeats_a_trigram(hypothesis.ids));
}

/// Says a b a b a b ..., whatever it reads, until it may not.
class Parrot final : public models::EncoderDecoder {
 public:
  Parrot() : EncoderDecoder(config()) {}
  bool attends() const override { return false; }
  Tensor loss(const models::SentencePairs&, const models::LossOptions&) const override { return {}; }
  models::Memory encode(std::span<const std::span<const int32_t>> sources) const override {
    models::Memory memory;
    for (size_t b = 0; b < sources.size(); ++b) memory.sources.push_back(1);
    memory.initial_state = {Tensor::zeros({memory.sources.count(), 1})};
    return memory;
  }
  models::Step step(std::span<const int32_t> y_prev, const models::State& state, const models::Memory&,
                    std::span<const int32_t>) const override {
    models::Step step{Tensor::zeros({static_cast<int64_t>(y_prev.size()), 5}), state, {}};
    for (size_t r = 0; r < y_prev.size(); ++r)  // 2 after 3 and at first, else 3; and 1 rather than the end
      for (const auto& [word, logit] : {std::pair{y_prev[r] == 2 ? 3 : 2, 9.0F}, {1, 5.0F}})
        step.logits.as_matrix<float>()(static_cast<int64_t>(r), word) = logit;
    return step;
  }

 private:
  static models::ModelConfig config() {
    models::ModelConfig config;
    config.source_vocabulary = config.target_vocabulary = 5;
    return config;
  }
  void visit(const models::ParameterVisitor&) override {}
};

TEST(RepeatedTrigrams, WhatWouldRepeatOneIsPassedOver) {
  const Parrot parrot;
  const Ids source{0};
  const std::vector<std::span<const int32_t>> sources{source};
  ThreadPool pool(1);
  const auto free = search(parrot, sources, {.beam = 1, .max_length = 8}, pool);
  EXPECT_EQ(free[0][0].ids, (Ids{2, 3, 2, 3, 2, 3, 2, 3}));
  // After 2 3 2 3 not 2, so 1; after 2 3 1 2 3 neither 2 nor 1, so the end.
  const auto banned = search(parrot, sources, {.beam = 1, .max_length = 9, .no_repeat_trigrams = true}, pool);
  EXPECT_EQ(banned[0][0].ids, (Ids{2, 3, 2, 3, 1, 2, 3}));
  EXPECT_TRUE(banned[0][0].complete);
}

INSTANTIATE_TEST_SUITE_P(, Search, testing::ValuesIn(tests::all_writer_variants()), tests::variant_name);

class SearchThreads : public testing::TestWithParam<tests::ModelVariant> {};

TEST_P(SearchThreads, TwoThreadsGiveTheBitsOfOne) {
  const auto model = tests::make(GetParam(), kV);
  const auto list = sentences(GetParam());
  const auto sources = spans(list);
  ThreadPool one(1), two(2);
  const auto a = search(*model, sources, {.beam = 2, .sentences = 4}, one);
  const auto b = search(*model, sources, {.beam = 2, .sentences = 4}, two);
  for (size_t i = 0; i < a.size(); ++i) expect_equal(a[i], b[i]);
  const auto forced_one = force(*model, sources, sources, one),
             forced_two = force(*model, sources, sources, two);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(forced_one[i].score, forced_two[i].score);
}

/// One variant of each model suffices under the thread sanitizer.
std::vector<tests::ModelVariant> one_of_each() {
  std::vector<tests::ModelVariant> list;
  for (const auto& variant : tests::all_writer_variants())
    if (variant.name == tests::name_of(*variant.kind)) list.push_back(variant);
  return list;
}
INSTANTIATE_TEST_SUITE_P(, SearchThreads, testing::ValuesIn(one_of_each()), tests::variant_name);

TEST(SearchOptions, ABeamOfZeroIsRefused) {
  const auto model = tests::make(one_of_each()[0], kV);
  ThreadPool pool(1);
  EXPECT_THROW(search(*model, {}, {.beam = 0}, pool), UsageError);
}

TEST(PartEnds, CutAfterSentencesElseAfterWordsElseAnywhere) {
  const std::vector<std::string> lines{"aa bb. cc dd ee", "x"};
  const auto characters =
      text::train_vocabulary(lines, {.kind = text::VocabularyKind::characters, .size = 100});
  const auto parts = [&](const std::string& line, int64_t longest) {
    const auto ids = characters->encode(line);
    std::vector<std::string> result;
    int64_t begin = 0;
    for (const int64_t end : part_ends(*characters, ids, longest)) {
      result.push_back(characters->decode(
          std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))));
      begin = end;
    }
    return result;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(parts("aa bb. cc", 20), (List{"aa bb. cc"}));
  EXPECT_EQ(parts("aa bb. cc dd ee", 10), (List{"aa bb.", " cc dd ee"}));
  EXPECT_EQ(parts("aa cc dd ee", 6), (List{"aa cc", " dd ee"}));
  EXPECT_EQ(parts("aaaaaaaaaa bb", 4), (List{"aaaa", "aaaa", "aa", " bb"}));
}

}  // namespace
}  // namespace regard::decoding
