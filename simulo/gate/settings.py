"""What a gate was asked to be, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np

from simulo.errors import GateError
from simulo.tensors import real_number

_CHOICES = {
    "on_stop": ("hold", "terminate", "report"),
    "world": ("voxels", "primitives", "none"),
    "finger_model": ("mimic", "swept"),
    "unknown": ("free", "occupied"),
}


@dataclass(frozen=True)
class GateSettings:
    """Settings of `CollisionGate`; lengths in metres, max_age in seconds. Raises GateError, naming the setting."""

    on_stop: Literal["hold", "terminate", "report"]
    self_margin: float
    world_margin: float
    world: Literal["voxels", "primitives", "none"]
    finger_model: Literal["mimic", "swept"]
    horizon: int
    motion_check: bool
    max_age: float
    unknown: Literal["free", "occupied"]
    tracking_margin: float

    def __post_init__(self) -> None:
        if self.world is None:
            raise GateError(
                "world=None is not allowed, since it could mean anything; use world='none' to check the robot alone, "
                "'voxels' for a map or 'primitives' for the scene's exact shapes"
            )
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not (isinstance(value, str) and value in choices):
                raise GateError(f"{name} must be one of {', '.join(map(repr, choices))}, got {_shown(value)}")
        for name in ("self_margin", "world_margin", "tracking_margin"):
            value = real_number(getattr(self, name))
            if not (math.isfinite(value) and value >= 0.0):
                raise GateError(f"{name} must be a finite length >= 0 in metres, got {_shown(getattr(self, name))}")
            object.__setattr__(self, name, value)
        max_age = real_number(self.max_age)
        if not max_age > 0.0:
            raise GateError(
                f"max_age must be a time > 0 in seconds, inf for a map that never gets old, got {_shown(self.max_age)}"
            )
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, Integral) or self.horizon < 1:
            raise GateError(
                f"horizon must be an integer >= 1, the most rows of an action chunk, got {_shown(self.horizon)}"
            )
        if not isinstance(self.motion_check, (bool, np.bool_)):
            raise GateError(f"motion_check must be True or False, got {_shown(self.motion_check)}")
        object.__setattr__(self, "max_age", max_age)
        object.__setattr__(self, "horizon", int(self.horizon))
        object.__setattr__(self, "motion_check", bool(self.motion_check))

    @property
    def margins(self) -> tuple[float, float]:
        """Self and world margin [m], widened for how far the robot strays from its command."""
        return self.self_margin + self.tracking_margin, self.world_margin + self.tracking_margin


def _shown(value: object) -> str:
    """What was given, short enough for a message."""
    return f"{value!r:.60}"
