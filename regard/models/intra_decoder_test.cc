// What only this model has. Equations: golden_test.cc.

#include "regard/models/intra_decoder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace regard::models {
namespace {

ModelConfig small() {
  ModelConfig config;
  config.source_vocabulary = config.target_vocabulary = 30;
  config.embedding = 4;
  config.width = 3;
  return config;
}

TEST(IntraDecoder, TwoVocabulariesAreRefused) {
  ModelConfig config = small();
  config.target_vocabulary = 29;
  EXPECT_THROW(IntraDecoder{config}, UsageError);  // shared embeddings
  config.separate_embeddings = true;
  EXPECT_THROW(IntraDecoder{config}, UsageError);  // the pointer
  config.pointer = false;
  EXPECT_NO_THROW(IntraDecoder{config});
}

TEST(IntraDecoder, WhatIsPointedAtIsLikelyToBeWritten) {
  IntraDecoder model(small());
  model.initialise(1);
  for (const auto& parameter : model.parameters())
    if (parameter.name == "pointer.b") parameter.value.data<float>()[0] = 30;  // sure of copying
  const std::vector<int32_t> source{3, 7, 3, 0};
  const std::vector<std::span<const int32_t>> sources{source};
  const Memory memory = model.encode(sources);
  const Step step =
      model.step(std::vector<int32_t>{model.begin()}, memory.initial_state, memory, std::vector<int32_t>{0});
  const float *log_p = step.logits.data<float>(), *alpha = step.alpha.data<float>();
  EXPECT_NEAR(std::exp(log_p[3]), alpha[0] + alpha[2], 1e-6);
  EXPECT_NEAR(std::exp(log_p[7]), alpha[1], 1e-6);
  EXPECT_LT(log_p[5], -25);
}

TEST(IntraDecoder, EmptySidesAreFinite) {
  IntraDecoder model(small());
  model.initialise(1);
  const std::vector<int32_t> nothing, end{0}, word{3, 0};
  SentencePairs pairs;
  pairs.sources = {nothing, word, end};
  pairs.targets = {word, end, nothing};
  EXPECT_TRUE(std::isfinite(model.loss(pairs, {.smoothing = 0.1}).data<float>()[0]));
  const Memory memory = model.encode(pairs.sources);
  const Step step = model.step(std::vector<int32_t>(3, model.begin()), memory.initial_state, memory,
                               std::vector<int32_t>{0, 1, 2});
  for (const float log_p : step.logits.values<float>()) EXPECT_TRUE(std::isfinite(log_p));
}

}  // namespace
}  // namespace regard::models
