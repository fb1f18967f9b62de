"""What surrounds the robot: occupancy bricks, primitives, payloads and the regions where contact is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from simulo.collision.shapes import ConvexShape
from simulo.errors import CollisionModelError

_BIT = torch.arange(64, dtype=torch.int64).reshape(4, 4, 4)


def pack_bricks(occupied: torch.Tensor) -> torch.Tensor:
    """Cells (N, nx, ny, nz) bool as bricks (N, bx, by, bz) int64: bit (x * 4 + y) * 4 + z of each 4 x 4 x 4 block.

    Counts that are no multiple of 4 are padded with empty cells. The integers hold the 64 bits of a uint64.
    """
    if occupied.dim() != 4 or occupied.dtype != torch.bool:
        raise CollisionModelError(
            f"pack_bricks wants bool cells of shape (N, nx, ny, nz), got {occupied.dtype} {tuple(occupied.shape)}"
        )
    n, *cells = occupied.shape
    pad = [(-c) % 4 for c in cells]
    padded = torch.nn.functional.pad(occupied, (0, pad[2], 0, pad[1], 0, pad[0]))
    bx, by, bz = (s // 4 for s in padded.shape[1:])
    blocks = padded.reshape(n, bx, 4, by, 4, bz, 4).permute(0, 1, 3, 5, 2, 4, 6)
    bits = torch.ones((), dtype=torch.int64, device=occupied.device) << _BIT.to(occupied.device)
    return (blocks.to(torch.int64) * bits).sum(dim=(4, 5, 6))  # distinct bits: their sum is their union


def unpack_bricks(bricks: torch.Tensor, shape: tuple[int, int, int]) -> torch.Tensor:
    """Inverse of `pack_bricks`: bool cells (N, *shape)."""
    n, bx, by, bz = bricks.shape
    cells = ((bricks[..., None, None, None] >> _BIT.to(bricks.device)) & 1).to(torch.bool)
    cells = cells.permute(0, 1, 4, 2, 5, 3, 6).reshape(n, 4 * bx, 4 * by, 4 * bz)
    return cells[:, : shape[0], : shape[1], : shape[2]]


@dataclass(frozen=True)
class VoxelGrid:
    """Occupancy of every environment, each on a lattice of its own.

    bricks, shape (N, bx, by, bz), int64: packed as in `pack_bricks`. cell [m]: a cube's full edge.
    position [m], shape (N, 3), and orientation_wxyz, shape (N, 4), float32: the lattice's lower corner in the
    environment's frame. unknown: bricks of cells never seen, same shape, or a tensor of shape (0,) for "all known".
    closed: whether everything past the lattice's edges is solid; else nothing is there.
    """

    bricks: torch.Tensor
    cell: float
    position: torch.Tensor
    orientation_wxyz: torch.Tensor
    unknown: torch.Tensor
    closed: bool = False

    def __post_init__(self) -> None:
        n = self.bricks.shape[0]
        if self.bricks.dim() != 4 or self.bricks.dtype != torch.int64 or 0 in self.bricks.shape:
            raise CollisionModelError(
                "VoxelGrid.bricks must be int64 of shape (N, bx, by, bz), "
                f"got {self.bricks.dtype} {tuple(self.bricks.shape)}"
            )
        if self.bricks[0].numel() * 64 >= 2**31 - 2:
            raise CollisionModelError("VoxelGrid: over 2^31 cells in one environment cannot be named; use larger cells")
        if not (0.0 < self.cell < float("inf")):
            raise CollisionModelError(f"VoxelGrid.cell must be positive and finite in metres, got {self.cell!r}")
        if tuple(self.position.shape) != (n, 3) or tuple(self.orientation_wxyz.shape) != (n, 4):
            raise CollisionModelError(
                f"VoxelGrid wants position ({n}, 3) and orientation_wxyz ({n}, 4), got "
                f"{tuple(self.position.shape)} and {tuple(self.orientation_wxyz.shape)}"
            )
        if self.has_unknown and (self.unknown.shape != self.bricks.shape or self.unknown.dtype != torch.int64):
            raise CollisionModelError("VoxelGrid.unknown must have the shape and dtype of bricks, or shape (0,)")

    @property
    def has_unknown(self) -> bool:
        return self.unknown.numel() > 0

    @property
    def num_envs(self) -> int:
        return self.bricks.shape[0]

    @property
    def brick_counts(self) -> tuple[int, int, int]:
        _, x, y, z = self.bricks.shape
        return x, y, z

    @staticmethod
    def from_cells(
        occupied: torch.Tensor,
        cell: float,
        position: torch.Tensor,
        orientation_wxyz: torch.Tensor,
        unknown: torch.Tensor | None = None,
    ) -> VoxelGrid:
        """Grid from bool cells (N, nx, ny, nz); `unknown` likewise, left out when every cell has been seen."""
        seen_all = torch.empty(0, dtype=torch.int64, device=occupied.device)
        hidden = seen_all if unknown is None else pack_bricks(unknown)
        return VoxelGrid(pack_bricks(occupied), cell, position, orientation_wxyz, hidden)

    def with_unknown_occupied(self) -> VoxelGrid:
        """The grid under the policy that cells that were never seen are solid."""
        return replace(self, bricks=self.bricks | self.unknown) if self.has_unknown else self

    def cell_centre(self, env: int, index: tuple[int, int, int]) -> tuple[float, float, float]:
        """Centre [m] of a cell in the environment's frame."""
        from simulo.pose import Pose

        pose = Pose(tuple(self.position[env].tolist()), tuple(self.orientation_wxyz[env].tolist()))
        x, y, z = pose.apply([(i + 0.5) * self.cell for i in index])
        return float(x), float(y), float(z)


