"""A checker that has lived through many changes answers as a new one that is told how things are now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from simulo.collision import CollisionChecker, ConvexShape, MapStatus, Payload, Primitives, VoxelGrid, build_model
from tests.collision.robots import pincer

MODEL = build_model(pincer())
ENVS, ROWS = 5, 3
HANDS = ("left", "right")


@dataclass
class Surroundings:
    """What a checker was told last, by what it was told of, in the order of telling."""

    rng: np.random.Generator
    told: dict[str, Callable[[CollisionChecker], Any]] = field(default_factory=dict)

    def tell(self, what: str, how: Callable[[CollisionChecker], Any], old: CollisionChecker) -> None:
        self.told.pop(what, None)
        self.told[what] = how
        how(old)

    def new(self) -> CollisionChecker:
        checker = planned()
        for how in self.told.values():
            how(checker)
        return checker

    def poses(self, *shape: int, reach: float = 0.6) -> torch.Tensor:
        out = torch.tensor(self.rng.normal(size=(*shape, 7)), dtype=torch.float32)
        out[..., :3] *= reach
        return out

    def some(self) -> list[int]:
        return sorted(self.rng.choice(ENVS, self.rng.integers(1, ENVS + 1), replace=False).tolist())

    def shape(self) -> ConvexShape:
        kind, size = self.rng.integers(4), float(self.rng.uniform(0.01, 0.15))
        if kind == 0:
            return ConvexShape.sphere(size)
        if kind == 1:
            return ConvexShape.box(size * self.rng.uniform(0.3, 2.0, 3))
        return ConvexShape.capsule(size, 2.0 * size) if kind == 2 else ConvexShape(size * self.rng.normal(size=(9, 3)))


def planned() -> CollisionChecker:
    return CollisionChecker(MODEL, ENVS, ROWS, max_payloads=2, split_at=4)


def change_map(all_of_it: Surroundings, old: CollisionChecker) -> None:
    rng = all_of_it.rng
    counts = rng.integers(1, 14, 3)
    cells = torch.tensor(rng.random((ENVS, *counts)) < 0.05)
    unknown = torch.tensor(rng.random((ENVS, *counts)) < 0.3) if rng.random() < 0.4 else None
    where = all_of_it.poses(ENVS)
    grid = VoxelGrid.from_cells(cells, float(rng.uniform(0.02, 0.1)), where[:, :3], where[:, 3:], unknown)
    all_of_it.tell("map", lambda checker: checker.set_voxels(grid), old)


def remove_map(all_of_it: Surroundings, old: CollisionChecker) -> None:
    all_of_it.tell("map", lambda checker: checker.clear_voxels(), old)


def change_primitives(all_of_it: Surroundings, old: CollisionChecker) -> None:
    count = int(all_of_it.rng.integers(1, 9))
    shapes = [all_of_it.shape() for _ in range(count)]
    things = Primitives.of([f"thing {k}" for k in range(count)], shapes, all_of_it.poses(ENVS, count, reach=1.0))
    all_of_it.told.pop("moved", None)
    for hand in HANDS:  # a region may name what is no longer there
        remove_region(all_of_it, old, hand)
    all_of_it.tell("primitives", lambda checker: checker.set_primitives(things), old)


def move_primitives(all_of_it: Surroundings, old: CollisionChecker) -> None:
    if old._primitives is None:
        return
    count = len(old._primitives.names)
    where, there = all_of_it.poses(ENVS, count, reach=1.0), torch.tensor(all_of_it.rng.random((ENVS, count)) < 0.7)
    all_of_it.tell("moved", lambda checker: checker.move_primitives(where, there), old)


def take(all_of_it: Surroundings, old: CollisionChecker) -> None:
    hand, slot, envs = HANDS[all_of_it.rng.integers(2)], int(all_of_it.rng.integers(2)), all_of_it.some()
    shape, where = all_of_it.shape(), all_of_it.poses(len(envs), reach=0.2)
    both = ((HANDS[hand == "left"], 0),) if all_of_it.rng.random() < 0.3 else ()
    for row, env in enumerate(envs):
        thing = Payload(hand, shape, where[row][None], slot, one_with=both)
        all_of_it.tell(f"{hand} {slot} {env}", lambda checker, e=env, it=thing: checker.attach(it, [e]), old)


def let_go(all_of_it: Surroundings, old: CollisionChecker) -> None:
    hand, slot, envs = HANDS[all_of_it.rng.integers(2)], int(all_of_it.rng.integers(2)), all_of_it.some()
    for env in envs:
        all_of_it.tell(f"{hand} {slot} {env}", lambda checker, e=env: checker.detach(hand, slot, [e]), old)


def allow(all_of_it: Surroundings, old: CollisionChecker) -> None:
    hand = HANDS[all_of_it.rng.integers(2)]
    where, size = all_of_it.poses(ENVS), torch.tensor(all_of_it.rng.uniform(0.1, 0.8, (ENVS, 3)), dtype=torch.float32)
    named = old._primitives.names[0] if old._primitives is not None and all_of_it.rng.random() < 0.5 else None
    all_of_it.tell(f"grasp {hand}", lambda checker: checker.set_grasp_region(hand, where, size, None, named), old)


def support(all_of_it: Surroundings, old: CollisionChecker) -> None:
    hand, slot = HANDS[all_of_it.rng.integers(2)], int(all_of_it.rng.integers(2))
    where, size = all_of_it.poses(ENVS), torch.tensor(all_of_it.rng.uniform(0.1, 0.8, (ENVS, 3)), dtype=torch.float32)
    all_of_it.tell(f"support {hand} {slot}", lambda checker: checker.set_support_region(hand, slot, where, size), old)


def remove_region(all_of_it: Surroundings, old: CollisionChecker, hand: str = "left") -> None:
    all_of_it.tell(f"grasp {hand}", lambda checker: checker.clear_grasp_region(hand), old)


def change_margins(all_of_it: Surroundings, old: CollisionChecker) -> None:
    margins = [float(value) for value in all_of_it.rng.uniform(0.0, 0.03, 2)]
    all_of_it.tell("margins", lambda checker: checker.set_margins(*margins), old)


def ask(all_of_it: Surroundings, old: CollisionChecker) -> bool:
    """One question of any kind to both; whether some were clear and some not."""
    rng = all_of_it.rng
    rows = int(rng.integers(1, ROWS + 1))
    envs = rng.integers(0, ENVS, int(rng.integers(1, 40))).tolist() if rng.random() < 0.5 else None
    q = torch.tensor(rng.uniform(-1.5, 1.5, (ENVS if envs is None else len(envs), rows, 6)), dtype=torch.float32)
    if rng.random() < 0.2:
        q[0, 0, rng.integers(6)] = float(rng.choice([np.nan, np.inf, 1e30]))
    given: dict[str, Any] = {"env_ids": envs, "world": bool(rng.random() < 0.8), "distances": bool(rng.random() < 0.3)}
    given["links"] = [None, "gripper:left", "gripper:right", MODEL.link_names[-1]][rng.integers(4)]
    if rng.random() < 0.5:
        given["base_pose"] = all_of_it.poses(ENVS)
    if rng.random() < 0.5:
        given["measured"] = torch.tensor(rng.uniform(-1, 1, (ENVS, 2)), dtype=torch.float32)
        given["measured_active"] = torch.tensor(rng.random((ENVS, 2)) < 0.5)
    if rng.random() < 0.3:
        given["map_status"] = torch.tensor(rng.choice([int(status) for status in MapStatus], ENVS), dtype=torch.int8)
    if rng.random() < 0.3:
        given["widen"] = torch.tensor(rng.uniform(0.0, 0.02, ENVS), dtype=torch.float32)
    theirs, ours = all_of_it.new().check(q, **given), old.check(q, **given)
    assert torch.equal(ours.block.view(torch.uint8), theirs.block.view(torch.uint8)), given
    return 0 < int(ours.clear.sum()) < len(ours.clear)


CHANGES = (
    change_map, remove_map, change_primitives, move_primitives, take, take, let_go, allow, support, remove_region,
    change_margins,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_what_was_before_is_forgotten(seed: int) -> None:
    surroundings, old, told_apart = Surroundings(np.random.default_rng(seed)), planned(), 0
    for _ in range(40):
        CHANGES[surroundings.rng.integers(len(CHANGES))](surroundings, old)
        if surroundings.rng.random() < 0.6:
            told_apart += ask(surroundings, old)
    assert told_apart >= 5, "questions whose answers are all the same show little"
