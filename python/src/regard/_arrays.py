"""Arrays of any library as numpy arrays on the same memory, and results as arrays of that library.

Inside the package bfloat16 is uint16: numpy has no such type of its own, and nothing here computes with it.
"""

from __future__ import annotations

import sys
from typing import Any, Sequence, TypeVar

import numpy as np

from ._kernels import ShapeError

Array = TypeVar("Array")  #: numpy.ndarray, torch.Tensor, or anything that speaks DLPack on the CPU
Integers = Any  #: a sequence or an array of integers

BFLOAT16 = np.dtype(np.uint16)
_KINDS = (np.dtype(np.float32), np.dtype(np.float64), BFLOAT16)


def _is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def dtype_name(dtype: np.dtype) -> str:
    return "bfloat16" if dtype == BFLOAT16 else str(dtype)


def as_numpy(name: str, x: Any) -> np.ndarray:
    """x's own memory, bfloat16 as uint16. TypeError for what has no array's interface."""
    if _is_torch(x):
        torch = sys.modules["torch"]
        if x.device.type != "cpu":
            raise TypeError(f"{name} is on {x.device}, expected the CPU")
        x = x.detach()
        return x.view(torch.int16).numpy().view(BFLOAT16) if x.dtype == torch.bfloat16 else x.numpy()
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack__"):
        array = np.asarray(x)
    else:
        array = np.from_dlpack(x)
    if array.dtype == BFLOAT16:
        raise TypeError(f"{name} is uint16, expected float32, float64 or bfloat16")
    return array.view(BFLOAT16) if array.dtype.name == "bfloat16" else array


def _addressable(array: np.ndarray) -> np.ndarray:
    """Kernels count strides in elements: what lies between them is copied."""
    whole = array.flags.aligned and all(stride % array.itemsize == 0 for stride in array.strides)
    return array if whole else np.ascontiguousarray(array)


def numbers(operation: str, name: str, x: Any, like: np.dtype | None = None) -> np.ndarray:
    """An operand in float32, float64 or bfloat16, in `like` if that is given."""
    array = as_numpy(f"[{operation}] {name}", x)
    expected = dtype_name(like) if like is not None else "float32, float64 or bfloat16"
    if array.dtype not in _KINDS or (like is not None and array.dtype != like):
        raise TypeError(f"[{operation}] {name} is {dtype_name(array.dtype)}, expected {expected}")
    return _addressable(array)


def real(dtype: np.dtype) -> np.dtype:
    """What scores, statistics and biases have: float64 for float64, else float32."""
    return np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)


def vector(x: Any, dtype: Any) -> np.ndarray | None:
    """A short list of numbers, copied where it is not already of that type."""
    if x is None:
        return None
    array = as_numpy("list", x)
    if np.issubdtype(dtype, np.integer) and array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"expected integers, got {array.dtype}")
    return np.ascontiguousarray(array, dtype)


def broadcast(operation: str, name: str, array: np.ndarray, shape: Sequence[int], writable: bool = False) -> np.ndarray:
    """A view of `shape` in which repeated dimensions have stride 0."""
    try:
        view = np.broadcast_to(array, shape)
    except ValueError:
        raise ShapeError(f"[{operation}] {name} {list(array.shape)}, expected to broadcast to {list(shape)} "
                         "(B, H, T, S)") from None
    return np.lib.stride_tricks.as_strided(array, view.shape, view.strides) if writable else view


def dimensions(operation: str, name: str, array: np.ndarray, count: int) -> None:
    if array.ndim != count:
        raise ShapeError(f"[{operation}] {name} {list(array.shape)}, expected {count} dimensions")


def give(array: np.ndarray, like: Any) -> Any:
    """`array`, which this package allocated, as an array of like's library."""
    if _is_torch(like):
        torch = sys.modules["torch"]
        tensor = torch.from_numpy(array.view(np.int16) if array.dtype == BFLOAT16 else array)
        return tensor.view(torch.bfloat16) if array.dtype == BFLOAT16 else tensor
    if array.dtype == BFLOAT16:
        return array.view(like.dtype)  # numpy's bfloat16 is that of ml_dtypes, which made `like`
    return array


def give_all(arrays: Sequence[np.ndarray | None], like: Any) -> list[Any]:
    return [None if array is None else give(array, like) for array in arrays]
