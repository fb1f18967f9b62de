"""The surface gripper's state machine, as tensor functions over all environments, none of which waits for a device.

Commands and samples of the bond move each environment between four phases:

    OPEN     --close-->     SEEKING   --caught-->    HOLDING   --lost--> SEEKING
    SEEKING  --too long-->  GAVE_UP   --not close--> OPEN
    any      --open-->      OPEN

GAVE_UP is a phase of its own because a policy says +1 at every step: only another command in between arms it again.
Flags are int8, 0 or 1, and choices are made by arithmetic: choosing per element (torch.where) takes a CPU far longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulo.handles import NO_BODY

GAVE_UP = -2
OPEN = -1  # this and the next two are the values of GripperState
SEEKING = 0
HOLDING = 1

_TIME_SLACK = 1e-9  # s: a sum of steps may fall this short of the interval that they make up


@dataclass(frozen=True)
class BondSample:
    """What physics says of the bonds, each int32, shape (num_envs,), with `NO_BODY` where there is none.

    bonded: the body that hangs on the tool. broken: one that came off since the sample before.
    """

    bonded: Tensor
    broken: Tensor


@dataclass(frozen=True)
class SuctionState:
    """What a surface gripper remembers.

    phase: int8, and searched [s]: float64, how long the present search has lasted; shape (..., num_envs).
    bonded: int32, as last sampled. barred: int32, the body that broke off last, not to be caught again for the next
    barred_for [s], float64; shape (num_envs,), since no command changes them.
    """

    phase: Tensor
    searched: Tensor
    bonded: Tensor
    barred: Tensor
    barred_for: Tensor


def at_rest(shape: tuple[int, ...], device: torch.device) -> SuctionState:
    """Open, with nothing behind it. shape: (..., num_envs)."""
    nothing = torch.full(shape[-1:], NO_BODY, dtype=torch.int32, device=device)
    return SuctionState(
        phase=torch.full(shape, OPEN, dtype=torch.int8, device=device),
        searched=torch.zeros(shape, dtype=torch.float64, device=device),
        bonded=nothing,
        barred=nothing.clone(),
        barred_for=torch.zeros(shape[-1:], dtype=torch.float64, device=device),
    )


def commanded(phase: Tensor, searched: Tensor, intent: Tensor) -> tuple[Tensor, Tensor]:
    """Phase and searching time after commands, int8 (num_envs,): -1 opens, +1 closes, 0 is idle.

    A close begins a search where the gripper is open, and nothing where it is closing, closed or has given up.
    """
    opens, closes = -intent.clamp(max=0), intent.clamp(min=0)
    begins = closes * _equal(phase, OPEN)
    lowest = OPEN - closes  # only a close leaves a gripper that gave up as it is
    highest = HOLDING - (HOLDING - OPEN) * opens
    return torch.minimum(torch.maximum(phase, lowest) + begins, highest), searched * (1 - begins)


def sampled(
    state: SuctionState, sample: BondSample, dt: float, retry_interval: float, rearm_time: float
) -> SuctionState:
    """After dt [s] in which physics did what `sample` says.

    A bond that was lost begins a search anew. One search lasts retry_interval [s]; a body that broke off is barred for
    rearm_time [s], which is finite.
    """
    bonded, broke = _given(sample.bonded), _given(sample.broken)
    closing, holding = (state.phase + 1).clamp(0, 1), state.phase.clamp(min=0)
    begins = torch.maximum(broke, holding * (1 - bonded))
    searched = (state.searched + dt) * (1 - begins)
    tired = (1 - bonded) * (1 - begins) * (searched >= retry_interval - _TIME_SLACK)
    return SuctionState(
        phase=closing * (bonded + GAVE_UP * tired) + (1 - closing) * state.phase,
        searched=searched,
        bonded=sample.bonded.clone(),
        barred=broke * sample.broken + (1 - broke) * state.barred,
        barred_for=broke.double() * rearm_time + (1 - broke) * (state.barred_for - dt).clamp(min=0.0),
    )


def states_of(state: SuctionState) -> Tensor:
    """`GripperState` values, int8, shape of `phase`: a gripper that gave up is open."""
    return state.phase.clamp(min=OPEN)


def held_body(state: SuctionState) -> Tensor:
    """The body held, int32, shape of `phase`; `NO_BODY` where none is."""
    return state.phase.clamp(min=0) * (state.bonded - NO_BODY) + NO_BODY


def wanted(state: SuctionState) -> Tensor:
    """Where a bond is to be sought or kept, bool, shape of `phase`; elsewhere it is let go."""
    return state.phase >= SEEKING


def barred_body(state: SuctionState) -> Tensor:
    """The body that must not be caught now, int32, shape (num_envs,); `NO_BODY` where any may."""
    return (state.barred_for > _TIME_SLACK) * (state.barred - NO_BODY) + NO_BODY


def _equal(values: Tensor, value: int) -> Tensor:
    return 1 - (values - value).abs().clamp(max=1)


def _given(bodies: Tensor) -> Tensor:
    return (bodies.clamp(max=0) - NO_BODY).to(torch.int8)


class SuctionLatch:
    """What a surface gripper remembers, and what it would remember had a gate refused its latest commands.

    A sample counts for both: physics saw no refused command.
    """

    def __init__(self, num_envs: int, device: torch.device):
        self._both = at_rest((2, num_envs), device)

    @property
    def device(self) -> torch.device:
        return self._both.phase.device

    @property
    def state(self) -> SuctionState:
        """As commanded, each of shape (num_envs,)."""
        both = self._both
        return SuctionState(both.phase[0], both.searched[0], both.bonded, both.barred, both.barred_for)

    def command(self, intent: Tensor) -> None:
        """Take commands in: see `commanded`."""
        both = self._both
        both.phase[0], both.searched[0] = commanded(both.phase[0], both.searched[0], intent)

    def observe(self, sample: BondSample, dt: float, retry_interval: float, rearm_time: float) -> None:
        """Take one sample in: see `sampled`."""
        self._both = sampled(self._both, sample, dt, retry_interval, rearm_time)

    def clear(self, env_ids: Tensor) -> None:
        """At rest in these environments, with nothing for a gate to take back."""
        both = self._both
        both.phase[:, env_ids] = OPEN
        both.searched[:, env_ids] = 0.0
        for bodies in (both.bonded, both.barred):
            bodies[env_ids] = NO_BODY
        both.barred_for[env_ids] = 0.0

    def accept(self, envs: Tensor | None) -> None:
        """The commands so far stand, in the environments of this bool mask, or in all (None)."""
        for given, accepted in (self._both.phase, self._both.searched):
            if envs is None:
                accepted.copy_(given)
                continue
            torch.where(envs, given, accepted, out=accepted)

    def restore(self, envs: Tensor) -> None:
        """The commands since the last accept were never given, in the environments of this bool mask."""
        for given, accepted in (self._both.phase, self._both.searched):
            torch.where(envs, accepted, given, out=given)
