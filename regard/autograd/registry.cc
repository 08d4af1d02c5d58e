#include "regard/autograd/registry.h"

namespace regard::autograd {

std::vector<const Operation*> all_operations() {
  return {&kLinear,
          &kAdd,
          &kAddBias,
          &kMultiply,
          &kMix,
          &kTanh,
          &kSigmoid,
          &kRelu,
          &kColumns,
          &kConcatColumns,
          &kConcatRows,
          &kRows,
          &kRowRange,
          &kMaxout,
          &kDropout,
          &kSum,
          &kElmanSequence,
          &kLstmSequence,
          &kGruSequence,
          &kLstmnSequence,
          &kAdditiveAttention,
          &kAttentionDecoder,
          &kDotAttention,
          &kLocationAttention,
          &kLocalAttention,
          &kLocalCentres,
          &kGuidedLoss,
          &kOutputLoss,
          &kLayerNorm,
          &kAddDropout,
          &kSwish,
          &kScaledRows,
          &kRotary,
          &kSelfAttention,
          &kLinearSelfAttention,
          &kSumRows,
          &kSwishLinear,
          &kCrossAttention,
          &kIntraTemporalAttention,
          &kIntraDecoderAttention,
          &kPointerLoss};
}

}  // namespace regard::autograd
