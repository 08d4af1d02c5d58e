#include "regard/models/directory.h"

#include "regard/storage/json.h"
#include "regard/storage/safetensors.h"

namespace regard::models {
namespace {

struct Side {
  const char *sentencepiece, *list;
};
constexpr Side kSource{"source.spm", "source.vocab.json"}, kTarget{"target.spm", "target.vocab.json"};

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
    if (name == vocabulary_name(kind)) return kind;
  throw DataError(file, 0,
                  "unknown vocabulary \"" + name + "\"; expected sentencepiece, words or characters");
}

const ModelKind& kind_in_file(const boost::json::object& json, std::string_view file) {
  try {
    return model_kind(json_string(json, "model", file));
  } catch (const UsageError& error) {
    throw DataError(file, 0, error.what());
  }
}

}  // namespace

const char* vocabulary_name(text::VocabularyKind kind) {
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

Vocabularies load_vocabularies(const ModelDirectory& directory) {
  const std::string name = directory.path("config.json").string();
  const auto json = parse_json_object(directory.read("config.json"), name);
  const auto kind = kind_from_name(json_string(json, "vocabulary", name), name);
  return {read_vocabulary(directory, kSource, kind), read_vocabulary(directory, kTarget, kind)};
}

TrainedModel load_model(const std::filesystem::path& path) {
  const ModelDirectory directory = ModelDirectory::open(path);
  const std::string name = directory.path("config.json").string();
  const auto json = parse_json_object(directory.read("config.json"), name);
  const ModelKind& kind = kind_in_file(json, name);
  const ModelConfig config = config_from_json(json, kind.options, name);
  const auto [source, target] = load_vocabularies(directory);
  if (source->size() != config.source_vocabulary || target->size() != config.target_vocabulary)
    throw DataError(name, 0,
                    "the vocabularies have other sizes than the model; restore the directory from a copy");
  std::vector<nn::Parameter> weights;
  std::vector<Tensor> tensors;
  for (auto& tensor :
       parse_safetensors(directory.read("model.safetensors"), directory.path("model.safetensors").string())
           .tensors) {
    tensors.push_back(tensor.tensor);
    weights.push_back({std::move(tensor.name), std::move(tensor.tensor)});
  }
  std::shared_ptr<EncoderDecoder> model = kind.make(config);
  model->load(weights);
  return {&kind,  model,  std::make_shared<const autograd::FrozenWeights>(tensors),
          source, target, json_integer(json, "longest", name, 2, int64_t{1} << 24)};
}

}  // namespace regard::models
