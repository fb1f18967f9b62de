"""The same configuration in the same world gets the same answer bit for bit: in batches of 1, 7, 256 and 4096, in any
order, in whichever environment, on one thread and on two."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from simulo.collision import CollisionChecker, CollisionModel, ConvexShape, Kind, Payload, Primitives
from simulo.description import RobotDescription
from tests.collision.test_fk import uniform
from tests.collision.worlds import grid, pose

WORLDS = 5
"""Environment e has world e % WORLDS."""
ONE_THREAD, TWO_THREADS = sys.maxsize, 2


def scene(model: CollisionModel, num_envs: int, split_at: int, first_world: int = 0) -> CollisionChecker:
    """Environments with a map, a ball and a held bar, which depend on the world's number."""
    checker = CollisionChecker(model, num_envs, split_at=split_at)
    world = (np.arange(num_envs) + first_world) % WORLDS
    maps = np.random.default_rng(7).random((WORLDS, 16, 24, 12)) < 0.02
    checker.set_voxels(grid(maps[world], 0.05, (0.1, -0.6, 0.3)))
    at = torch.tensor([pose((0.3 + 0.02 * k, -0.1, 0.5)) for k in range(WORLDS)], dtype=torch.float32)
    checker.set_primitives(Primitives.of(["ball"], [ConvexShape.sphere(0.05)], at[world][:, None].contiguous()))
    held = torch.tensor([pose((0.0, 0.0, -0.165 - 0.01 * k)) for k in range(WORLDS)], dtype=torch.float32)
    checker.attach(Payload("right", ConvexShape.box((0.04, 0.2, 0.04)), held[world]))
    return checker


@pytest.fixture(scope="module")
def q(openarm: RobotDescription) -> torch.Tensor:
    return torch.from_numpy(uniform(openarm, 4096, 17))


@pytest.fixture(scope="module")
def large(openarm_model: CollisionModel) -> CollisionChecker:
    return scene(openarm_model, 4096, ONE_THREAD)


@pytest.mark.parametrize("distances", [False, True])
def test_an_answer_does_not_depend_on_the_batch(
    openarm_model: CollisionModel, large: CollisionChecker, q: torch.Tensor, distances: bool
) -> None:
    count = 400 if distances else 4096  # least distances of all pairs take longer
    rng = np.random.default_rng(3)
    world = np.arange(count) % WORLDS
    whole = large.check(q[:count], env_ids=range(count), distances=distances).block
    assert set(whole[0].tolist()) >= {Kind.CLEAR, Kind.SELF, Kind.PAYLOAD, Kind.WORLD}, "or little is shown"
    for size in (1, 7, 256, 4096):
        for split_at in (ONE_THREAD, TWO_THREADS):
            same = (size, split_at) == (4096, ONE_THREAD)
            checker = large if same else scene(openarm_model, max(size, WORLDS), split_at)
            order = rng.permutation(count)[: 20 * size]
            for rows in np.array_split(order, -(-len(order) // size)):
                slots = checker.sizes.num_envs // WORLDS
                envs = world[rows] + WORLDS * rng.integers(0, slots, len(rows))
                answer = checker.check(q[rows], env_ids=envs.tolist(), distances=distances)
                assert torch.equal(answer.block, whole[:, rows]), (size, split_at)


def test_an_answer_does_not_depend_on_there_being_other_environments(
    openarm_model: CollisionModel, large: CollisionChecker, q: torch.Tensor
) -> None:
    whole = large.check(q).block
    for world in range(WORLDS):
        alone = scene(openarm_model, 1, ONE_THREAD, first_world=world)
        for i in range(world, 20 * WORLDS, WORLDS):
            assert torch.equal(alone.check(q[i : i + 1]).block, whole[:, i : i + 1])
