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

namespace {

/// What every model's directory holds.
struct Content {
  const ModelKind* kind;
  boost::json::object json;
  ModelConfig config;
  Vocabularies vocabularies;
  std::vector<nn::Parameter> weights;
  std::string config_file;

  int64_t longest() const { return json_integer(json, "longest", config_file, 2, int64_t{1} << 24); }
};

void require_task(const std::filesystem::path& path, const ModelKind& kind, Task task) {
  static const char* const kVerbs[] = {"translate", "generate", "entail"};
  if (kind.task == task) return;
  throw UsageError(path.string() + " holds a model of --model " + kind.name + ", which is for `regard " +
                   kVerbs[static_cast<int>(kind.task)] + "`");
}

Content read_content(const std::filesystem::path& path, Task task) {
  const ModelDirectory directory = ModelDirectory::open(path);
  Content content;
  content.config_file = directory.path("config.json").string();
  content.json = parse_json_object(directory.read("config.json"), content.config_file);
  content.kind = &kind_in_file(content.json, content.config_file);
  require_task(path, *content.kind, task);
  content.config = config_from_json(content.json, content.kind->options, content.config_file);
  content.vocabularies = load_vocabularies(directory);
  for (auto& tensor :
       parse_safetensors(directory.read("model.safetensors"), directory.path("model.safetensors").string())
           .tensors)
    content.weights.push_back({std::move(tensor.name), std::move(tensor.tensor)});
  return content;
}

std::vector<std::string> labels_of(const Content& content) {
  std::vector<std::string> labels;
  for (const auto& label : json_array(content.json, "labels", content.config_file)) {
    if (!label.is_string()) throw DataError(content.config_file, 0, "\"labels\": expected strings alone");
    labels.emplace_back(label.as_string());
  }
  return labels;
}

/// The model that the configuration asks for, with the file's weights.
template <class Make>
auto loaded(const Make& make, const Content& content) {
  try {
    auto model = make(*content.kind, content.config, std::nullopt);
    model->load(content.weights);
    return model;
  } catch (const UsageError& error) {
    throw DataError(content.config_file, 0, error.what());
  } catch (const DataError& error) {
    throw DataError(content.config_file, 0, error.what());
  }
}

[[noreturn]] void fail_sizes(const std::string& file) {
  throw DataError(file, 0,
                  "the vocabularies have other sizes than the model; restore the directory from a copy");
}

}  // namespace

TrainedModel load_model(const std::filesystem::path& path, Task task) {
  const Content content = read_content(path, task);
  const auto& [source, target] = content.vocabularies;
  if (source->size() != content.config.source_vocabulary ||
      target->size() != content.config.target_vocabulary)
    fail_sizes(content.config_file);
  std::vector<Tensor> tensors;
  for (const auto& weight : content.weights) tensors.push_back(weight.value);
  const std::shared_ptr<EncoderDecoder> model = loaded(make_encoder_decoder, content);
  const bool is_stream =
      task == Task::language && !json_boolean(content.json, "text_lines", content.config_file);
  return {content.kind, model,  std::make_shared<const autograd::FrozenWeights>(tensors),
          source,       target, content.longest(),
          is_stream};
}

Task task_of(const std::filesystem::path& path) {
  const ModelDirectory directory = ModelDirectory::open(path);
  const std::string name = directory.path("config.json").string();
  return kind_in_file(parse_json_object(directory.read("config.json"), name), name).task;
}

TrainedClassifier load_classifier(const std::filesystem::path& path) {
  const Content content = read_content(path, Task::classification);
  TrainedClassifier trained{
      content.kind, {}, content.vocabularies.source, labels_of(content), content.longest()};
  if (trained.vocabulary->size() != content.config.source_vocabulary ||
      static_cast<int64_t>(trained.labels.size()) != content.config.target_vocabulary)
    fail_sizes(content.config_file);
  trained.model = loaded(make_classifier, content);
  return trained;
}

}  // namespace regard::models
