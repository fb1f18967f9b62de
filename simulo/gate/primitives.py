"""Exact shapes as the gate's world: a list given once, or a simulated scene's props wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from simulo.collision import CollisionChecker, ConvexShape, Primitives
from simulo.gate.rigid import compose, inverse
from simulo.gate.world import StillWorld, Taken
from simulo.props import Box, Capsule, Cylinder, Hull, Prop, Shape, Sphere

SAME_OBJECT = 0.005
"""How far [m] a primitive may stick out of a payload's box and still be the payload itself."""


class PrimitiveWorld(StillWorld):
    """Primitives given once. What a hand takes is taken out, and put back where it is let go."""

    kind = "primitives"

    def __init__(self, primitives: Primitives, stamp: Tensor) -> None:
        super().__init__(stamp, dict(zip(primitives.names, primitives.shapes, strict=True)))
        self._primitives = replace(primitives, pose=primitives.pose.clone(), valid=primitives.valid.clone())
        self._held: list[tuple[int, int, int]] = []  # slot, environment, primitive
        self._placed = False

    def load(self, checker: CollisionChecker) -> None:
        if not self._placed:
            checker.set_primitives(self._primitives)
            self._placed = True
        checker.move_primitives(self._primitives.pose, self._primitives.valid)

    def take(self, taken: Taken) -> None:
        for env, index in self._matches(taken):
            if (taken.slot, env, index) not in self._held:  # else it has only moved in the hand
                self._held.append((taken.slot, env, index))
            self._primitives.valid[env, index] = False
        self.revision += 1

    def give_back(self, taken: Taken) -> None:
        rows = {int(env): row for row, env in enumerate(taken.env_ids)}
        for slot, env, index in list(self._held):
            if slot == taken.slot and env in rows:
                self._held.remove((slot, env, index))
                self._primitives.valid[env, index] = True
                self._primitives.pose[env, index] = taken.pose[rows[env]].to(self._primitives.pose)
        self.revision += 1

    def _matches(self, taken: Taken) -> list[tuple[int, int]]:
        """(environment, primitive) of what is the taken object: by its name, else all that lies within its box."""
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
    """The props of a simulated scene, exactly where the simulator has them at every step; so they do not age."""

    def __init__(self, props: Mapping[str, Prop], num_envs: int, device: torch.device) -> None:
        self._props = tuple(props.values())
        self._num_envs, self._device = num_envs, device
        shapes = tuple(as_convex(prop.shape) for prop in self._props)
        never_old = torch.full((num_envs,), torch.inf, dtype=torch.float64, device=device)
        super().__init__(Primitives(tuple(props), shapes, *self._read()), never_old)

    def refresh(self) -> None:
        pose, present = self._read()
        for _slot, env, index in self._held:
            present[env, index] = False
        if torch.equal(pose, self._primitives.pose) and torch.equal(present, self._primitives.valid):
            return
        self._primitives = replace(self._primitives, pose=pose, valid=present)
        self.revision += 1

    def forget(self, env_ids: Tensor) -> None:
        ended = set(env_ids.tolist())
        self._held = [item for item in self._held if item[1] not in ended]

    def look(self) -> None:
        self.refresh()

    def _read(self) -> tuple[Tensor, Tensor]:
        """Poses (num_envs, K, 7) and presence (num_envs, K) of the props."""
        n, device = self._num_envs, self._device
        if not self._props:
            return torch.zeros(n, 0, 7, device=device), torch.zeros(n, 0, dtype=torch.bool, device=device)
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


def lies_within(shape: ConvexShape, pose: Tensor, container: ConvexShape) -> Tensor:
    """Whether a shape at pose (M, 7), float64, in the container's frame lies in its box; bool, shape (M,)."""
    points = torch.tensor(shape.vertices.tolist(), dtype=torch.float64)
    unit = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64).expand(len(points), 4)
    at = torch.cat([points, unit], dim=-1).expand(len(pose), -1, 7)
    placed = compose(pose[:, None].expand_as(at), at)[..., :3]
    room = torch.as_tensor(container.half + container.radius - shape.radius + SAME_OBJECT)
    return ((placed - torch.as_tensor(container.centre)).abs() <= room).all(dim=-1).all(dim=-1)
