"""The surface gripper's contract for one environment, in plain Python and in words: see model.py.

Times are whole milliseconds, so that a search of five times 20 ms is one of 100 ms and no less.
"""

from dataclasses import dataclass, replace

import numpy as np

NOTHING = -1


@dataclass(frozen=True)
class Memory:
    """What commands and samples have made of it. phase: "open", "searching", "holding" or "gave up"."""

    phase: str = "open"
    searched: int = 0

    def told(self, intent: int) -> "Memory":
        if intent < 0:
            return Memory()
        if intent > 0:
            return Memory("searching") if self.phase == "open" else self
        return Memory() if self.phase == "gave up" else self

    def sampled(self, bonded: int, broken: int, dt: int, retry: int) -> "Memory":
        if self.phase not in ("searching", "holding"):
            return self
        if bonded != NOTHING:
            return Memory("holding")
        if broken != NOTHING or self.phase == "holding":
            return Memory("searching")
        searched = self.searched + dt
        return Memory("gave up") if searched >= retry else replace(self, searched=searched)


class Cup:
    """One environment; retry and rearm in ms. `untold`: see model.Hand."""

    def __init__(self, retry: int, rearm: int):
        self.retry, self.rearm = retry, rearm
        self.memory = self.untold = Memory()
        self.seen = NOTHING
        self.barred, self.barred_for = NOTHING, 0

    def command(self, value: float) -> None:
        single = np.float32(value)
        self.memory = self.memory.told(int(single > np.float32(0.3)) - int(single < np.float32(-0.3)))

    def sample(self, bonded: int, broken: int, dt: int) -> None:
        self.memory = self.memory.sampled(bonded, broken, dt, self.retry)
        self.untold = self.untold.sampled(bonded, broken, dt, self.retry)
        self.seen = bonded
        self.barred_for = max(0, self.barred_for - dt)
        if broken != NOTHING:
            self.barred, self.barred_for = broken, self.rearm

    def reset(self) -> None:
        self.__init__(self.retry, self.rearm)

    def agree(self) -> None:
        self.untold = self.memory

    def refuse(self) -> None:
        self.memory = self.untold

    @property
    def state(self) -> int:
        return {"open": -1, "gave up": -1, "searching": 0, "holding": 1}[self.memory.phase]

    @property
    def holds(self) -> int:
        return self.seen if self.memory.phase == "holding" else NOTHING

    @property
    def wants(self) -> bool:
        return self.memory.phase in ("searching", "holding")

    @property
    def avoids(self) -> int:
        return self.barred if self.barred_for > 0 else NOTHING
