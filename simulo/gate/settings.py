"""What a gate was asked to be, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from simulo.errors import GateError

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
            if getattr(self, name) not in choices:
                raise GateError(f"{name} must be one of {', '.join(map(repr, choices))}, got {getattr(self, name)!r}")
        for name in ("self_margin", "world_margin", "tracking_margin"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise GateError(f"{name} must be finite and >= 0 m, got {value!r}")
        if not self.max_age > 0.0:
            raise GateError(f"max_age must be > 0 s, got {self.max_age!r}")
        if int(self.horizon) != self.horizon or self.horizon < 1:
            raise GateError(f"horizon must be an integer >= 1, got {self.horizon!r}")

    @property
    def margins(self) -> tuple[float, float]:
        """Self and world margin [m], widened for how far the robot strays from its command."""
        return self.self_margin + self.tracking_margin, self.world_margin + self.tracking_margin
