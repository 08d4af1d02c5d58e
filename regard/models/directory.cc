#include "regard/models/directory.h"

#include "regard/storage/json.h"
#include "regard/storage/safetensors.h"

namespace regard::models {
namespace {

struct Side {
  const char *sentencepiece, *list;
};
constexpr Side kSource{"source.spm", "source.vocab.json"}, kTarget{"target.spm", "target.vocab.json"};

const char* kind_name(text::VocabularyKind kind) {
  switch (kind) {
    case text::VocabularyKind::sentencepiece:
      return "sentencepiece";
    case text::VocabularyKind::words:
      return "words";
    case text::VocabularyKind::characters:
      return "characters";
  }
  return "";
}

std::string file_of(const Side& side, text::VocabularyKind kind) {
  return kind == text::VocabularyKind::sentencepiece ? side.sentencepiece : side.list;
}

std::shared_ptr<const text::Vocabulary> read_vocabulary(const ModelDirectory& directory, const Side& side,
                                                        text::VocabularyKind kind) {
  const std::string file = file_of(side, kind);
  return text::load_vocabulary(kind, directory.read(file), directory.path(file).string());
}

text::VocabularyKind kind_from_name(const std::string& name, std::string_view file) {
  for (auto kind :
       {text::VocabularyKind::sentencepiece, text::VocabularyKind::words, text::VocabularyKind::characters})
    if (name == kind_name(kind)) return kind;
  throw DataError(file, 0,
                  "unknown vocabulary \"" + name + "\"; expected sentencepiece, words or characters");
}

}  // namespace

boost::json::object config_json(const BahdanauConfig& config) {
  return {{"model", "bahdanau"},
          {"source_vocabulary", config.source_vocabulary},
          {"target_vocabulary", config.target_vocabulary},
          {"embedding", config.embedding},
          {"width", config.width},
          {"alignment", config.alignment},
          {"readout", config.readout}};
}

BahdanauConfig config_from_json(const boost::json::object& json, std::string_view name) {
  if (const auto model = json_string(json, "model", name); model != "bahdanau")
    throw DataError(name, 0, "model \"" + model + "\" is not known to this version; expected bahdanau");
  const auto size = [&](const char* key) { return json_integer(json, key, name, 1, int64_t{1} << 24); };
  return {size("source_vocabulary"), size("target_vocabulary"),
          size("embedding"),         size("width"),
          size("alignment"),         size("readout")};
}

void write_vocabularies(ModelDirectory& directory, const text::Vocabulary& source,
                        const text::Vocabulary& target) {
  directory.write(file_of(kSource, source.kind()), source.serialise());
  directory.write(file_of(kTarget, target.kind()), target.serialise());
}

void write_weights(ModelDirectory& directory, std::span<const nn::Parameter> weights) {
  std::vector<NamedTensor> tensors;
  for (const auto& weight : weights) tensors.push_back({weight.name, weight.value});
  directory.write("model.safetensors", safetensors_content(tensors, {{"format", "regard"}}));
}

TrainedModel load_model(const std::filesystem::path& path) {
  const ModelDirectory directory = ModelDirectory::open(path);
  const std::string config_name = directory.path("config.json").string();
  const auto json = parse_json_object(directory.read("config.json"), config_name);
  const auto kind = kind_from_name(json_string(json, "vocabulary", config_name), config_name);
  TrainedModel trained{Bahdanau(config_from_json(json, config_name), 0),
                       read_vocabulary(directory, kSource, kind), read_vocabulary(directory, kTarget, kind)};
  const auto& config = trained.model.config();
  if (trained.source->size() != config.source_vocabulary ||
      trained.target->size() != config.target_vocabulary)
    throw DataError(config_name, 0,
                    "the vocabularies have other sizes than the model; restore the directory from a copy");
  std::vector<nn::Parameter> weights;
  for (auto& tensor :
       parse_safetensors(directory.read("model.safetensors"), directory.path("model.safetensors").string())
           .tensors)
    weights.push_back({std::move(tensor.name), std::move(tensor.tensor)});
  trained.model.load(weights);
  return trained;
}

}  // namespace regard::models
