"""Numbers from a caller as a tensor, or a refusal that names them."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor


def real_number(value: object) -> float:
    """Python's and NumPy's numbers as a float; nan for what would be one only by accident: bools, text, tensors."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def real_tensor(values: Tensor | ArrayLike, what: str) -> Tensor:
    """Integers or floats as a tensor without gradients, float64 unless they were a tensor. Never written to.

    Raises TypeError, naming `what`, for anything that would only become a number by accident: bools, complex numbers,
    None, text.
    """
    if isinstance(values, Tensor):
        tensor = values.detach()
        kind = "b" if tensor.dtype == torch.bool else "c" if tensor.is_complex() else "f"
    else:
        array = np.asarray(values)
        kind = array.dtype.kind
        tensor = torch.from_numpy(array.astype(np.float64)) if kind in "iuf" else torch.empty(0)
    if kind not in "iuf":
        raise TypeError(f"{what} must be integers or floats, got {values!r:.60}")
    return tensor


def real_rows(values: Tensor | ArrayLike, num_rows: int, width: int, what: str) -> Tensor:
    """Values as float32, shape (num_rows, width): from a scalar, (width,) or (num_rows, width). Never written to."""
    tensor = real_tensor(values, what).to(torch.float32)
    if tensor.ndim == 0 or tensor.shape == (width,) or tensor.shape == (num_rows, width):
        return tensor.expand(num_rows, width)
    raise ValueError(
        f"{what} of {width} joints in {num_rows} environments must have shape ({width},) or ({num_rows}, {width}), "
        f"got {tuple(tensor.shape)}"
    )


def host_array(tensor: Tensor) -> NDArray | None:
    """NumPy's view of a tensor's memory, None off the CPU.

    For the few steps of a policy step that must be quick: behind physics, when caches are cold, every kind of torch
    call costs 15 to 30 us on small tensors, and NumPy's a fourth of that (measured).
    """
    return tensor.numpy() if tensor.device.type == "cpu" else None
