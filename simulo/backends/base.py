"""What every simulator must do for simulo, and the names of what only some can do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulo.scene import Scene


class Capability(StrEnum):
    """What a backend may declare. Asking for one that is not declared is a BackendError, never a quiet nothing."""

    VELOCITY_TARGETS = "velocity_targets"
    EFFORT_TARGETS = "effort_targets"
    GRAVITY_COMPENSATION = "gravity_compensation"
    SUBSTEP_CONTACTS = "substep_contacts"
    DEPTH_WITHOUT_DISPLAY = "depth_without_display"
    BITWISE_DETERMINISM = "bitwise_determinism"
    SURFACE_GRIPPERS = "surface_grippers"


@dataclass(frozen=True)
class BackendOptions:
    """physics_dt [s]: one physics step. physics_steps_per_action: physics steps in one environment step.

    Raises ValueError for counts that are no ints of 1 or more, and for a step that is not a finite time above 0.
    """

    num_envs: int
    physics_dt: float
    physics_steps_per_action: int
    device: torch.device

    def __post_init__(self) -> None:
        for name in ("num_envs", "physics_steps_per_action"):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
                raise ValueError(f"{name} must be an int of at least 1, got {count!r}")
        if not (math.isfinite(self.physics_dt) and self.physics_dt > 0):
            raise ValueError(f"physics_dt must be a finite time > 0 in seconds, got {self.physics_dt}")


@dataclass(frozen=True)
class Contacts:
    """Contacts of one environment step, at every physics step: a structure of arrays of length K, in time order
    within an environment.

    env, substep, body_a, body_b: int32; bodies index `body_names`, and a contact's normal points from a to b.
    distance [m]: negative when the engine's shapes overlap. position, normal: env frame, shape (K, 3).
    normal_force [N].
    """

    body_names: tuple[str, ...]
    env: NDArray[np.int32]
    substep: NDArray[np.int32]
    body_a: NDArray[np.int32]
    body_b: NDArray[np.int32]
    distance: NDArray[np.float64]
    position: NDArray[np.float64]
    normal: NDArray[np.float64]
    normal_force: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.env)


class Backend(Protocol):
    """A simulator that has built a scene: `num_envs` environments, each in a frame of its own."""

    name: str
    capabilities: frozenset[Capability]
    num_envs: int
    device: torch.device
    physics_dt: float
    watch_contacts: bool  # record contacts at every physics step from the next `step` on

    def step(self, physics_steps: int) -> Tensor:
        """Advance every environment. Returns bool (num_envs,): where physics failed, as by a state that blew up."""
        ...

    def reset(self, env_ids: Tensor) -> None:
        """Forget everything of the last episode (velocities, solver memory, targets) in these environments."""
        ...

    def contacts(self) -> Contacts:
        """Contacts of the last `step`. Raises BackendError unless `watch_contacts` was set before it."""
        ...

    def close(self) -> None:
        """Release threads and memory."""
        ...


class BackendFactory(Protocol):
    @staticmethod
    def capabilities_on(device: torch.device) -> frozenset[Capability]:
        """What the backend can do where it computes on `device`, known before anything is built."""
        ...

    def __call__(self, scene: Scene, options: BackendOptions) -> Backend: ...
