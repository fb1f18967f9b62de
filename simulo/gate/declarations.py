"""Regions where a contact is allowed for a while: what may be declared, and when each declaration ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from simulo.collision import CollisionChecker, ConvexShape
from simulo.description import Gripper, RobotDescription, reference_fk
from simulo.errors import GateError
from simulo.pose import Pose
from simulo.tensors import real_number, real_tensor


@dataclass(frozen=True)
class Region:
    """A box in the environment's frame: pose of its centre (a Pose, or position and wxyz of shape (7,) or (M, 7)),
    size [m]: full edges."""

    pose: Pose | Tensor
    size: tuple[float, float, float]


def edges(size: ArrayLike, what: str) -> tuple[float, float, float]:
    """Three full edges [m]; GateError unless finite and positive, TypeError for what is no numbers."""
    values = real_tensor(size, what).cpu().double().numpy()
    if values.shape != (3,) or not (np.isfinite(values).all() and (values > 0.0).all()):
        raise GateError(f"{what} must be three finite positive full edges in metres, got {size!r}")
    return float(values[0]), float(values[1]), float(values[2])


def checked_duration(duration: float, what: str) -> float:
    if not 0.0 < real_number(duration) < math.inf:
        raise GateError(f"{what}: duration must be a finite time > 0 s, got {duration!r:.60}; an exemption must end")
    return float(duration)


def aperture_limit(
    description: RobotDescription, gripper: Gripper, cell: float
) -> tuple[tuple[float, float, float], str]:
    """Largest edges [m] of a grasp box for an object of unknown size, and why: what fits between the open pads."""
    q = np.array(description.rest_pose, dtype=np.float64)
    q[description.joint_names.index(gripper.joint)] = gripper.open_position
    poses = reference_fk(description, q)
    first, second = ((poses[pad.link] @ [*pad.position, 1.0])[:3] for pad in gripper.pad_points)
    most = float(np.linalg.norm(first - second)) + 2.0 * cell
    return (most, most, most), "the open hand's aperture and a cell on each side (name the object to have it measured)"


def object_limit(shape: ConvexShape, name: str, cell: float) -> tuple[tuple[float, float, float], str]:
    """Largest edges [m] of a grasp box for an object, and why."""
    x, y, z = 2.0 * (shape.half + shape.radius + cell)
    return (float(x), float(y), float(z)), f"the box of {name} and a cell on each side"


def fits(size: tuple[float, float, float], limit: tuple[float, float, float]) -> bool:
    """Whether a box is no larger than `limit` [m] along any edge, edges compared in order of length."""
    return all(a <= b + 1e-9 for a, b in zip(sorted(size), sorted(limit), strict=True))


def refuse_oversized(size: tuple[float, float, float], limit: tuple[float, float, float], why: str) -> None:
    """GateError when a grasp box is larger than `limit` [m] along any edge, edges compared in order of length."""
    if not fits(size, limit):
        asked, allowed = sorted(size), sorted(limit)
        millimetres = " x ".join(f"{1000 * v:.0f}" for v in asked)
        most = " x ".join(f"{1000 * v:.0f}" for v in allowed)
        raise GateError(
            f"declare_grasp: the box of {millimetres} mm is larger than {most} mm, {why}; the fingers are not checked "
            "inside it, so it must not reach beyond what is to be grasped"
        )


class Expiries:
    """When each declaration of each environment ends [s]; columns: one per hand, then one per payload slot."""

    def __init__(self, num_envs: int, columns: int) -> None:
        self._ends = np.full((num_envs, columns), np.inf)
        self._next = math.inf

    def set(self, env_ids: Tensor, column: int, end: float) -> None:
        """end [s]; inf for a declaration that no time ends, or none."""
        self._ends[env_ids.cpu().numpy(), column] = end
        self._next = float(self._ends.min())

    def due(self, now: float) -> list[tuple[int, Tensor]]:
        """(column, environments) whose declarations have ended; forgotten once told."""
        if now < self._next:
            return []
        ended = self._ends <= now
        self._ends[ended] = np.inf
        self._next = float(self._ends.min())
        return [(int(c), torch.from_numpy(np.flatnonzero(ended[:, c]))) for c in np.flatnonzero(ended.any(axis=0))]


def end_region(checker: CollisionChecker, column: int, env_ids: Tensor, slots_per_hand: int) -> None:
    """Close the exemption of one column of `Expiries`."""
    hands = [gripper.name for gripper in checker.model.grippers]
    if column < len(hands):
        checker.clear_grasp_region(hands[column], env_ids)
        return
    hand, slot = divmod(column - len(hands), slots_per_hand)
    checker.clear_support_region(hands[hand], slot, env_ids)
