"""What the gate knows of its surroundings, and how a held object leaves and rejoins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from simulo.collision import CollisionChecker, ConvexShape, VoxelGrid
from simulo.collision.parties import cell_code, cell_indices
from simulo.gate.rigid import compose, inverse
from simulo.perception import DeploySimPerception
from simulo.perception.deploy_sim import CARVE
from simulo.perception.solid import filled_cells

DEFAULT_CELL = 0.01
"""Cell edge [m] that declarations are measured with where the world has no cells."""


@dataclass(frozen=True)
class Taken:
    """An object that a hand takes or gives back, in M environments.

    slot: which of the robot's payload slots. shape: at pose_in_link (M, 7) on `link`, now at pose (M, 7) in the
    environment's frame, float64. object: its name in the world, "" when it is known by its place alone.
    """

    slot: int
    shape: ConvexShape
    link: str
    pose_in_link: Tensor
    pose: Tensor
    object: str
    env_ids: Tensor


class World(Protocol):
    """Obstacles of every environment.

    kind: "voxels", "primitives" or "none". cell [m]. revision: grows with every change. stamp [s], float64, shape
    (num_envs,): when each environment was last seen; -inf for never, inf where age means nothing. objects: the
    obstacles that have names.
    """

    kind: str
    cell: float
    objects: Mapping[str, ConvexShape]

    @property
    def revision(self) -> int: ...

    @property
    def stamp(self) -> Tensor: ...

    def refresh(self) -> None:
        """Called before each step's check."""

    def forget(self, env_ids: Tensor) -> None:
        """Episodes have ended in these environments, and what their hands held with them."""

    def look(self) -> None:
        """New episodes have begun in the environments that were forgotten; their robots stand still."""

    def load(self, checker: CollisionChecker) -> None:
        """Hand the obstacles over."""

    def cell_name(self, code: int, env: int) -> str:
        """The name of a cell by its party code, with its place in the environment."""
        ...

    def take(self, taken: Taken) -> None: ...

    def give_back(self, taken: Taken) -> None: ...

    def free(self, box: tuple[float, float, float], pose: Tensor, env_ids: Tensor) -> None:
        """Cells whose centre lies in a box of full edges [m], at pose (M, 7) in the environment, show nothing that is
        still there. Obstacles that have names are not cells, and stay."""


class StillWorld:
    """A world that nothing changes."""

    kind = "none"
    cell = DEFAULT_CELL

    def __init__(self, stamp: Tensor, objects: Mapping[str, ConvexShape]) -> None:
        self.stamp, self.objects, self.revision = stamp, objects, 0

    def refresh(self) -> None: ...

    def forget(self, env_ids: Tensor) -> None: ...

    def look(self) -> None: ...

    def load(self, checker: CollisionChecker) -> None: ...

    def cell_name(self, code: int, env: int) -> str:
        return f"cell {cell_code(code)} of a map that is no longer there"

    def take(self, taken: Taken) -> None: ...

    def give_back(self, taken: Taken) -> None: ...

    def free(self, box: tuple[float, float, float], pose: Tensor, env_ids: Tensor) -> None: ...


def name_cell(grid: VoxelGrid, code: int, env: int) -> str:
    """A cell by its centre, which is what a person can look at."""
    x, y, z = grid.cell_centre(env, cell_indices(code, grid.brick_counts))
    return f"the occupied cell at ({x:.3f}, {y:.3f}, {z:.3f}) m"


def no_world(num_envs: int, device: torch.device) -> StillWorld:
    """world="none": the robot alone is checked, and every verdict says so."""
    return StillWorld(torch.full((num_envs,), torch.inf, dtype=torch.float64, device=device), {})


def centres_box(size: tuple[float, float, float], cell: float) -> ConvexShape:
    """A box that cells overlap when their centre lies in one of full edges `size` [m], to within their rotation."""
    return ConvexShape.box([max(edge - cell, 1e-3) for edge in size])


