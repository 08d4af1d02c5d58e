#pragma once
// The operations by name, for the registry. A new operation is declared here and listed in registry.cc.

#include "regard/autograd/tape.h"

namespace regard::autograd {

extern const Operation kLinear, kAdd, kAddBias, kMultiply, kMix, kTanh, kSigmoid, kRelu, kColumns,
    kConcatColumns, kConcatRows, kRows, kRowRange, kMaxout, kDropout, kSum, kElmanSequence, kLstmSequence,
    kGruSequence, kLstmnSequence, kAdditiveAttention, kAttentionDecoder, kDotAttention, kLocationAttention,
    kLocalAttention, kLocalCentres, kGuidedLoss, kOutputLoss, kLayerNorm, kAddDropout, kSwish, kScaledRows,
    kRotary, kSelfAttention, kCrossAttention, kLinearSelfAttention, kSumRows, kSwishLinear,
    kIntraTemporalAttention, kIntraDecoderAttention, kPointerLoss;

}  // namespace regard::autograd
