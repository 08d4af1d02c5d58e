#pragma once
// A trained model's directory: config.json, the vocabularies and model.safetensors, each checked against the
// manifest.

#include <boost/json.hpp>
#include <filesystem>
#include <memory>

#include "regard/models/bahdanau.h"
#include "regard/storage/manifest.h"
#include "regard/text/vocabulary.h"

namespace regard::models {

struct TrainedModel {
  Bahdanau model;
  std::shared_ptr<const text::Vocabulary> source, target;
};

/// Opens a directory and reads all that translating needs. Throws DataError naming a damaged or missing file,
/// SystemError.
TrainedModel load_model(const std::filesystem::path& path);

/// The sizes as they stand in config.json, and back. Throws DataError naming `name`.
boost::json::object config_json(const BahdanauConfig& config);
BahdanauConfig config_from_json(const boost::json::object& json, std::string_view name);

/// Writes the vocabularies (source.spm and target.spm, or vocab.json files of the two sides).
void write_vocabularies(ModelDirectory& directory, const text::Vocabulary& source,
                        const text::Vocabulary& target);

/// Replaces model.safetensors by these weights.
void write_weights(ModelDirectory& directory, std::span<const nn::Parameter> weights);

}  // namespace regard::models
