#pragma once
// Where the text to train on comes from, and how it is cut into pieces: options that several verbs have.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "regard/models/registry.h"
#include "regard/training/session.h"

namespace regard::cli {

/// What the options say.
struct TrainingData {
  std::vector<std::filesystem::path> source, target;  ///< line files
  std::vector<std::string> data, dev_data;            ///< catalogues and TSV files; with labels
  std::string from, to;                               ///< languages of `data`
  std::vector<std::filesystem::path> text, dev_text;  ///< of a language model
  bool text_lines = false;
  std::string dev_source, dev_target, guided_alignment;
  double dev_fraction = 0;
  int64_t longest = training::SessionOptions{}.longest;
  std::string vocabulary;  ///< its kind
  int32_t vocabulary_size = text::VocabularyOptions{}.size;
};

void add_data_options(CLI::App* verb, TrainingData& data);

/// Throws UsageError if the options do not fit each other or a model of this kind.
void check(const TrainingData& data, const models::ModelKind& kind);

/// The text. Throws DataError and SystemError naming the file.
training::Lines read_data(const TrainingData& data, models::Task task, uint64_t seed);

/// Sets what a session has to know of it.
void apply(const TrainingData& data, training::SessionOptions& session);

}  // namespace regard::cli
