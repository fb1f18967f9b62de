"""What the hands hold: against the robot, the other hand and the world, by hand-made scenes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from simulo.collision import CollisionChecker, CollisionModel, ConvexShape, Kind, Payload, Primitives
from simulo.errors import CollisionModelError
from tests.collision.worlds import grid, poses

# The pincer's hands are at x = 0.7 when the arms are straight, at y = 0.5 and -0.5; the grasp is 0.09 m further out.
GRASP = (0.09, 0.0, 0.0)


def block(hand: str = "left", shape: ConvexShape | None = None, count: int = 1, **over) -> Payload:
    return Payload(hand, shape or ConvexShape.box((0.03, 0.03, 0.03)), poses(count, GRASP), **over)


def test_b29_a_held_object_may_touch_its_hand_and_nothing_else(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 1)
    checker.attach(block())
    q = torch.zeros(1, 6)
    assert checker.check(q).clear.all(), "neither the jaw nor its follower may stop it"
    assert checker.held("left").all() and not checker.held("right").any()
    crossed = q.clone()  # both elbows turned inwards by the same angle: the hands meet in the middle
    # Upper arms along x to (0.4, +-0.5), forearms and hands 0.38 m long: turn the shoulders in too.
    crossed[0, 0], crossed[0, 3] = -0.9, 0.9
    assert checker.check(crossed).kind[0] in (Kind.SELF, Kind.PAYLOAD)
    folded = q.clone()
    folded[0, 1] = 3.0  # the forearm laid back along the upper arm
    verdict = checker.check(folded, distances=True)
    assert verdict.kind[0] == Kind.SELF, "folded flat the hand itself is in the upper arm, which outranks the payload"


def test_b29_the_other_arm_is_not_excused(pincer_model: CollisionModel) -> None:
    """A bar held across, its end at the other arm's finger: nothing of the robot touches, the payload does."""
    checker = CollisionChecker(pincer_model, 2)
    bar = ConvexShape.box((0.02, 1.0, 0.02))
    checker.attach(Payload("left", bar, poses(1, (0.1, -0.49, 0.0))), [0])
    verdict = checker.check(torch.zeros(2, 6))
    assert verdict.kind.tolist() == [Kind.PAYLOAD, Kind.CLEAR]
    assert checker.describe(verdict, 0) == "payload 0 of gripper left against right_jaw"
    checker.attach(Payload("left", bar, poses(1, (0.1, -0.49, 0.0)), touch_links=("right_jaw", "right_follower")), [0])
    assert checker.check(torch.zeros(2, 6)).clear.all(), "unless it is told that it may"


def test_payloads_of_two_hands_meet(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 1)
    bar = ConvexShape.box((0.02, 0.5, 0.02))
    checker.attach(Payload("left", bar, poses(1, (0.1, -0.24, 0.0))))
    assert checker.check(torch.zeros(1, 6)).clear.all()
    checker.attach(Payload("right", bar, poses(1, (0.1, 0.28, 0.0))))
    verdict = checker.check(torch.zeros(1, 6))
    assert verdict.kind[0] == Kind.PAYLOAD
    assert checker.describe(verdict, 0) == "payload 0 of gripper left against payload 0 of gripper right"
    checker.detach("right")
    assert checker.check(torch.zeros(1, 6)).clear.all()


def test_b31_a_cylinder_is_no_box(pincer_model: CollisionModel) -> None:
    """Radius 22.5, half height 44.1 mm, tilted by 45 degrees: a box corner is clear, 1 mm inside the side is not."""
    can = ConvexShape.cylinder(0.0225, 0.0882, sides=24)
    surface = np.linalg.norm(can.vertices[:, :2], axis=1).max()
    assert surface - 0.0225 <= 0.001
    tilt = Rotation.from_euler("x", 45, degrees=True)
    checker = CollisionChecker(pincer_model, 2, world_margin=0.005)
    checker.attach(Payload("left", can, poses(2, (0.3, 0.0, 0.0), tilt)))
    centre = np.array([1.0, 0.5, 0.0])
    side = tilt.apply((np.cos(np.pi / 24), np.sin(np.pi / 24), 0.0))
    diagonal = tilt.apply((0.5**0.5, 0.5**0.5, 0.0))
    probe = 0.002
    positions = [centre + diagonal * (0.0225 + 0.010 + probe), centre + side * (0.0225 - 0.001 + probe)]
    at = torch.stack([poses(1, p)[0] for p in positions])[:, None]
    checker.set_primitives(Primitives.of(["probe"], [ConvexShape.sphere(probe)], at))
    verdict = checker.check(torch.zeros(2, 6), distances=True)
    assert verdict.kind.tolist() == [Kind.CLEAR, Kind.PAYLOAD]
    np.testing.assert_allclose(verdict.distance[0], 0.010, atol=0.0011)


