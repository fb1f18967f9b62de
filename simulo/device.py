"""Which device tensors live on: explicit, checked once, never a silent fallback."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache

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


_NO_DRIVER = b"Warp CUDA warning: Could not find or load the NVIDIA CUDA driver."


@cache
def start_warp() -> None:
    """Start Warp, leaving out its line about a missing CUDA driver: `resolve_device` has said what there is to say.

    Warp prints it in native code, whatever its configuration, past `sys.stderr`. So what arrives at the file behind
    standard error in the meantime is caught, and everything but that line is passed on.
    """
    import warp

    try:
        caught, stderr = tempfile.TemporaryFile(), os.dup(2)
    except OSError:  # nowhere to keep it, or no standard error, where nothing is printed either
        warp.init()
        return
    _flush_stderr()
    os.dup2(caught.fileno(), 2)
    try:
        warp.init()
    finally:
        _flush_stderr()
        os.dup2(stderr, 2)
        os.close(stderr)
        with caught:
            caught.seek(0)
            for line in caught:
                if not line.startswith(_NO_DRIVER):
                    os.write(2, line)


def _flush_stderr() -> None:
    if sys.stderr is not None:  # as in a program without a console
        sys.stderr.flush()
