"""Batches of poses, position [m] and wxyz, shape (..., 7), in float64 on the CPU: for what happens now and then."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulo.errors import GateError
from simulo.pose import Pose
from simulo.rotations import conjugate, multiply, rotate
from simulo.tensors import real_tensor


def pose_rows(pose: Pose | Tensor | ArrayLike, count: int, what: str) -> Tensor:
    """One pose for each of `count` environments, from a Pose, (7,) or (count, 7); GateError where it names no pose."""
    values = any_pose_rows(pose, count, what)
    if not torch.isfinite(values).all():
        raise GateError(f"{what} holds a number that is not finite or a zero quaternion; the identity is (1, 0, 0, 0)")
    return values


def any_pose_rows(pose: Pose | Tensor | ArrayLike, count: int, what: str) -> Tensor:
    """As `pose_rows`, but what names no pose is let through as NaN, for a check that stops the environments it is in;
    GateError for shapes alone, TypeError for what is no numbers."""
    if isinstance(pose, Pose):
        values = torch.tensor([*pose.position, *pose.orientation_wxyz], dtype=torch.float64)
    else:
        values = real_tensor(pose, what).to("cpu", torch.float64)
    if tuple(values.shape) not in ((7,), (count, 7)):
        raise GateError(
            f"{what} must be a Pose, or position and wxyz of shape (7,) or ({count}, 7); got {tuple(values.shape)}"
        )
    unit = values[..., 3:] / values[..., 3:].norm(dim=-1, keepdim=True)
    return torch.cat([values[..., :3], unit], dim=-1).expand(count, 7).clone()


def compose(a: Tensor, b: Tensor) -> Tensor:
    """`compose(pose_x_y, pose_y_z)` is pose_x_z, row by row."""
    return torch.cat([a[..., :3] + rotate(a[..., 3:], b[..., :3]), multiply(a[..., 3:], b[..., 3:])], dim=-1)


def inverse(a: Tensor) -> Tensor:
    back = conjugate(a[..., 3:])
    return torch.cat([-rotate(back, a[..., :3]), back], dim=-1)
