#include "regard/models/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "regard/base/error.h"
#include "regard/storage/json.h"

namespace regard::models {
namespace {

constexpr int64_t kLargestWidth = 16384, kLargestWindow = 1024, kLargestVocabulary = int64_t{1} << 24;

template <auto Member>
ChoiceField choice(std::vector<std::string> names) {
  using Enum = std::remove_cvref_t<decltype(std::declval<ModelConfig>().*Member)>;
  return {std::move(names), [](const ModelConfig& config) { return static_cast<int>(config.*Member); },
          [](ModelConfig& config, int value) { config.*Member = static_cast<Enum>(value); }};
}

template <auto Member>
ListField list(std::vector<std::string> names) {
  using Enum = typename std::remove_cvref_t<decltype(std::declval<ModelConfig>().*Member)>::value_type;
  return {std::move(names),
          [](const ModelConfig& config) {
            std::vector<int> places;
            for (const Enum value : config.*Member) places.push_back(static_cast<int>(value));
            return places;
          },
          [](ModelConfig& config, const std::vector<int>& places) {
            (config.*Member).clear();
            for (const int place : places) (config.*Member).push_back(static_cast<Enum>(place));
          }};
}

IntegerField width(int64_t ModelConfig::*member) { return {member, 1, kLargestWidth}; }

std::vector<std::string> cell_names() {
  std::vector<std::string> names;
  for (const nn::CellKind kind : nn::cell_kinds()) names.emplace_back(nn::cell_name(kind));
  return names;
}

std::vector<ConfigField> make_fields() {
  return {
      {"embedding", "Width of embeddings", width(&ModelConfig::embedding)},
      {"width", "Width of the states (of an encoder: per direction)", width(&ModelConfig::width)},
      {"alignment_width", "Width of the alignment model's hidden layer",
       width(&ModelConfig::alignment_width)},
      {"readout_width", "Width of the layer before the output", width(&ModelConfig::readout_width)},
      {"layers", "Layers of encoder and decoder", IntegerField{&ModelConfig::layers, 1, 64}},
      {"cell", "The recurrent cell; gru resets after the product, gru-2014 and gru-2015 before it",
       choice<&ModelConfig::cell>(cell_names())},
      {"readout", "The layer before the output: tanh of state, context and word, or maxout of pairs (2015)",
       choice<&ModelConfig::readout>({"tanh", "maxout"})},
      {"bidirectional", "The encoder reads in both directions", FlagField{&ModelConfig::bidirectional}},
      {"residual", "Recurrent layers above the first add what they read to what they return (Wu et al. 2016)",
       FlagField{&ModelConfig::residual}},
      {"reverse_source", "The encoder reads the source's words from the end (Sutskever et al. 2014)",
       FlagField{&ModelConfig::reverse_source}},
      {"score", "How states are scored against annotations (Luong et al. 2015)",
       choice<&ModelConfig::score>({"dot", "general", "concat", "location"})},
      {"attention",
       "All of the source, or a window: at the target's own position (local-m), at a predicted one (local-p)",
       choice<&ModelConfig::attention>({"global", "local-m", "local-p"})},
      {"window", "Half width of local attention's window; a transformer's self-attention sees so far, 0: all",
       IntegerField{&ModelConfig::window, 0, kLargestWindow}},
      {"self_attention",
       "How a transformer's layers attend to their own side, one name for all or one a layer with commas "
       "between: "
       "exact, window (--window), block-sparse (--block-size), linear",
       list<&ModelConfig::self_attention>({"exact", "window", "block-sparse", "linear"})},
      {"block_size", "Positions of a block of block-sparse self-attention",
       IntegerField{&ModelConfig::block_size, 0, kLargestWidth}},
      {"longest_source", "Source positions that --score location has weights for",
       IntegerField{&ModelConfig::longest_source, 0, kLargestWidth}},
      {"input_feeding", "The decoder also reads its last attentional vector",
       FlagField{&ModelConfig::input_feeding}},
      {"intra_sentence",
       "Each sentence first attends to itself, with a bias by distance (Parikh et al. 2016)",
       FlagField{&ModelConfig::intra_sentence}},
      {"heads", "Heads of attention, which share the width", IntegerField{&ModelConfig::heads, 1, 1024}},
      {"feed_forward", "Width of the hidden layer between two attentions", width(&ModelConfig::feed_forward)},
      {"norm", "Norm before a layer or after its residual sum",
       choice<&ModelConfig::norm>({"before", "after"})},
      {"positions",
       "How a position is known: sinusoid (2017), learned, relative (Shaw 2018), relative-bias (T5), rotary, "
       "alibi, none",
       choice<&ModelConfig::positions>(
           {"sinusoid", "learned", "relative", "relative-bias", "rotary", "alibi", "none"})},
      {"activation", "Between the two feed-forward products",
       choice<&ModelConfig::activation>({"swish", "relu"})},
      {"separate_embeddings",
       "Source, target and output have embeddings of their own (of a language model: input and output)",
       FlagField{&ModelConfig::separate_embeddings}},
      {"tied_embeddings", "The output layer's weights are the embeddings (Press and Wolf 2017)",
       FlagField{&ModelConfig::tied_embeddings}},
      {"intra_attention", "The decoder does not look back at its own earlier states (Paulus et al. 2017)",
       FlagField{&ModelConfig::intra_attention}},
      {"pointer", "No word is copied from the source (Paulus et al. 2017)", FlagField{&ModelConfig::pointer}},
      {"dropout", "Share of numbers dropped in training, of states between layers and before the output",
       NumberField{&ModelConfig::dropout, 0, 0.95}},
      {"attention_dropout", "Share of attention weights dropped in training",
       NumberField{&ModelConfig::attention_dropout, 0, 0.95}},
  };
}

struct ToJson {
  const ModelConfig& config;
  boost::json::value operator()(const IntegerField& field) const { return config.*field.member; }
  boost::json::value operator()(const NumberField& field) const { return config.*field.member; }
  boost::json::value operator()(const FlagField& field) const { return config.*field.member; }
  boost::json::value operator()(const ChoiceField& field) const {
    return boost::json::string(field.names.at(static_cast<size_t>(field.get(config))));
  }
  boost::json::value operator()(const ListField& field) const {
    boost::json::array names;
    for (const int place : field.get(config)) names.emplace_back(field.names.at(static_cast<size_t>(place)));
    return names;
  }
};

struct FromJson {
  ModelConfig& config;
  const boost::json::object& json;
  const std::string& name;
  std::string_view file;

