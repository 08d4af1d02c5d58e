#pragma once
// A short training of a small model on letters.

#include <filesystem>

#include "regard/training/session.h"
#include "tests/support/all_models.h"

namespace regard::tests {

inline training::SessionOptions small_session(const ModelVariant& variant,
                                              const std::filesystem::path& output, int64_t steps) {
  training::SessionOptions options;
  options.output = output;
  options.model = variant.kind->name;
  options.config = variant.config;
  options.vocabulary.kind = text::VocabularyKind::characters;
  options.training.steps = steps;
  options.training.batch_tokens = 300;
  options.training.evaluate_every = 7;
  options.training.warm_up = 10;
  options.text_lines = variant.is_language_model();
  return options;
}

}  // namespace regard::tests
