#pragma once
// The f32 kernels of additive attention for one row (Highway, dynamic dispatch). Operands as in
// additive_reference.h.

#include "regard/attention/additive_reference.h"

namespace regard::attention {

/// reference::additive_forward in f32.
void additive_forward_row(const reference::AdditiveRow<float>& row, float* alpha, float* c);

/// reference::additive_backward in f32; tanh is computed again.
void additive_backward_row(const reference::AdditiveRow<float>& row, const float* alpha,
                           const reference::AdditiveRowGradients<float>& d);

}  // namespace regard::attention