@dataclass(frozen=True)
class Primitives:
    """Convex obstacles given by the task, K per environment.

    names, shapes: length K, the same in all environments. pose, shape (N, K, 7), float32: position [m] and wxyz of
    each in its environment's frame. valid, shape (N, K), bool: where the primitive exists (a held one does not).
    """

    names: tuple[str, ...]
    shapes: tuple[ConvexShape, ...]
    pose: torch.Tensor
    valid: torch.Tensor

    def __post_init__(self) -> None:
        k = len(self.names)
        if len(self.shapes) != k or len(set(self.names)) != k:
            raise CollisionModelError(
                f"Primitives wants one shape and one distinct name each, got {k} names and {len(self.shapes)} shapes"
            )
        if self.pose.dim() != 3 or tuple(self.pose.shape[1:]) != (k, 7):
            raise CollisionModelError(f"Primitives.pose must be (N, {k}, 7), got {tuple(self.pose.shape)}")
        if self.valid.dtype != torch.bool or self.valid.shape != self.pose.shape[:2]:
            raise CollisionModelError(f"Primitives.valid must be bool of shape {tuple(self.pose.shape[:2])}")

    @staticmethod
    def of(names: Sequence[str], shapes: Sequence[ConvexShape], pose: torch.Tensor) -> Primitives:
        """All of them present everywhere."""
        present = torch.ones(pose.shape[:2], dtype=torch.bool, device=pose.device)
        return Primitives(tuple(names), tuple(shapes), pose, present)


@dataclass(frozen=True)
class Payload:
    """Something a hand holds. shapes are vertices plus a ball in the payload's frame.

    gripper: the hand's name. slot: which of its payloads. pose, shape (K, 7), float32: position [m] and wxyz in the
    frame of `link` (None: the gripper's hand link), one per environment id given to `attach`. touch_links: links it
    may touch beside the hand's own contact links and the description's touch links. one_with: hands and slots that hold
    the same thing, which it may touch, and whose hands' contact links.
    """

    gripper: str
    shape: ConvexShape
    pose: torch.Tensor
    slot: int = 0
    link: str | None = None
    touch_links: tuple[str, ...] = ()
    one_with: tuple[tuple[str, int], ...] = ()
