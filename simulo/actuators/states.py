"""The gripper's state machine, as tensor functions over all environments."""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor


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
    stopped = speeds.abs() <= velocity_tolerance
    travelled = (positions - open_positions).abs() > position_tolerance
    return (stopped & travelled).all(dim=1)


class GripperLatch:
    """What a gripper remembers between updates, per environment, and how to take a refused command back.

    closing: the last command that was not idle closes. quiet: settled updates in a row since then. closed: settled
    once, which sticks until an open command or a reset. Each shape (num_envs,).
    """

    def __init__(self, num_envs: int, device: torch.device):
        self.closing = torch.zeros(num_envs, dtype=torch.bool, device=device)
        self.quiet = torch.zeros(num_envs, dtype=torch.int32, device=device)
        self.closed = torch.zeros(num_envs, dtype=torch.bool, device=device)
        self._before = (self.closing.clone(), self.quiet.clone(), self.closed.clone())
        self._pending = torch.zeros(num_envs, dtype=torch.bool, device=device)

    def command(self, intent: Tensor) -> None:
        """Take commands in, int8 (num_envs,): -1 opens, +1 closes, 0 changes nothing."""
        commanded = intent != 0
        self._back_up(commanded & ~self._pending)
        self._pending |= commanded
        opens = intent < 0
        self.closing = (self.closing & ~opens) | (intent > 0)
        self.closed = self.closed & ~opens
        self.quiet = self.quiet.masked_fill(opens, 0)

    def observe(self, now_settled: Tensor, settle_updates: int) -> None:
        """Take one sample of the fingers in, bool (num_envs,). One sample is not enough: a swing stops as it turns."""
        self.quiet = torch.where(now_settled & self.closing, self.quiet + 1, 0)
        self.closed = self.closing & (self.closed | (self.quiet >= settle_updates))

    def clear(self, env_ids: Tensor) -> None:
        """Open, with nothing pending, in these environments."""
        self.closing[env_ids] = False
        self.closed[env_ids] = False
        self.quiet[env_ids] = 0
        self._pending[env_ids] = False

    def states(self) -> Tensor:
        """`GripperState` values, int8, shape (num_envs,)."""
        return self.closing.to(torch.int8) + self.closed.to(torch.int8) - 1

    def accept(self, envs: Tensor) -> None:
        """The commands since the last accept or restore stand, in the environments of this bool mask."""
        self._pending &= ~envs

    def restore(self, envs: Tensor) -> None:
        """The commands since the last accept or restore were never given, in the environments of this bool mask."""
        back = envs & self._pending
        closing, quiet, closed = self._before
        self.closing = torch.where(back, closing, self.closing)
        self.quiet = torch.where(back, quiet, self.quiet)
        self.closed = torch.where(back, closed, self.closed)
        self._pending &= ~envs

    def _back_up(self, envs: Tensor) -> None:
        present = (self.closing, self.quiet, self.closed)
        self._before = tuple(torch.where(envs, now, old) for now, old in zip(present, self._before, strict=True))  # type: ignore[assignment]
