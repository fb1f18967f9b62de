"""Ways in which a contact could slip through: partial questions, numbers that are none, and very large shapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from simulo.collision import (
    CollisionChecker,
    CollisionModel,
    ConvexShape,
    Kind,
    Payload,
    Primitives,
    VoxelGrid,
    build_model,
)
from tests.collision.robots import sliders
from tests.collision.worlds import poses

# The pincer's palms are at x = 0.7 when the arms are straight, at y = 0.5 and -0.5.
BAR = ConvexShape.box((0.02, 1.0, 0.02))
EVERYWHERE = torch.ones(1, 8, 8, 8, dtype=torch.bool)
LEVEL = torch.tensor([[1.0, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize("links", ["gripper:left", "gripper:right", "right_jaw"])
def test_b29_a_question_about_either_party_finds_what_the_other_hand_holds(
    pincer_model: CollisionModel, links: str
) -> None:
    checker = CollisionChecker(pincer_model, 1)
    checker.attach(Payload("left", BAR, poses(1, (0.1, -0.49, 0.0))))
    verdict = checker.check(torch.zeros(1, 6), links=links)
    assert verdict.kind[0] == Kind.PAYLOAD
    assert checker.describe(verdict, 0) == "payload 0 of gripper left against right_jaw"
    assert checker.check(torch.zeros(1, 6), links="right_follower").clear.all(), "which it does not reach"


@pytest.mark.parametrize("links", ["gripper:left", "gripper:right"])
def test_payloads_of_two_hands_meet_whichever_hand_is_asked_of(pincer_model: CollisionModel, links: str) -> None:
    checker = CollisionChecker(pincer_model, 1)
    bar = ConvexShape.box((0.02, 0.5, 0.02))
    checker.attach(Payload("left", bar, poses(1, (0.1, -0.24, 0.0))))
    checker.attach(Payload("right", bar, poses(1, (0.1, 0.28, 0.0))))
    verdict = checker.check(torch.zeros(1, 6), links=links)
    assert checker.describe(verdict, 0) == "payload 0 of gripper left against payload 0 of gripper right"


def test_the_world_of_what_another_hand_holds_is_not_asked_about(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 1)
    checker.attach(Payload("left", ConvexShape.sphere(0.02), poses(1, (0.2, 0.0, 0.0))))
    checker.set_primitives(Primitives.of(("ball",), (ConvexShape.sphere(0.02),), poses(1, (0.92, 0.5, 0.0))[:, None]))
    assert checker.check(torch.zeros(1, 6), links="gripper:left").kind[0] == Kind.PAYLOAD
    assert checker.check(torch.zeros(1, 6), links="gripper:right").clear.all()


@pytest.mark.parametrize("broken", ["position", "orientation", "size"])
def test_a_grasp_region_that_is_no_box_exempts_nothing(pincer_model: CollisionModel, broken: str) -> None:
    checker = CollisionChecker(pincer_model, 1)
    ball = Primitives.of(("ball",), (ConvexShape.sphere(0.02),), poses(1, (0.79, 0.5, 0.0))[:, None])
    checker.set_primitives(ball)
    region, size = poses(1, (0.79, 0.5, 0.0)), torch.full((1, 3), 0.1)
    checker.set_grasp_region("left", region, size)
    assert checker.check(torch.zeros(1, 6)).clear.all()
    values = {"position": region[:, :3], "orientation": region[:, 3:], "size": size}[broken]
    values[:] = 0.0 if broken == "orientation" else torch.nan
    checker.set_grasp_region("left", region, size)
    assert checker.check(torch.zeros(1, 6)).kind[0] == Kind.WORLD


@pytest.mark.parametrize("far", [1e30, 3e38])
def test_finite_inputs_whose_sums_overflow_are_not_clear_of_the_map(pincer_model: CollisionModel, far: float) -> None:
    checker = CollisionChecker(pincer_model, 1)
    checker.set_voxels(VoxelGrid.from_cells(EVERYWHERE, 0.01, torch.tensor([[0.0, 0.0, 5.0]]), LEVEL))
    base = torch.tensor([[far, -far, far, 0.8, 0.6, 0.0, 0.0]])
    assert checker.check(torch.zeros(1, 6)).clear.all()
    assert not checker.check(torch.zeros(1, 6), base).clear.any()


@pytest.mark.parametrize("payload", [False, True])
def test_clear_of_a_map_is_above_the_margin(pincer_model: CollisionModel, payload: bool) -> None:
    """Also where nothing was near enough to be measured, and with a self margin far below the world's."""
    checker = CollisionChecker(pincer_model, 1, world_margin=0.005)
    checker.set_voxels(VoxelGrid.from_cells(EVERYWHERE, 0.01, torch.tensor([[0.0, 0.0, 5.0]]), LEVEL))
    if payload:
        checker.attach(Payload("left", ConvexShape.sphere(0.02), poses(1, (0.1, 0.0, 0.0))))
    verdict = checker.check(torch.zeros(1, 6))
    assert verdict.clear.all() and verdict.bound.all() and verdict.distance[0].item() > 0.005


@pytest.mark.parametrize("size", [1.0, 30.0, 1000.0])
def test_distances_to_large_slabs_are_never_above_the_truth(size: float) -> None:
    """A ground plane is a big box; float32 is coarse on levers of 500 m, and what it loses may not hide a contact."""
    count, rng = 300, np.random.default_rng(5)
    pose, base, truth = np.zeros((count, 1, 7), np.float32), np.zeros((count, 7), np.float32), np.zeros(count)
    for i in range(count):
        turns = Rotation.random(2, random_state=int(rng.integers(1 << 31)))
        wxyz = turns.as_quat()[:, [3, 0, 1, 2]].astype(np.float32)
        slab, robot = Rotation.from_quat(wxyz[:, [1, 2, 3, 0]].astype(np.float64)).as_matrix()
        normal, reach = slab[:, 2], 0.05 * np.abs(robot.T @ slab[:, 2]).sum()
        base[i] = [*rng.uniform(-2.0, 2.0, 3), *wxyz[1]]
        lateral = slab[:, :2] @ rng.uniform(-0.4 * size, 0.4 * size, 2)
        pose[i, 0, :3] = base[i, :3] - (0.05 + reach + rng.uniform(-1e-4, 1e-2)) * normal + lateral
        pose[i, 0, 3:] = wxyz[0]
        truth[i] = (base[i, :3].astype(np.float64) - pose[i, 0, :3]) @ normal - 0.05 - reach
    checker = CollisionChecker(build_model(sliders()), count, world_margin=0.0)
    slab = ConvexShape.box((size, size, 0.1))
    checker.set_primitives(Primitives.of(("slab",), (slab,), torch.from_numpy(pose)))
    q, where = torch.zeros(count, 2), torch.from_numpy(base)
    quick = checker.check(q, where, links="box0")
    assert not (quick.clear.numpy() & (truth <= 0.0)).any()
    exact = checker.check(q, where, links="box0", distances=True)
    apart = truth > 0.0
    found = exact.distance.double().numpy()
    assert (found <= truth)[apart].all()
    assert (found > truth - 1e-5 - 1e-6 * size)[apart].all(), "and the slack is no more than it must be"
    sharp = apart & ~exact.bound.numpy()
    assert (found > truth - 1e-5)[sharp].all()
    assert sharp.any() or size > 1.0
