"""The gripper's state machine, as tensor functions over all environments, none of which waits for a device.

What a gripper remembers is one number per environment, its progress: `NOT_CLOSING` while it is not under a close
command, else how many settled samples in a row it has seen under one, and `DONE` once those were enough.
"""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

from simulo.tensors import host_array

NOT_CLOSING = -1
DONE = 1 << 30


class GripperState(IntEnum):
    """OPEN: not under a close command. CLOSING: commanded closed, not settled. CLOSED: settled, holding or empty."""

    OPEN = -1
    CLOSING = 0
    CLOSED = 1


def settled(
    positions: Tensor, speeds: Tensor, open_positions: Tensor, position_tolerance: float, velocity_tolerance: float
) -> Tensor:
    """Where every finger has stopped and every finger has left its open position; bool, shape (num_envs,).

    positions [m or rad], speeds [m/s or rad/s]: shape (num_envs, fingers). open_positions: shape (fingers,). Every
    finger is asked, since an average hides a jaw that is jammed open. A reading that is not finite is not settled.
    """
    travelled = (positions - open_positions).abs()
    stopped = speeds.abs().amax(dim=1) <= velocity_tolerance
    return stopped & (travelled.amin(dim=1) > position_tolerance) & (travelled.amax(dim=1) < torch.inf)


def commanded(progress: Tensor, intent: Tensor) -> Tensor:
    """Progress after commands, int8 (num_envs,): -1 opens, +1 closes what is not closing yet, 0 changes nothing."""
    lowest = (intent > 0).to(progress.dtype) + NOT_CLOSING
    highest = (intent >= 0).to(progress.dtype) * (DONE - NOT_CLOSING) + NOT_CLOSING
    return progress.clamp(lowest, highest)


def sampled(progress: Tensor, now_settled: Tensor, settle_updates: int) -> Tensor:
    """Progress after one more sample of the fingers, bool (num_envs,).

    One settled sample is not enough, since a swing stops as it turns; enough of them are, whatever comes later.
    """
    # Arithmetic, since choosing per element (torch.where) takes a CPU ten times as long.
    counted = (progress + 1) * now_settled
    done = ((counted >= settle_updates) | (progress >= DONE)).to(progress.dtype)
    return torch.maximum(counted, done * DONE).clamp_(max=DONE).sub_((progress < 0).to(progress.dtype))


def states_of(progress: Tensor) -> Tensor:
    """`GripperState` values, int8, shape of `progress`."""
    return (progress >= DONE).to(torch.int8) - (progress < 0).to(torch.int8)


class GripperLatch:
    """What a gripper remembers between updates, and what it would remember had a gate refused its latest commands.

    A sample of the fingers counts for both: a refused command never moved them.
    """

    def __init__(self, num_envs: int, device: torch.device):
        self._progress = torch.full((2, num_envs), NOT_CLOSING, dtype=torch.int32, device=device)
        self._given, self._accepted = self._progress
        self._host = host_array(self._given), host_array(self._accepted)

    def command(self, intent: Tensor) -> None:
        """Take commands in: see `commanded`."""
        self._given.copy_(commanded(self._given, intent))

    def observe(self, now_settled: Tensor, settle_updates: int) -> None:
        """Take one sample in: see `sampled`."""
        self._progress.copy_(sampled(self._progress, now_settled, settle_updates))

    def clear(self, env_ids: Tensor, refusable: Tensor) -> None:
        """Open in these environments. refusable, bool, shape of env_ids: where a gate may yet take that back."""
        self._given[env_ids] = NOT_CLOSING
        self._accepted[env_ids] = self._accepted[env_ids].masked_fill(~refusable, NOT_CLOSING)

    def states(self) -> Tensor:
        """`GripperState` values, int8, shape (num_envs,)."""
        return states_of(self._given)

    @property
    def progress(self) -> Tensor:
        """int32 (num_envs,), live: `DONE` or more where the state is CLOSED."""
        return self._given

    def accept(self, envs: Tensor | None) -> None:
        """The commands so far stand, in the environments of this bool mask, or in all (None)."""
        given, accepted = self._host
        if envs is not None:
            torch.where(envs, self._given, self._accepted, out=self._accepted)
        elif given is not None and accepted is not None:
            accepted[:] = given
        else:
            self._accepted.copy_(self._given)

    def restore(self, envs: Tensor) -> None:
        """The commands since the last accept were never given, in the environments of this bool mask."""
        torch.where(envs, self._accepted, self._given, out=self._given)