  void operator()(const IntegerField& field) const {
    config.*field.member = json_integer(json, name, file, field.smallest, field.largest);
  }
  void operator()(const NumberField& field) const {
    const double value = json_number(json, name, file);
    if (!(value >= field.smallest && value <= field.largest))
      throw DataError(
          file, 0,
          fmt::format("\"{}\" is {}, expected {} to {}", name, value, field.smallest, field.largest));
    config.*field.member = value;
  }
  void operator()(const FlagField& field) const { config.*field.member = json_boolean(json, name, file); }
  void operator()(const ChoiceField& field) const {
    const std::string value = json_string(json, name, file);
    const auto found = std::find(field.names.begin(), field.names.end(), value);
    if (found == field.names.end())
      throw DataError(
          file, 0, fmt::format("unknown {} \"{}\"; expected {}", name, value, fmt::join(field.names, ", ")));
    field.set(config, static_cast<int>(found - field.names.begin()));
  }
  void operator()(const ListField& field) const {
    std::vector<int> places;
    for (const auto& value : json_array(json, name, file)) {
      const auto found =
          std::find(field.names.begin(), field.names.end(), value.is_string() ? value.as_string() : "");
      if (found == field.names.end())
        throw DataError(file, 0,
                        fmt::format("\"{}\": expected names of {}", name, fmt::join(field.names, ", ")));
      places.push_back(static_cast<int>(found - field.names.begin()));
    }
    field.set(config, places);
  }
};

}  // namespace

std::string ConfigField::option() const {
  const auto* flag = std::get_if<FlagField>(&kind);
  std::string result = (flag && ModelConfig().*flag->member ? "--no-" : "--") + name;
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

std::span<const ConfigField> config_fields() {
  static const std::vector<ConfigField> fields = make_fields();
  return fields;
}

const ConfigField& config_field(std::string_view name) {
  for (const ConfigField& field : config_fields())
    if (field.name == name) return field;
  throw Error(ErrorKind::internal, "no model option is called " + std::string(name));
}

std::vector<int> parse_list(const ConfigField& field, std::string_view text) {
  const auto& names = std::get<ListField>(field.kind).names;
  std::vector<int> places;
  if (text.empty())
    throw UsageError(fmt::format("{}: give names of {}", field.option(), fmt::join(names, ", ")));
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw UsageError(fmt::format("{}: \"{}\" is none of {}", field.option(), name, fmt::join(names, ", ")));
    places.push_back(static_cast<int>(found - names.begin()));
  }
  return places;
}

void copy_field(const ConfigField& field, const ModelConfig& from, ModelConfig& to) {
  if (const auto* list = std::get_if<ListField>(&field.kind)) list->set(to, list->get(from));
  if (const auto* choice = std::get_if<ChoiceField>(&field.kind)) choice->set(to, choice->get(from));
  if (const auto* integer = std::get_if<IntegerField>(&field.kind))
    to.*integer->member = from.*integer->member;
  if (const auto* number = std::get_if<NumberField>(&field.kind)) to.*number->member = from.*number->member;
  if (const auto* flag = std::get_if<FlagField>(&field.kind)) to.*flag->member = from.*flag->member;
}

boost::json::object config_json(const ModelConfig& config, std::span<const char* const> fields) {
  boost::json::object json{{"source_vocabulary", config.source_vocabulary},
                           {"target_vocabulary", config.target_vocabulary}};
  for (const char* name : fields) json[name] = std::visit(ToJson{config}, config_field(name).kind);
  return json;
}

ModelConfig config_from_json(const boost::json::object& json, std::span<const char* const> fields,
                             std::string_view file) {
  ModelConfig config;
  config.source_vocabulary = json_integer(json, "source_vocabulary", file, 1, kLargestVocabulary);
  config.target_vocabulary = json_integer(json, "target_vocabulary", file, 1, kLargestVocabulary);
  for (const char* name : fields) {
    const ConfigField& field = config_field(name);
    if (!json.contains(name)) continue;  // written before there was this option: as it was then
    std::visit(FromJson{config, json, field.name, file}, field.kind);
  }
  return config;
}

}  // namespace regard::models
