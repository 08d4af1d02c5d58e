#include "regard/models/registry.h"

#include <fmt/format.h>

#include "regard/models/bahdanau.h"

namespace regard::models {
namespace {

template <class Model>
std::unique_ptr<EncoderDecoder> make(const ModelConfig& config) {
  return std::make_unique<Model>(config);
}

std::vector<ModelKind> make_list() {
  return {
      {"bahdanau",
       "a bidirectional encoder that the decoder looks back at (Bahdanau, Cho and Bengio 2015)",
       {"embedding", "width", "alignment_width", "readout_width", "readout", "dropout"},
       make<Bahdanau>},
  };
}

}  // namespace

std::span<const ModelKind> all_models() {
  static const std::vector<ModelKind> list = make_list();
  return list;
}

const ModelKind& model_kind(std::string_view name) {
  std::string names;
  for (const ModelKind& kind : all_models()) {
    if (name == kind.name) return kind;
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw UsageError(fmt::format("there is no model \"{}\"; expected one of {}", name, names));
}

std::unique_ptr<EncoderDecoder> make_model(const ModelKind& kind, const ModelConfig& config, uint64_t seed) {
  auto model = kind.make(config);
  model->initialise(seed);
  return model;
}

}  // namespace regard::models
