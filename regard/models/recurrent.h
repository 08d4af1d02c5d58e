#pragma once
// Layers that the recurrent models share: a recurrent layer with its parameters, an encoder of such layers,
// and the layer before the output.

#include <string>
#include <vector>

#include "regard/models/model.h"
#include "regard/models/sentences.h"
#include "regard/nn/cells.h"

namespace regard::models {

/// One recurrent layer: x_t = W y_t + b_ih, then the cell. g gates, N state, K inputs.
struct RecurrentLayer {
  nn::CellKind kind = nn::CellKind::gru;
  Tensor W, U, b_ih, b_hh;  // [gN, K], [gN, N], [gN], [gN] or undefined

  void visit(const ParameterVisitor& visitor, const std::string& name, nn::CellKind cell, int64_t inputs,
             int64_t width);
  Tensor project(const Tensor& y) const { return autograd::linear(y, W, b_ih); }  // [R, gN]
  nn::Cell cell() const { return {kind, U, b_hh}; }
};

/// Throws UsageError if options of recurrent layers do not fit each other.
void check_recurrent(const ModelConfig& config);

/// What a stack's layer returns: h, in a residual stack above the first layer h + below. Both [R, N].
Tensor layer_output(const ModelConfig& config, size_t layer, const Tensor& h, const Tensor& below);

/// What an encoder returns: annotations of every position, and the last states of every layer.
struct Encoded {
  autograd::Ragged sources;
  Tensor h;                            ///< [S, N], in both directions [S, 2N]
  std::vector<nn::CellState> forward;  ///< [B, N] after the last word, by layer
  std::vector<nn::CellState>
      backward;  ///< [B, N] after the first word, read from the end; in both directions
};

/// An encoder of one or more recurrent layers, in one direction or both, over embeddings of the source.
/// Layers above the first read the annotations of the one below, with dropout between them; with
/// config.residual they add them to their own.
class RecurrentEncoder {
 public:
  /// Names: NAME.forward..., NAME.backward... for the first layer, NAME.2.forward... above.
  void visit(const ParameterVisitor& visitor, const std::string& name, const ModelConfig& config,
             bool bidirectional);
  /// With config.reverse_source the words (not the end symbol) are read from the last to the first.
  Encoded operator()(std::span<const std::span<const int32_t>> sources, const Tensor& embedding,
                     const ModelConfig& config, const Dropout& dropout) const;

 private:
  struct Layer {
    RecurrentLayer forward, backward;
  };
  std::vector<Layer> layers_;
  bool bidirectional_ = false;
};

/// The layer before the output, of state s, context c and previous word's embedding Ey:
///   tanh    t = tanh(S s + C c + V Ey + b)
///   maxout  t~ = S s + C c + V Ey,  t_k = max(t~_{2k-1}, t~_{2k})      Bahdanau et al. 2015, A.2.2
struct ReadoutLayer {
  Readout kind = Readout::tanh;
  Tensor S, C, V, b;  // [R, N], [R, E], [R, D], [R]; maxout: 2R rows and no b

  void visit(const ParameterVisitor& visitor, const ModelConfig& config, int64_t context_width);
  /// V Ey + b, which depends on the word alone.
  Tensor word_part(const Tensor& Ey) const { return autograd::linear(Ey, V, b); }
  /// From S s + C c and the word's part.
  Tensor finish(const Tensor& s_and_c, const Tensor& word_part) const;
};

/// Dropout's layers; those of an encoder count up from kEncoderLayer.
enum DropoutLayer : uint64_t { kReadoutLayer = 0, kDecoderLayer = 0x100, kEncoderLayer = 0x200 };

/// 0, 1, ..., n - 1: every position has a row of its own.
std::vector<int32_t> identity_index(int64_t n);

}  // namespace regard::models