class OwedWorld(StillWorld):
    """Stands where a world of some kind has been asked for and not been given: never seen, so nothing is clear."""

    def __init__(self, kind: str, num_envs: int, device: torch.device) -> None:
        super().__init__(torch.full((num_envs,), -torch.inf, dtype=torch.float64, device=device), {})
        self.kind = kind


class GridWorld(StillWorld):
    """A grid given once; it ages from its stamp on. The caller's tensors are copied, never written to."""

    kind = "voxels"

    def __init__(self, grid: VoxelGrid, stamp: Tensor, unknown_occupied: bool) -> None:
        super().__init__(stamp, {})
        solid = replace(grid.with_unknown_occupied(), closed=True) if unknown_occupied else grid
        position, wxyz = grid.position.clone(), grid.orientation_wxyz.clone()
        self._grid = replace(solid, bricks=solid.bricks.clone(), position=position, orientation_wxyz=wxyz)
        self._corner = torch.cat([grid.position, grid.orientation_wxyz], dim=1).to("cpu", torch.float64)
        self.cell = grid.cell

    def load(self, checker: CollisionChecker) -> None:
        checker.set_voxels(self._grid)

    def cell_name(self, code: int, env: int) -> str:
        return name_cell(self._grid, code, env)

    def take(self, taken: Taken) -> None:
        self._grid.bricks[taken.env_ids] &= ~self._cells(taken, CARVE * self.cell)
        self.revision += 1

    def give_back(self, taken: Taken) -> None:
        self._grid.bricks[taken.env_ids] |= self._cells(taken, 0.0)
        self.revision += 1

    def free(self, box: tuple[float, float, float], pose: Tensor, env_ids: Tensor) -> None:
        self._grid.bricks[env_ids] &= ~self._filled(centres_box(box, self.cell), pose, env_ids, 0.0)
        self.revision += 1

    def _cells(self, taken: Taken, tolerance: float) -> Tensor:
        return self._filled(taken.shape, taken.pose, taken.env_ids, tolerance)

    def _filled(self, shape: ConvexShape, pose: Tensor, env_ids: Tensor, tolerance: float) -> Tensor:
        in_lattice = compose(inverse(self._corner[env_ids.cpu()]), pose.cpu())
        on_device = in_lattice.to(self._grid.bricks.device, torch.float32)
        return filled_cells(shape, on_device, self.cell, self._grid.brick_counts, tolerance)


class PerceivedWorld:
    """The live maps of a perception, which several gates may share."""

    kind = "voxels"
    objects: Mapping[str, ConvexShape] = {}

    def __init__(self, perception: DeploySimPerception, unknown_occupied: bool) -> None:
        self._perception = perception
        self._unknown_occupied = unknown_occupied
        self._grid = perception.mapper.voxel_grid()
        self.cell = perception.grid.cell

    @property
    def revision(self) -> int:
        return self._perception.revision

    @property
    def stamp(self) -> Tensor:
        return self._perception.stamp

    def refresh(self) -> None:
        self._perception.refresh()

    def forget(self, env_ids: Tensor) -> None:
        self._perception.forget(env_ids)

    def look(self) -> None:
        self._perception.look()

    def load(self, checker: CollisionChecker) -> None:
        if self._unknown_occupied:
            solid = self._grid.bricks | self._perception.unseen_cells()
            checker.set_voxels(replace(self._grid, bricks=solid, closed=True))
        else:
            checker.set_voxels(self._grid)

    def cell_name(self, code: int, env: int) -> str:
        return name_cell(self._grid, code, env)

    def take(self, taken: Taken) -> None:
        self._perception.hold(taken.slot, taken.shape, taken.link, taken.pose_in_link, taken.env_ids)

    def give_back(self, taken: Taken) -> None:
        self._perception.release(taken.slot, taken.shape, taken.link, taken.pose_in_link, taken.env_ids)

    def free(self, box: tuple[float, float, float], pose: Tensor, env_ids: Tensor) -> None:
        self._perception.tell_free(centres_box(box, self.cell), pose, env_ids)
