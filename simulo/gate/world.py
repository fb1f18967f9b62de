"""What the gate knows of its surroundings, and how a held object leaves and rejoins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from simulo.collision import CollisionChecker, ConvexShape, Primitives, VoxelGrid
from simulo.gate.rigid import compose, inverse
from simulo.perception import DeploySimPerception
from simulo.perception.solid import filled_cells
from simulo.props import Box, Capsule, Cylinder, Hull, Prop, Shape, Sphere

DEFAULT_CELL = 0.01
"""Cell edge [m] that declarations are measured with where the world has no cells."""

CARVE = 0.5
"""Cells this many edges around what a hand takes are taken along: a cell that pose or depth error left behind would
stop the hand as soon as it moves. Less than one, so a neighbour's cells stay."""


@dataclass(frozen=True)
class Taken:
    """An object that a hand has taken, in M environments.

    slot: which of the robot's payload slots. shape at pose_in_link (M, 7) on `link`, now at pose (M, 7) in the
    environment's frame. object: its name among the primitives, "" when it is found by its place.
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

    kind: "voxels", "primitives" or "none". cell [m]. revision: grows with every change. stamp [s], shape (num_envs,),
    float64: when each environment was last seen, -inf for never, inf where age has no meaning.
    """

    kind: str
    cell: float
    revision: int

    @property
    def stamp(self) -> Tensor: ...

    def refresh(self) -> None:
        """Called before each step's check."""

    def look(self, env_ids: Tensor) -> None:
        """New episodes have begun in these environments, and the robot stands still."""

    def load(self, checker: CollisionChecker) -> None: ...

    def take(self, taken: Taken) -> None: ...

    def give_back(self, taken: Taken) -> None: ...


class NoWorld:
    """world="none": the robot alone is checked, and every verdict says so. Also what stands before set_world."""

    cell = DEFAULT_CELL
    revision = 0

    def __init__(self, num_envs: int, device: torch.device, kind: str) -> None:
        """kind "none" is the declared absence of a world; any other is one that is still owed (never seen)."""
        self.kind = kind
        self.stamp = torch.full((num_envs,), torch.inf if kind == "none" else -torch.inf, dtype=torch.float64).to(device)

    def refresh(self) -> None: ...

    def look(self, env_ids: Tensor) -> None: ...

    def load(self, checker: CollisionChecker) -> None: ...

    def take(self, taken: Taken) -> None: ...

    def give_back(self, taken: Taken) -> None: ...


class GridWorld:
    """A grid given once; it ages from `stamp` on. The caller's tensors are copied and never written to."""

    kind = "voxels"

    def __init__(self, grid: VoxelGrid, stamp: Tensor, unknown_occupied: bool) -> None:
        solid = grid.with_unknown_occupied() if unknown_occupied else grid
        self._grid = replace(solid, bricks=solid.bricks.clone())
        self.cell, self.stamp, self.revision = grid.cell, stamp, 0
        self.corner = torch.cat([grid.position, grid.orientation_wxyz], dim=1).to("cpu", torch.float64)

    def refresh(self) -> None: ...

    def look(self, env_ids: Tensor) -> None: ...

    def load(self, checker: CollisionChecker) -> None:
        checker.set_grid(self._grid)

    def take(self, taken: Taken) -> None:
        self._grid.bricks[taken.env_ids] &= ~self._cells(taken, CARVE * self.cell)
        self.revision += 1

    def give_back(self, taken: Taken) -> None:
        self._grid.bricks[taken.env_ids] |= self._cells(taken, 0.0)
        self.revision += 1

    def _cells(self, taken: Taken, tolerance: float) -> Tensor:
        device = self._grid.bricks.device
        in_lattice = compose(inverse(self.corner[taken.env_ids.cpu()]), taken.pose).to(device, torch.float32)
        return filled_cells(taken.shape, in_lattice, self.cell, self._grid.brick_counts, tolerance)


class PerceivedWorld:
    """The live maps of a perception, which several gates may share."""

    kind = "voxels"

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

    def look(self, env_ids: Tensor) -> None:
        self._perception.look(env_ids)

    def load(self, checker: CollisionChecker) -> None:
        checker.set_grid(self._grid.with_unknown_occupied() if self._unknown_occupied else self._grid)

    def take(self, taken: Taken) -> None:
        self._perception.hold(taken.slot, taken.shape, taken.link, taken.pose_in_link, taken.env_ids)

    def give_back(self, taken: Taken) -> None:
        self._perception.release(taken.slot, taken.shape, taken.link, taken.pose_in_link, taken.env_ids)


