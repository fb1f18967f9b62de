"""The memory of a robot in a simulator, where every check of its commands finds what it judges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import warp as wp

from simulo.collision.buffers import QueryBuffers, view
from simulo.collision.inputs import refuse_unless
from simulo.collision.kernels.live import Live
from simulo.collision.kernels.types import pose7
from simulo.collision.raw_verdict import RawVerdict
from simulo.errors import CollisionModelError


@dataclass(frozen=True)
class Closing:
    """A gripper by its number; it is posed at its measured value too where progress, int32 (N,), is at least `done`."""

    gripper: int
    progress: torch.Tensor
    done: int


@dataclass(frozen=True)
class LiveRobot:
    """A robot in N environments. The tensors' memory is read anew by each check and must stay where it is, but for
    limits, of which a copy is made.

    targets (N, dof) [rad or m], float32, limits (dof, 2): what is judged is the one clamped to the other. positions
    (N, ...) [rad or m], float32 or float64, columns (dof,), int64: where the joints are measured. holding (N, hands),
    bool: hands that hold something. closing: hands that may be closed. spoiled (N,), bool: whose targets count as not
    finite. base_pose (N, 7), map_status (N,): as of `CollisionChecker.check`.
    """

    targets: torch.Tensor
    limits: torch.Tensor
    positions: torch.Tensor
    columns: torch.Tensor
    holding: torch.Tensor
    closing: tuple[Closing, ...]
    spoiled: torch.Tensor
    base_pose: torch.Tensor
    map_status: torch.Tensor

    def refuse_misfit(self, num_envs: int, dof: int, hands: int, device: torch.device) -> None:
        """Raise CollisionModelError, naming it, for a tensor that is not what the class says."""
        for name, shape, dtype in (
            ("targets", (num_envs, dof), torch.float32),
            ("limits", (dof, 2), torch.float32),
            ("positions", (num_envs, *self.positions.shape[1:2]), self.positions.dtype),
            ("columns", (dof,), torch.int64),
            ("holding", (num_envs, hands), torch.bool),
            ("spoiled", (num_envs,), torch.bool),
            ("base_pose", (num_envs, 7), torch.float32),
            ("map_status", (num_envs,), torch.int8),
        ):
            refuse_unless(name, getattr(self, name), shape, dtype, device)
        for closing in self.closing:
            refuse_unless("Closing.progress", closing.progress, (num_envs,), torch.int32, device)
            if not 0 <= closing.gripper < hands:
                raise CollisionModelError(f"Closing names gripper {closing.gripper} of {hands}")
        width = self.positions.shape[1]
        if self.positions.dtype not in (torch.float32, torch.float64):
            raise CollisionModelError(f"positions must be float32 or float64, got {self.positions.dtype}")
        if not ((self.columns >= 0) & (self.columns < width)).all():
            raise CollisionModelError(f"columns {self.columns.tolist()} are not all within the {width} of positions")

    def upload(self, gripper_columns: tuple[int, ...]) -> Live:
        """gripper_columns: the grippers' joints."""
        out = Live()
        out.target, out.column = view(self.targets), view(self.columns)
        low, high = self.limits.T.contiguous()
        device = str(self.targets.device)
        out.low = wp.array(low.cpu().numpy(), dtype=wp.float32, device=device)
        out.high = wp.array(high.cpu().numpy(), dtype=wp.float32, device=device)
        out.gripper = wp.array(np.array([*gripper_columns, 0], np.int32), device=device)
        out.holding, out.spoiled = view(self.holding.view(torch.uint8)), view(self.spoiled.view(torch.uint8))
        out.base_pose, out.map_status = view(self.base_pose, pose7), view(self.map_status)
        return out


class LiveOutputs:
    """Where the answer of a live robot's check is read: on the CPU by NumPy, in one copy and nothing else.

    The words of its `RawVerdict` go on after the rows: where the joints were measured, and the commands that were
    judged, see `joints`.
    """

    def __init__(self, query: QueryBuffers) -> None:
        self._count = query.verdicts.shape[1]
        self._memory = query.answer
        self._host = query.answer.numpy() if query.answer.device.type == "cpu" else None
        self._clear = bytes(4 * self._count)  # Kind.CLEAR is zero

    def read(self) -> tuple[RawVerdict, bool | None]:
        """A snapshot, and whether all are clear; None where telling would wait for a GPU."""
        if self._host is None:
            return RawVerdict(self._memory.clone(), self._count), None
        words = self._host.copy()
        return RawVerdict(words, self._count), words[: self._count].tobytes() == self._clear


def joints(raw: RawVerdict) -> tuple[torch.Tensor, torch.Tensor]:
    """The commands that a live robot's check judged, and where it measured the joints, [rad or m], (N, dof)."""
    start, q = torch.as_tensor(raw.words)[raw.block.numel() :].view(torch.float32).view(2, raw.count, -1)
    return q, start
