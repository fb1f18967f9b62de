"""The one rule for environment and joint indices: every bad id is named before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

# An int, a range, a sequence of ints, a NumPy array, an integer tensor on any device or a bool mask of length N.
EnvIds = Any


def resolve_env_ids(env_ids: EnvIds | None, num_envs: int, device: torch.device | str = "cpu") -> Tensor:
    """Environment ids as an int64 tensor, shape (M,), on `device`. None means every environment, empty means none.

    Raises IndexError for an id outside [0, num_envs) or a mask of another length, and TypeError for float or uint8
    values, which are as likely a mask as a list of ids.
    """
    return _resolve(env_ids, num_envs, "environment", "num_envs").to(device)


def resolve_joint_ids(joint_ids: EnvIds, num_joints: int) -> Tensor:
    """Joint columns as an int64 tensor, shape (K,), on the CPU; the rules of `resolve_env_ids`."""
    return _resolve(joint_ids, num_joints, "joint", "num_joints")


def _resolve(ids: EnvIds | None, count: int, what: str, count_name: str) -> Tensor:
    if ids is None:
        return torch.arange(count)
    values = _as_cpu_tensor(ids, what)
    if values.dtype == torch.bool:
        if values.shape != (count,):
            raise IndexError(
                f"a bool {what} mask must have shape ({count},), got {tuple(values.shape)} ({count_name}={count})"
            )
        return values.nonzero().flatten()
    if values.ndim == 0:
        values = values.reshape(1)
    if values.ndim != 1:
        raise IndexError(f"{what} ids must have shape (M,), got {tuple(values.shape)} ({count_name}={count})")
    values = values.to(torch.int64)
    outside = values[(values < 0) | (values >= count)]
    if outside.numel():
        raise IndexError(
            f"{what} id {int(outside[0])} is outside [0, {count}) ({count_name}={count}); "
            "negative ids do not count from the end"
        )
    return values


def _as_cpu_tensor(ids: EnvIds, what: str) -> Tensor:
    if isinstance(ids, Tensor):
        values = ids.detach().cpu()
    elif isinstance(ids, np.ndarray):
        if ids.dtype.kind not in "biuf":
            raise TypeError(f"{what} ids must be ints or a bool mask, got an array of {ids.dtype}")
        values = torch.from_numpy(np.ascontiguousarray(ids))
    elif isinstance(ids, bool):
        raise TypeError(f"{what} ids must be ints or a bool mask of full length, got the single bool {ids!r}")
    elif isinstance(ids, (int, np.integer)):
        values = _listed([int(ids)], what)
    elif isinstance(ids, Iterable) and not isinstance(ids, (str, bytes)):
        values = _listed([item.item() if isinstance(item, (Tensor, np.generic)) else item for item in ids], what)
    else:
        raise TypeError(f"{what} ids must be ints, a bool mask or None, got {type(ids).__name__}")
    if values.numel() == 0 and values.ndim == 1 and values.dtype != torch.bool:
        return torch.zeros(0, dtype=torch.int64)
    if values.dtype == torch.uint8 or values.dtype.is_floating_point or values.dtype.is_complex:
        raise TypeError(
            f"{what} ids of type {values.dtype} could be a mask or a list of ids; "
            "pass int64 ids, or a bool mask of full length"
        )
    return values


def _listed(items: list[Any], what: str) -> Tensor:
    if not items:
        return torch.zeros(0, dtype=torch.int64)
    if len({isinstance(item, bool) for item in items}) > 1:  # torch would make ids of the bools
        raise TypeError(f"{what} ids must be ints, or bools throughout, got {items!r:.60}")
    try:
        return torch.tensor(items)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"{what} ids must be ints or a bool mask, got {items!r:.60} ({error})") from error
