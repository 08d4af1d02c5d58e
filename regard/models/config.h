#pragma once
// The sizes and choices of all models in one flat value, and the one table of their names: config.json, the
// command line and the errors read it.

#include <boost/json.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "regard/nn/attention.h"
#include "regard/nn/cells.h"
#include "regard/nn/layers.h"
#include "regard/nn/positions.h"

namespace regard::models {

/// The decoder's last hidden layer.
enum class Readout { tanh, maxout };

/// How a decoder's state is scored against an annotation, and which annotations it sees (Luong et al. 2015).
enum class Score { dot, general, concat, location };
enum class Attention { global, local_m, local_p };

/// What a model is made of. A model reads some of these (its registration lists which); the rest stays at the
/// default. Letters as in the models: V vocabularies, D embedding, N state, A alignment, R readout.
struct ModelConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t embedding = 256, width = 256, alignment_width = 256, readout_width = 256;
  int64_t layers = 1;
  int64_t heads = 8, feed_forward = 1024;
  nn::CellKind cell = nn::CellKind::gru;
  Readout readout = Readout::tanh;
  nn::NormOrder norm = nn::NormOrder::after;
  nn::PositionKind positions = nn::PositionKind::sinusoid;
  nn::FeedForwardActivation activation = nn::FeedForwardActivation::swish;
  bool reverse_source = false;
  bool bidirectional = false;
  bool residual = false;
  bool separate_embeddings = false;
  bool tied_embeddings = false;
  bool intra_attention = true;  ///< of Paulus's decoder to its earlier states
  bool pointer = true;          ///< that copies source words
  Score score = Score::general;
  Attention attention = Attention::global;
  int64_t window = 0;                               ///< half width of local attention; 0: not given, all
  std::vector<nn::AttentionForm> self_attention{};  ///< of every layer; one: of all; none: exact, or a window
  int64_t block_size = 0;                           ///< of block-sparse self-attention; 0: not given
  int64_t longest_source = 0;                       ///< positions that location scores; 0: not given
  bool input_feeding = false;
  bool intra_sentence = false;
  double dropout = 0, attention_dropout = 0;
};

struct IntegerField {
  int64_t ModelConfig::*member;
  int64_t smallest, largest;
};
struct NumberField {
  double ModelConfig::*member;
  double smallest, largest;
};
struct FlagField {
  bool ModelConfig::*member;
};
/// One of several names; the number is the place in `names`.
struct ChoiceField {
  std::vector<std::string> names;
  int (*get)(const ModelConfig&);
  void (*set)(ModelConfig&, int);
};

/// Several of several names, with commas between them on the command line; the numbers are places in `names`.
struct ListField {
  std::vector<std::string> names;
  std::vector<int> (*get)(const ModelConfig&);
  void (*set)(ModelConfig&, const std::vector<int>&);
};

/// One member of ModelConfig as it is written: `name` in config.json, --name with dashes on the command line.
struct ConfigField {
  std::string name, help;
  std::variant<IntegerField, NumberField, FlagField, ChoiceField, ListField> kind;

  /// "--readout-width"; of a flag that is on if nothing is said "--no-pointer".
  std::string option() const;
};

/// Every field but the vocabularies' sizes, in the order in which they are written.
std::span<const ConfigField> config_fields();
/// Throws Error (internal) if there is none of this name.
const ConfigField& config_field(std::string_view name);

/// The places of names in a list, with commas between them. Throws UsageError naming what is unknown.
std::vector<int> parse_list(const ConfigField& field, std::string_view text);

/// to.field = from.field
void copy_field(const ConfigField& field, const ModelConfig& from, ModelConfig& to);

/// The vocabularies' sizes and the fields named, and back. Throws DataError naming `file`.
boost::json::object config_json(const ModelConfig& config, std::span<const char* const> fields);
ModelConfig config_from_json(const boost::json::object& json, std::span<const char* const> fields,
                             std::string_view file);

}  // namespace regard::models
