"""Attention on a CPU: every score, mask and form, exact gradients, the same bits on any number of threads.

Functions take numpy arrays, PyTorch tensors on the CPU, or anything else that speaks DLPack, without copies where strides
allow, and return arrays of the first operand's library (numpy arrays for others). PyTorch's tensors are taken detached:
gradients come from the `_backward` functions.
"""

from ._additive import AdditiveGradients, additive_attention, additive_attention_backward
from ._attention import (AttentionGradients, AttentionResult, BlockSparse, Dropout, attention, attention_backward, merge)
from ._decode import KVCache, decode
from ._kernels import ShapeError
from ._kernels import version as __version__
from ._linear import LinearGradients, LinearState, linear_attention, linear_attention_backward

__all__ = [
    "AdditiveGradients", "AttentionGradients", "AttentionResult", "BlockSparse", "Dropout", "KVCache", "LinearGradients",
    "LinearState", "ShapeError", "additive_attention", "additive_attention_backward", "attention", "attention_backward",
    "decode", "linear_attention", "linear_attention_backward", "merge",
]
