#pragma once
// The list of all models by name. A new model is one file and one line here (docs/adding-a-model.md).

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "regard/models/model.h"

namespace regard::models {

/// What a model is for: a target of a source, text of nothing, the class of a pair of sentences.
enum class Task { translation, language, classification };

struct ModelKind {
  const char* name;
  const char* summary;               ///< one line, with its paper
  std::vector<const char*> options;  ///< names of the fields of ModelConfig that it reads
  std::unique_ptr<Model> (*make)(const ModelConfig&);
  ModelConfig defaults{};                       ///< what an option is if nothing is said
  void (*check)(const ModelConfig&) = nullptr;  ///< throws UsageError if options do not fit each other
  double learning_rate = 1e-3;                  ///< peak rate if nothing is said
  Task task = Task::translation;                ///< a classifier is a Classifier, all others EncoderDecoder
  double label_smoothing = 0.1;                 ///< if nothing is said
};

std::span<const ModelKind> all_models();
/// Throws UsageError listing the names.
const ModelKind& model_kind(std::string_view name);

/// Throws UsageError, with the reason, if the configuration's parts do not fit each other.
void check_config(const ModelKind& kind, const ModelConfig& config);

/// A model with parameters drawn from `seed`. Throws UsageError if the configuration's parts do not fit.
std::unique_ptr<Model> make_model(const ModelKind& kind, const ModelConfig& config, uint64_t seed);
/// The same of a kind that writes text, and of one that classifies; without a seed nothing is drawn, for
/// parameters that are loaded. Throw UsageError if it is another kind.
std::unique_ptr<EncoderDecoder> make_encoder_decoder(const ModelKind& kind, const ModelConfig& config,
                                                     std::optional<uint64_t> seed);
std::unique_ptr<Classifier> make_classifier(const ModelKind& kind, const ModelConfig& config,
                                            std::optional<uint64_t> seed);

}  // namespace regard::models
