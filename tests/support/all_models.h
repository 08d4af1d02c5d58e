#pragma once
// Every registered model, small, in the variants that tests walk over:
// a new model is tested by being registered.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "regard/models/registry.h"

namespace regard::tests {

struct ModelVariant {
  std::string name;  ///< a test's name: letters, digits and underscores
  const models::ModelKind* kind;
  models::ModelConfig config;  ///< sizes are small; vocabularies are set by the test

  bool is_language_model() const { return kind->task == models::Task::language; }
  bool reads(std::string_view field) const {
    for (const char* option : kind->options)
      if (field == option) return true;
    return false;
  }
};

/// A model's name as a test's: letters, digits and underscores.
inline std::string name_of(const models::ModelKind& kind, const std::string& variant = "") {
  std::string name = kind.name + variant;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

/// What a choice needs beside itself.
inline void complete(models::ModelConfig& config) {
  for (const nn::AttentionForm form : config.self_attention) {
    if (form == nn::AttentionForm::window) config.window = 2;
    if (form == nn::AttentionForm::block_sparse) config.block_size = 2;
  }
  if (config.attention != models::Attention::global) config.window = 2;
  if (config.score == models::Score::location) config.longest_source = 6;
  if (config.residual) config.layers = 2;
  if (config.tied_embeddings) config.embedding = config.width;
}

/// Each model of a task as it comes, and once for every other value of each choice and flag that it reads.
inline std::vector<ModelVariant> all_model_variants(models::Task task = models::Task::translation) {
  std::vector<ModelVariant> variants;
  for (const models::ModelKind& kind : models::all_models()) {
    if (kind.task != task) continue;
    models::ModelConfig config = kind.defaults;
    config.embedding = 12;
    config.width = 16;
    config.alignment_width = 10;
    config.readout_width = 14;
    config.heads = 4;
    config.feed_forward = 18;
    const auto add = [&](const std::string& what, const models::ModelConfig& changed) {
      variants.push_back({name_of(kind, what), &kind, changed});
      complete(variants.back().config);
    };
    add("", config);
    for (const char* option : kind.options) {
      const models::ConfigField& field = models::config_field(option);
      models::ModelConfig changed = config;
      if (const auto* flag = std::get_if<models::FlagField>(&field.kind)) {
        changed.*flag->member = !(changed.*flag->member);
        add((changed.*flag->member ? "_" : "_no_") + field.name, changed);
      }
      if (const auto* choice = std::get_if<models::ChoiceField>(&field.kind))
        for (size_t i = 0; i < choice->names.size(); ++i) {
          if (static_cast<int>(i) == choice->get(config)) continue;
          choice->set(changed, static_cast<int>(i));
          add("_" + choice->names[i], changed);
        }
      if (const auto* list = std::get_if<models::ListField>(&field.kind))
        for (size_t i = 1; i < list->names.size(); ++i) {
          list->set(changed, {static_cast<int>(i)});
          add("_" + list->names[i], changed);
        }
      if (field.name == "layers") {
        changed.layers = 2;
        add("_layers", changed);
      }
    }
  }
  return variants;
}

/// Those of every task whose models write text.
inline std::vector<ModelVariant> all_writer_variants() {
  auto variants = all_model_variants(models::Task::translation);
  for (auto& variant : all_model_variants(models::Task::language)) variants.push_back(std::move(variant));
  return variants;
}

inline std::string variant_name(const testing::TestParamInfo<ModelVariant>& info) { return info.param.name; }
inline void PrintTo(const ModelVariant& variant, std::ostream* out) { *out << variant.name; }

/// The model with vocabularies of V symbols each, in f32.
inline std::unique_ptr<models::EncoderDecoder> make(const ModelVariant& variant, int64_t V,
                                                    uint64_t seed = 7) {
  models::ModelConfig config = variant.config;
  config.source_vocabulary = config.target_vocabulary = V;
  return models::make_encoder_decoder(*variant.kind, config, seed);
}

/// The classifier with a vocabulary of V symbols and so many classes, in f32.
inline std::unique_ptr<models::Classifier> make_classifier(const ModelVariant& variant, int64_t V,
                                                           int64_t classes, uint64_t seed = 7) {
  models::ModelConfig config = variant.config;
  config.source_vocabulary = V;
  config.target_vocabulary = classes;
  return models::make_classifier(*variant.kind, config, seed);
}

}  // namespace regard::tests