def test_b33_attach_and_detach_in_one_tick(pincer_model: CollisionModel) -> None:
    """The object's world copy is switched off as it is attached and on again as it is let go."""
    checker = CollisionChecker(pincer_model, 1)
    at = poses(1, (0.7 + GRASP[0], 0.5, 0.0))[:, None]
    shape = ConvexShape.box((0.03, 0.03, 0.03))
    checker.set_primitives(Primitives.of(["block"], [shape], at))
    q = torch.zeros(1, 6)
    assert checker.check(q).kind[0] == Kind.WORLD
    checker.attach(block())
    checker.move_primitives(at, torch.zeros(1, 1, dtype=torch.bool))
    assert checker.check(q).clear.all()
    checker.detach("left")
    checker.move_primitives(at, torch.ones(1, 1, dtype=torch.bool))
    assert checker.check(q).kind[0] == Kind.WORLD


def test_payload_meets_cells_and_its_support_region_excuses_it_alone(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 1)
    checker.attach(block())
    cells = np.zeros((1, 20, 20, 8), bool)
    cells[0, :, :, 7] = True  # a shelf whose top is 1 mm under the block
    checker.set_voxels(grid(cells, 0.01, (0.7 + 0.09 - 0.1, 0.4, -0.015 - 0.001 - 0.08)))
    q = torch.zeros(1, 6)
    verdict = checker.check(q)
    assert verdict.kind[0] == Kind.PAYLOAD, "the palm is within the margin too, but the payload comes first"
    assert checker.describe(verdict, 0).startswith("payload 0 of gripper left against map cell")
    shelf = poses(1, (0.79, 0.5, -0.021))
    checker.set_support_region("left", 0, shelf, torch.tensor([[0.3, 0.3, 0.02]]))
    verdict = checker.check(q, distances=True)
    assert verdict.kind[0] != Kind.PAYLOAD
    # What is left is the hand over the same shelf: palm 4 mm into the margin, judged as ever.
    assert verdict.kind[0] == Kind.WORLD and checker.describe(verdict, 0).startswith("left_palm against map cell")
    checker.clear_support_region("left")
    assert checker.check(q).kind[0] == Kind.PAYLOAD


def test_several_payloads_in_one_hand(pincer_model: CollisionModel) -> None:
    checker = CollisionChecker(pincer_model, 1, max_payloads=2)
    checker.attach(block())
    checker.attach(block(shape=ConvexShape.sphere(0.01), slot=1))
    assert checker.check(torch.zeros(1, 6)).clear.all(), "what one hand holds may touch"
    checker.attach(Payload("left", ConvexShape.sphere(0.05), poses(1, (0.3, 0.0, 0.0)), slot=1))
    ball = Primitives.of(["ball"], [ConvexShape.sphere(0.01)], poses(1, (1.0, 0.5, 0.05))[:, None])
    checker.set_primitives(ball)
    verdict = checker.check(torch.zeros(1, 6))
    assert checker.describe(verdict, 0) == "payload 1 of gripper left against ball"
    with pytest.raises(CollisionModelError, match="slot 2"):
        checker.attach(block(slot=2))
    with pytest.raises(CollisionModelError, match="no gripper 'middle'"):
        checker.attach(block("middle"))
    with pytest.raises(CollisionModelError, match="vertices"):
        checker.attach(block(shape=ConvexShape(np.random.default_rng(0).normal(size=(300, 3)))))


def test_measured_fingers_are_checked_beside_the_commanded_ones(pincer_model: CollisionModel) -> None:
    """Commanded shut, stalled open on an object: an obstacle beside the open finger is hit only if measured counts."""
    checker = CollisionChecker(pincer_model, 2)
    beside = (0.7 + 0.09, 0.5 - 0.045, 0.0)  # where the left follower is at 0.04, not at 0
    checker.set_primitives(Primitives.of(["post"], [ConvexShape.sphere(0.004)], poses(2, beside)[:, None]))
    q = torch.zeros(2, 6)
    assert checker.check(q).clear.all()
    measured = torch.tensor([[0.04, 0.0]] * 2)
    active = torch.tensor([[True, False], [False, True]])
    verdict = checker.check(q, measured=measured, measured_active=active)
    assert verdict.kind.tolist() == [Kind.WORLD, Kind.CLEAR]
    assert checker.describe(verdict, 0) == "left_follower against post"
    assert checker.check(q).clear.all(), "what was left out is not remembered"
    with pytest.raises(CollisionModelError, match="belong together"):
        checker.check(q, measured=measured)


@pytest.mark.parametrize("size", [1e6, 1e15, 1e20, 1e30])
def test_a_payload_too_large_for_float32_to_measure_is_no_clear_one(pincer_model: CollisionModel, size: float) -> None:
    corners = np.array(list(itertools.product((-1.0, 0.7), repeat=3))) * size
    checker = CollisionChecker(pincer_model, 1)
    checker.attach(Payload("left", ConvexShape(corners), poses(1)))
    for distances in (False, True):
        verdict = checker.check(torch.zeros(1, pincer_model.num_joints), distances=distances)
        assert not verdict.clear[0]
