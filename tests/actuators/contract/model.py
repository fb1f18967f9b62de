"""The parallel gripper's contract for one environment, in plain Python and in words: what random sequences are held to.

Written from the specification alone, apart from the tensors. Numbers are single precision, as readings are.
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Settings:
    """Widths and tolerances [m, m/s]."""

    open_at: float = 0.04
    closed_at: float = 0.0
    position_tolerance: float = 0.002
    velocity_tolerance: float = 0.01
    settle_updates: int = 2


@dataclass(frozen=True)
class Memory:
    """The last command that was not idle, settled looks in a row under it, and whether it has closed."""

    told_to_close: bool = False
    still_for: int = 0
    has_closed: bool = False

    def told(self, intent: int) -> "Memory":
        if intent < 0:
            return Memory()
        return self if intent == 0 else replace(self, told_to_close=True)

    def looked(self, still: bool, needed: int) -> "Memory":
        if not self.told_to_close:
            return self
        still_for = self.still_for + 1 if still else 0
        return Memory(True, still_for, self.has_closed or still_for >= needed)

    @property
    def state(self) -> int:
        if self.has_closed:
            return 1
        return 0 if self.told_to_close else -1


class Hand:
    """One environment. `untold` is what it would remember had it not been told anything since the gate last agreed."""

    def __init__(self, settings: Settings, target: float):
        self.settings = settings
        self.memory = self.untold = Memory()
        self.target = target
        self.agreed_target: float | None = None

    def command(self, value: float) -> None:
        single = np.float32(value)
        intent = int(single > np.float32(0.3)) - int(single < np.float32(-0.3))
        self.memory = self.memory.told(intent)
        if intent:
            self.target = self.settings.open_at if intent < 0 else self.settings.closed_at

    def look(self, fingers: list[tuple[float, float]]) -> None:
        """fingers: position and speed of each."""
        s = self.settings
        away = [abs(np.float32(p) - np.float32(s.open_at)) > np.float32(s.position_tolerance) for p, _ in fingers]
        stopped = [abs(np.float32(v)) <= np.float32(s.velocity_tolerance) for _, v in fingers]
        still = all(away) and all(stopped)
        self.memory = self.memory.looked(still, s.settle_updates)
        self.untold = self.untold.looked(still, s.settle_updates)  # what a gate refuses never moved the fingers

    def reset(self) -> None:
        """A reset opens, which a gate may refuse like any command; in a new episode there is nothing to go back to."""
        self.memory = Memory()
        if self.agreed_target is None:
            self.untold = Memory()
        self.target = self.settings.open_at

    def new_episode(self, start: float) -> None:
        self.agreed_target, self.target = None, start

    def agree(self) -> None:
        self.untold, self.agreed_target = self.memory, self.target

    def refuse(self, measured: float) -> None:
        self.memory = self.untold
        self.target = measured if self.agreed_target is None else self.agreed_target
