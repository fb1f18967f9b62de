"""Which device tensors live on: explicit, checked once, never a silent fallback."""

from __future__ import annotations

import sys

import torch

from simulo.errors import BackendError


def resolve_device(device: str | torch.device) -> torch.device:
    """The torch device for "cpu", "cuda:<i>" or "auto": a GPU when there is one, else it says so and uses the CPU.

    Raises BackendError for a CUDA device that this machine does not have, and ValueError for any other name.
    """
    name = str(device)
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda:0")
        print("simulo: no CUDA device found, device='auto' uses the CPU", file=sys.stderr)
        return torch.device("cpu")
    try:
        resolved = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device={name!r} is not a device; use 'cpu', 'cuda:0' or 'auto'") from error
    if resolved.type == "cpu":
        return torch.device("cpu")
    if resolved.type != "cuda":
        raise ValueError(f"device={name!r} is not supported; use 'cpu', 'cuda:0' or 'auto'")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index = resolved.index or 0
    if index >= count:
        raise BackendError(
            f"device={name!r} was asked for, and this machine has {count} CUDA devices; use device='cpu', "
            "or device='auto' to fall back on purpose"
        )
    return torch.device("cuda", index)
