"""What a simulator hands to the parts of a scene once it is built, and what actuators hand to a robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor

from simulo.commands import CommandMode, JointCommands
from simulo.indexing import EnvIds
from simulo.pose import Vector

if TYPE_CHECKING:
    from simulo.robot import Robot


NO_BODY = -1
"""Where a bond's body is named, and there is none."""


@dataclass(frozen=True)
class LivePositions:
    """Where a simulator keeps joint positions: the same memory for good, so that a kernel can be pointed at it once.

    values [rad or m], float32 or float64, shape (num_envs, ...). columns, int64 (num_joints,): the robot's joints.
    """

    values: Tensor
    columns: Tensor


class Articulation(Protocol):
    """One robot in every environment, as a backend gives it. Columns of joints are `Robot.joint_names`."""

    num_envs: int
    device: torch.device

    @property
    def physics_tick(self) -> int:
        """Advances with physics; equal ticks are one physics time."""
        ...

    def joint_positions(self) -> Tensor: ...

    def live_positions(self) -> LivePositions | None:
        """The memory that joint_positions is copied from; None where there is no such memory on `device`."""
        ...

    def joint_velocities(self) -> Tensor: ...

    def link_poses(self) -> Tensor: ...

    def contact_forces(self, prop: str) -> tuple[Tensor, Tensor]: ...

    def position_limits(self) -> Tensor:
        """The engine's own clamp of position targets [rad or m], shape (num_actuated, 2); infinite where none."""
        ...

    def velocity_limits(self) -> Tensor:
        """The engine's own clamp of velocity targets [rad/s or m/s], shape (num_actuated, 2); infinite where none."""
        ...

    def check_mode(self, mode: CommandMode, columns: Sequence[int]) -> None: ...

    def write_joint_state(self, positions: Tensor, velocities: Tensor, env_ids: Tensor) -> None: ...

    def write_commands(self, commands: JointCommands) -> None: ...


class CommandLatch(Protocol):
    """What an actuator remembers of its commands, so that a refused command can be taken back."""

    def accept(self, envs: Tensor | None) -> None:
        """In the environments of a bool mask, or in all (None)."""
        ...

    def restore(self, envs: Tensor) -> None: ...


@dataclass(frozen=True)
class Cup:
    """Where a surface gripper sits: origin [m] and unit axis in its link's frame; it grips what lies along the axis."""

    link: str
    origin: Vector
    axis: Vector


@dataclass(frozen=True)
class BondLimits:
    """reach [m]: how far from the cup a surface may be to be caught. coaxial, shear [N]: a bond holds no more."""

    reach: float
    coaxial: float
    shear: float


class Bonds(Protocol):
    """The bonds of one surface gripper in every environment, as a backend gives them. Bodies are numbers, -1 none."""

    prop_bodies: dict[str, int]  # by name: the bodies that can be caught

    def sample(self) -> tuple[Tensor, Tensor]:
        """What is bonded, and what broke off since the last sample; int32, shape (num_envs,), the caller's to keep.

        A gripper from which something broke off catches nothing until it has been sampled.
        """
        ...

    def command(self, wanted: Tensor, barred: Tensor, limits: BondLimits) -> None:
        """From the next physics step on. wanted: bool (num_envs,), where a bond is sought or kept; elsewhere it is
        let go. barred: int32 (num_envs,), the body not to be caught."""
        ...

    def reset(self, env_ids: Tensor) -> None:
        """Let go at once in these environments, int64 (M,), and forget what was commanded and what broke."""
        ...


@runtime_checkable
class SurfaceTool(Protocol):
    """A gripper that is a part of the scene, since it holds by a constraint of the simulator's own."""

    path: str | None

    def cup(self) -> Cup:
        """Raises RuntimeError until it was mounted."""
        ...

    def mount(self, robot: Robot, link: str) -> None:
        """Put it on a link, once, before the scene is built."""
        ...

    def attach(self, bonds: Bonds) -> None:
        """Called once by the backend that has built the scene."""
        ...

    def flush(self) -> None:
        """Hand over what was commanded."""
        ...

    def reset(self, env_ids: EnvIds | None = None) -> None: ...
