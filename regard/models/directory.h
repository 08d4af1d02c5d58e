#pragma once
// A trained model's directory: config.json, the vocabularies and model.safetensors, each checked against the
// manifest.

#include <boost/json.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "regard/autograd/frozen_weights.h"
#include "regard/models/registry.h"
#include "regard/storage/manifest.h"
#include "regard/text/vocabulary.h"

namespace regard::models {

struct TrainedModel {
  const ModelKind* kind;
  std::shared_ptr<const EncoderDecoder> model;
  std::shared_ptr<const autograd::FrozenWeights> frozen;  ///< the model's, for decoding
  std::shared_ptr<const text::Vocabulary> source, target;
  int64_t longest;  ///< pieces of the longest training sentence, end symbol included; of a chunk of text
  bool is_stream = false;  ///< a language model's text is one stream, cut into chunks without end symbols
};

struct TrainedClassifier {
  const ModelKind* kind;
  std::shared_ptr<const Classifier> model;
  std::shared_ptr<const text::Vocabulary> vocabulary;  ///< of both sentences
  std::vector<std::string> labels;                     ///< the classes' names
  int64_t longest;                                     ///< as above
};

/// Opens a directory and reads all that translating (or writing, with Task::language) needs. Throws DataError
/// naming a damaged or missing file, UsageError naming the verb for the model's own task, SystemError.
TrainedModel load_model(const std::filesystem::path& path, Task task = Task::translation);
/// The task of a directory's model. Throws as load_model does.
Task task_of(const std::filesystem::path& path);
/// The same as load_model of a classifier.
TrainedClassifier load_classifier(const std::filesystem::path& path);

/// The vocabularies alone, as a resumed training needs them. Throws as load_model does.
struct Vocabularies {
  std::shared_ptr<const text::Vocabulary> source, target;
};
Vocabularies load_vocabularies(const ModelDirectory& directory);

/// The name of a kind of vocabulary in config.json and on the command line.
const char* vocabulary_name(text::VocabularyKind kind);

/// Writes the vocabularies (source.spm and target.spm, or vocab.json files of the two sides).
void write_vocabularies(ModelDirectory& directory, const text::Vocabulary& source,
                        const text::Vocabulary& target);

/// Replaces model.safetensors by these weights.
void write_weights(ModelDirectory& directory, std::span<const nn::Parameter> weights);

}  // namespace regard::models
