"""What a gate tells the environment: the one word that both sides of that door share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class GateDecision:
    """What a gate made of one step.

    verdict: kept in info["gate"]. terminate: bool (num_envs,), the environments whose episode the gate ends.
    """

    verdict: Any
    terminate: Tensor