class PrimitiveWorld:
    """Primitives given once. What a hand takes is taken out, and put back where it was let go."""

    kind = "primitives"
    cell = DEFAULT_CELL

    def __init__(self, primitives: Primitives, stamp: Tensor) -> None:
        self._primitives = replace(primitives, pose=primitives.pose.clone(), valid=primitives.valid.clone())
        self._held: dict[int, list[tuple[int, int]]] = {}
        self.stamp, self.revision = stamp, 0

    def refresh(self) -> None: ...

    def look(self, env_ids: Tensor) -> None: ...

    def load(self, checker: CollisionChecker) -> None:
        checker.set_primitives(self._primitives)

    def take(self, taken: Taken) -> None:
        matches = self._matches(taken)
        self._held.setdefault(taken.slot, []).extend(matches)
        for env, index in matches:
            self._primitives.valid[env, index] = False
        self.revision += 1

    def give_back(self, taken: Taken) -> None:
        rows = {int(env): row for row, env in enumerate(taken.env_ids)}
        held = self._held.get(taken.slot, [])
        for env, index in [item for item in held if item[0] in rows]:
            held.remove((env, index))
            self._primitives.valid[env, index] = True
            self._primitives.pose[env, index] = taken.pose[rows[env]].to(self._primitives.pose)
        self.revision += 1

    def _matches(self, taken: Taken) -> list[tuple[int, int]]:
        """(environment, primitive) of what is the taken object: by name, else all that lies within its box."""
        if taken.object in self._primitives.names:
            index = self._primitives.names.index(taken.object)
            return [(int(env), index) for env in taken.env_ids]
        found = []
        for index, shape in enumerate(self._primitives.shapes):
            at = self._primitives.pose[taken.env_ids, index].to("cpu", torch.float64)
            inside = lies_within(shape, compose(inverse(taken.pose), at), taken.shape)
            found += [(int(env), index) for env, ok in zip(taken.env_ids, inside.tolist(), strict=True) if ok]
        return found


class SceneWorld(PrimitiveWorld):
    """The props of a simulated scene, exactly where the simulator has them at every step."""

    def __init__(self, props: Mapping[str, Prop], num_envs: int, device: torch.device) -> None:
        self._props = tuple(props.values())
        shapes = tuple(as_convex(prop.shape) for prop in self._props)
        pose, present = self._read(num_envs, device)
        super().__init__(Primitives(tuple(props), shapes, pose, present), torch.zeros(0))
        self.stamp = torch.full((num_envs,), torch.inf, dtype=torch.float64, device=device)

    def refresh(self) -> None:
        pose, present = self._read(*self._primitives.valid.shape[:1], self._primitives.pose.device)
        for held in self._held.values():
            for env, index in held:
                present[env, index] = False
        self._primitives = replace(self._primitives, pose=pose, valid=present)
        self.revision += 1

    def look(self, env_ids: Tensor) -> None:
        gone = set(env_ids.tolist())
        self._held = {slot: [item for item in held if item[0] not in gone] for slot, held in self._held.items()}
        self.refresh()

    def _read(self, num_envs: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Poses (num_envs, K, 7) and presence (num_envs, K) of the props."""
        if not self._props:
            return torch.zeros(num_envs, 0, 7, device=device), torch.zeros(num_envs, 0, dtype=torch.bool, device=device)
        pose = torch.stack([prop.state.pose for prop in self._props], dim=1).to(device, torch.float32)
        return pose, torch.stack([prop.state.present for prop in self._props], dim=1).to(device)


def as_convex(shape: Shape) -> ConvexShape:
    """A prop's shape as the check takes it; a cylinder becomes a prism that holds it (see `ConvexShape.cylinder`)."""
    if isinstance(shape, Box):
        return ConvexShape.box(shape.size)
    if isinstance(shape, Sphere):
        return ConvexShape.sphere(shape.radius)
    if isinstance(shape, Cylinder):
        return ConvexShape.cylinder(shape.radius, shape.height)
    if isinstance(shape, Capsule):
        return ConvexShape.capsule(shape.radius, shape.length)
    if isinstance(shape, Hull):
        return ConvexShape(shape.vertices)
    raise TypeError(f"no convex form of a {type(shape).__name__}")


SAME_OBJECT = 0.005
"""How far [m] a primitive may stick out of a payload's box and still be the payload itself."""


def lies_within(shape: ConvexShape, pose: Tensor, container: ConvexShape) -> Tensor:
    """Whether a shape at pose (M, 7) in the container's frame lies in the container's box; bool, shape (M,)."""
    points = torch.as_tensor(shape.vertices).expand(len(pose), -1, 3)
    placed = compose(pose[:, None].expand(-1, points.shape[1], -1), _as_poses(points))[..., :3]
    room = torch.as_tensor(container.half + container.radius - shape.radius + SAME_OBJECT)
    return ((placed - torch.as_tensor(container.centre)).abs() <= room).all(dim=-1).all(dim=-1)


def _as_poses(points: Tensor) -> Tensor:
    unit = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=points.dtype).expand(*points.shape[:-1], 4)
    return torch.cat([points, unit], dim=-1)
