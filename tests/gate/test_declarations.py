"""Exemptions that end: grasp boxes, supports, places; and jaws that stall on what they hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.collision import ConvexShape, Primitives
from simulo.errors import CollisionModelError, GateError
from simulo.gate import CollisionGate, Region
from simulo.gate.session import Session
from simulo.pose import Pose
from tests.gate.arm import openarm, placed, poses, rest
from tests.gate.tasks import JointTargets

HAND = "openarm_right_ee_base_link"
OPEN = rest(right_finger_joint1=-0.6)
OBJECT = (0.04, 0.04, 0.10)


def between_the_jaws(q: np.ndarray) -> np.ndarray:
    """4 x 4 pose of an upright object between the right hand's pads."""
    gripper = openarm().gripper("right")
    pads = [(poses(q)[p.link] @ [*p.position, 1.0])[:3] for p in gripper.pad_points]
    pose = np.eye(4)
    pose[:3, 3] = np.mean(pads, axis=0) - (0.0, 0.0, 0.03)
    return pose


def as_row(matrix: np.ndarray) -> torch.Tensor:
    pose = Pose.from_matrix(matrix)
    return torch.tensor([*pose.position, *pose.orientation_wxyz], dtype=torch.float32)


def listed(**objects: tuple[ConvexShape, np.ndarray]) -> Primitives:
    rows = torch.stack([as_row(matrix) for _, matrix in objects.values()])[None]
    return Primitives.of(list(objects), [shape for shape, _ in objects.values()], rows)


class Clocked:
    """A body whose time a test sets, and whose hands it declares closed; see `simulo.gate.body.Body`."""

    def __init__(self, gate: CollisionGate) -> None:
        self._lone = gate._session.body
        self.num_envs, self.device, self.measured, self.time = 1, self._lone.device, True, 0.0
        self.is_closed = torch.zeros(1, 2, dtype=torch.bool)

    def place(self, q: np.ndarray) -> None:
        self._lone.place(q)

    def closed(self) -> torch.Tensor:
        return self.is_closed

    def __getattr__(self, name: str):
        return getattr(self._lone, name)


@pytest.fixture
def gate() -> CollisionGate:
    gate = CollisionGate(openarm(), world="primitives", device="cpu")
    body = Clocked(gate)
    body.place(OPEN)
    gate._session = Session(gate.model, gate.settings, body)
    return gate


def touching_jaw() -> np.ndarray:
    """An object against the inner finger of the open hand: its nearest point 2 mm inside the pad."""
    finger = placed("openarm_right_ee_inner_finger", OPEN)
    low = finger.vertices[finger.vertices[:, 2] < finger.vertices[:, 2].min() + 0.03]
    pose = np.eye(4)
    pose[:3, 3] = low.mean(axis=0)
    return pose


def test_a_grasp_region_exempts_the_fingers_until_it_ends(gate):
    shape = ConvexShape.box((0.03, 0.03, 0.03))
    where = touching_jaw()
    gate.set_world(listed(Thing=(shape, where)))
    assert gate.check(OPEN).kind_name(0) == "world"
    gate.declare_grasp("right", Pose.from_matrix(where), (0.05, 0.05, 0.05), duration=1.0, object="Thing")
    assert gate.check(OPEN).clear[0]
    gate._session.body.time = 0.99
    assert gate.check(OPEN).clear[0]
    gate._session.body.time = 1.0
    assert gate.check(OPEN).kind_name(0) == "world"


def test_a_grasp_region_exempts_nothing_but_the_fingers_of_that_hand(gate):
    shape = ConvexShape.box((0.03, 0.03, 0.03))
    on_hand = np.eye(4)
    on_hand[:3, 3] = placed(HAND, OPEN).center_mass
    gate.set_world(listed(Thing=(shape, on_hand)))
    gate.declare_grasp("right", Pose.from_matrix(on_hand), (0.05, 0.05, 0.05), duration=1.0, object="Thing")
    verdict = gate.check(OPEN)
    assert verdict.kind_name(0) == "world" and verdict.parties(0)[0] == HAND
    where = touching_jaw()
    gate.set_world(listed(Other=(shape, where)))
    assert gate.check(OPEN).kind_name(0) == "world"  # the first thing's exemption is not the other's
    gate.set_world(listed(Thing=(shape, where)))
    gate.declare_grasp("left", Pose.from_matrix(where), (0.05, 0.05, 0.05), duration=1.0, object="Thing")
    assert gate.check(OPEN).kind_name(0) == "world"


def test_a_grasp_box_larger_than_the_object_is_refused(gate):
    where = touching_jaw()
    gate.set_world(listed(Thing=(ConvexShape.box((0.03, 0.04, 0.10)), where)))
    pose = Pose.from_matrix(where)
    gate.declare_grasp("right", pose, (0.05, 0.06, 0.12), duration=1.0, object="Thing")
    with pytest.raises(GateError, match=r"50 x 61 x 120 mm is larger than 50 x 60 x 120 mm, the box of Thing"):
        gate.declare_grasp("right", pose, (0.05, 0.061, 0.12), duration=1.0, object="Thing")
    with pytest.raises(GateError, match="aperture"):
        gate.declare_grasp("right", pose, (0.3, 0.05, 0.05), duration=1.0)
    with pytest.raises(GateError, match="no object 'Thong' in the world; there are: Thing"):
        gate.declare_grasp("right", pose, (0.05, 0.05, 0.05), duration=1.0, object="Thong")
    for duration in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(GateError, match="an exemption must end"):
            gate.declare_grasp("right", pose, (0.05, 0.05, 0.05), duration=duration)
    with pytest.raises(GateError, match="three finite positive full edges"):
        gate.declare_grasp("right", pose, (0.05, 0.05), duration=1.0)


def test_a_support_exempts_the_payload_alone_until_it_has_been_lifted(gate):
    """A block that stands on a slab, 0.5 mm into it, is lifted straight up."""
    grip = np.linalg.inv(poses(OPEN)[HAND]) @ between_the_jaws(OPEN)
    block, bottom = ConvexShape.box(OBJECT), between_the_jaws(OPEN)[2, 3] - 0.05
    slab_pose = np.eye(4)
    slab_pose[:3, 3] = [*between_the_jaws(OPEN)[:2, 3], bottom + 0.0005 - 0.005]
    slab = listed(Slab=(ConvexShape.box((0.3, 0.3, 0.01)), slab_pose))
    gate.set_world(slab)
    gate.attach("right", block, Pose.from_matrix(grip))
    assert gate.check(OPEN).kind_name(0) == "payload"
    gate.detach("right")
    region = Region(Pose.from_matrix(slab_pose), (0.3, 0.3, 0.012))
    gate.attach("right", block, Pose.from_matrix(grip), support=region)
    assert gate.check(OPEN).clear[0]
    lifted = OPEN.copy()
    lifted[openarm().joint_names.index("openarm_right_joint4")] += 0.8
    body = gate._session.body
    corners = (
        poses(lifted)[HAND]
        @ grip
        @ np.array([[x, y, z, 1] for x in (-0.02, 0.02) for y in (-0.02, 0.02) for z in (-0.05, 0.05)]).T
    )
    clearance = 0.005 + np.sqrt(3) * 0.01
    assert corners[2].min() - (slab_pose[2, 3] + 0.006) > clearance
    body.place(lifted)
    gate.check(lifted)
    body.place(OPEN)
    assert gate.check(OPEN).kind_name(0) == "payload"  # put down again without a declaration
    gate.declare_place(region, duration=0.5)
    assert gate.check(OPEN).clear[0]
    body.time = 0.5
    assert gate.check(OPEN).kind_name(0) == "payload"
    gate.detach("right")
    with pytest.raises(GateError, match="holds nothing"):
        gate.declare_place(region, duration=0.5, hand="right")


def test_what_a_hand_holds_already_is_moved_in_it_and_keeps_what_it_may_touch(gate):
    """A ball under the hand, told again elsewhere: only there does it hit, and its support stays."""
    post, ball = ConvexShape.sphere(0.01), ConvexShape.sphere(0.02)
    grips = [Pose((0.06 * side, 0.0, -0.3)) for side in (-1.0, 1.0)]
    spots = [poses(OPEN)[HAND] @ Pose(grip.position).matrix for grip in grips]
    gate.set_world(listed(Post=(post, spots[0]), Ball=(ball, spots[0])))
    region = Region(Pose.from_matrix(spots[0]), (0.03, 0.03, 0.03))
    gate.attach("right", ball, grips[0], support=region, object="Ball")
    assert gate.check(OPEN).clear[0], "the post stands in the ball's support"
    gate.attach("right", ball, grips[0], object="Ball")
    assert gate.check(OPEN).clear[0] and gate._session.payloads.present[0].sum() == 1
    gate.attach("right", ball, grips[1], object="Ball")
    gate.set_world(listed(Post=(post, spots[1]), Ball=(ball, spots[1])))
    verdict = gate.check(OPEN)
    assert verdict.kind_name(0) == "payload" and verdict.parties(0) == ("Ball in the right hand", "Post")
    gate.detach("right")
    assert gate.check(OPEN).clear[0], "the ball is where it was let go, and touches the post, not the robot"


def test_a_thing_taken_twice_is_given_back_once_where_it_is_let_go(gate):
    ball = ConvexShape.sphere(0.02)
    gate.set_world(listed(Ball=(ball, between_the_jaws(OPEN))))
    for z in (-0.30, -0.32, -0.34):
        gate.attach("right", ball, Pose((0.0, 0.0, z)), object="Ball")
    assert not gate._session.world._primitives.valid.any()
    gate.detach("right")
    world = gate._session.world._primitives
    assert world.valid.all()
    np.testing.assert_allclose(world.pose[0, 0, :3], (poses(OPEN)[HAND] @ [0.0, 0.0, -0.34, 1.0])[:3], atol=1e-6)


def test_two_nameless_things_are_two_and_a_refused_third_changes_neither(gate):
    """A grasp that was declared names what is attached, but not that it is the same thing again."""
    gate.set_world(listed(Ball=(ConvexShape.sphere(0.02), between_the_jaws(OPEN))))
    gate.declare_grasp("right", Pose.from_matrix(between_the_jaws(OPEN)), (0.04,) * 3, duration=5.0, object="Ball")
    for x in (-0.06, 0.06):
        gate.attach("right", ConvexShape.sphere(0.02), Pose((x, 0.0, -0.3)))
    payloads = gate._session.payloads
    assert payloads.present[0].sum() == 2
    before = [held.pose_in_link.tolist() for held, _ in payloads.in_env(0)]
    for shape in (ConvexShape.sphere(0.02), ConvexShape(np.random.default_rng(0).normal(size=(257, 3)))):
        with pytest.raises((GateError, CollisionModelError)):
            gate.attach("right", shape, Pose((0.0, 0.0, -0.4)), object="")
        assert [held.pose_in_link.tolist() for held, _ in payloads.in_env(0)] == before


def test_what_is_taken_beside_the_grasped_thing_or_after_it_is_not_that_thing(gate):
    """The ball stays an obstacle where it was let go, whatever nameless thing the hand holds with it or next."""
    ball, pin = ConvexShape.sphere(0.02), ConvexShape.sphere(0.005)
    gate.set_world(listed(Ball=(ball, between_the_jaws(OPEN))))
    gate.declare_grasp("right", Pose.from_matrix(between_the_jaws(OPEN)), (0.04,) * 3, duration=5.0, object="Ball")
    gate.attach("right", ball, Pose((0.0, 0.0, -0.3)))
    gate.attach("right", pin, Pose((0.0, 0.1, -0.3)))
    assert [held.object for held, _ in gate._session.payloads.in_env(0)] == ["Ball", ""]
    gate.detach("right")
    there = (poses(OPEN)[HAND] @ [0.0, 0.0, -0.3, 1.0])[:3]
    np.testing.assert_allclose(gate._session.world._primitives.pose[0, 0, :3], there, atol=1e-6)
    gate.attach("right", pin, Pose((0.0, 0.02, -0.3)))
    verdict = gate.check(OPEN)
    assert verdict.kind_name(0) == "payload" and verdict.parties(0) == ("the object in the right hand", "Ball")


def test_what_is_held_is_no_obstacle_of_its_name_in_the_next_world_either(gate):
    ball = ConvexShape.sphere(0.02)
    gate.set_world(listed(Ball=(ball, between_the_jaws(OPEN))))
    gate.attach("right", ball, Pose((0.0, 0.0, -0.3)), object="Ball")
    where = poses(OPEN)[HAND] @ Pose((0.0, 0.0, -0.3)).matrix
    gate.set_world(listed(Ball=(ball, where)))
    assert gate.check(OPEN).clear[0]
    gate.set_world(listed(Ball=(ball, between_the_jaws(OPEN)), Post=(ball, where)))
    assert gate.check(OPEN).parties(0) == ("Ball in the right hand", "Post")
    gate.detach("right")
    np.testing.assert_allclose(gate._session.world._primitives.pose[0, 0, :3], where[:3, 3], atol=1e-6)


def test_of_no_environment_nothing_is_declared_attached_or_let_go(gate):
    """A batch in which no environment is that far is no misuse."""
    ball = ConvexShape.sphere(0.02)
    region = Region(Pose((0.3, 0.0, 0.4)), (0.1, 0.1, 0.1))
    for held in range(2):
        gate.declare_grasp("right", Pose(), (0.03, 0.03, 0.03), 1.0, env_ids=[])
        gate.attach("right", ball, Pose(), env_ids=[])
        gate.declare_place(region, 1.0, env_ids=[])
        gate.detach("right", env_ids=[])
        assert not gate._session.checker.regions(0)["active"].any()
        assert gate._session.payloads.present[0].sum() == held
        gate.attach("right", ball, Pose((0.0, 0.0, -0.3)))


def test_a_refused_move_in_the_hand_leaves_the_thing_as_it_was(gate):
    ball, cloud = ConvexShape.sphere(0.02), ConvexShape(np.random.default_rng(0).normal(size=(257, 3)))
    gate.set_world(listed(Ball=(ball, between_the_jaws(OPEN))))
    gate.attach("right", ball, Pose((0.0, 0.0, -0.3)), object="Ball")
    with pytest.raises(CollisionModelError, match="257 vertices"):
        gate.attach("right", cloud, Pose((0.0, 0.0, -0.4)), object="Ball")
    ((held, _),) = gate._session.payloads.in_env(0)
    assert held.shape is ball and held.pose_in_link[2] == -0.3
    assert gate._session.checker.held("right").all()


@pytest.mark.parametrize("why", ["closed", "payload"])
def test_stalled_jaws_are_checked_where_they_are_and_where_they_are_sent(gate, why):
    """The hand is commanded shut and stalls at -0.6 rad: what stands where its fingers are is hit by none commanded."""
    shut = rest(right_finger_joint1=0.0)
    gate.set_world(listed(Thing=(ConvexShape.sphere(0.005), touching_jaw())))
    assert gate.check(shut).clear[0]
    if why == "closed":
        gate._session.body.is_closed[0, [g.name for g in gate.model.grippers].index("right")] = True
    else:
        gate.attach("right", ConvexShape.sphere(0.005), Pose((0.3, 0.0, 0.0)))
    verdict = gate.check(shut)
    assert verdict.kind_name(0) == "world" and verdict.parties(0)[0] == "openarm_right_ee_inner_finger"
    tip = between_the_jaws(shut)
    gate.set_world(listed(Thing=(ConvexShape.sphere(0.02), tip)))
    assert gate.check(shut).kind_name(0) == "world"  # the commanded fingers meet what the measured ones stand around
    assert gate.check(OPEN).clear[0]


def test_resets_forget_declarations_and_payloads_of_their_environments_only():
    gate = CollisionGate(openarm(), world="primitives")
    thing = simulo.Prop.box(size=(0.03, 0.03, 0.03), fixed=True, pose=Pose((3.0, 0.0, 0.0)))
    env = simulo.LearningEnv(JointTargets({"Thing": thing}), num_envs=3, gate=gate)
    env.reset(seed=0)
    gate.attach("right", ConvexShape.sphere(0.01), Pose((0.0, 0.0, -0.2)))
    gate.declare_grasp("left", Pose((3.0, 0.0, 0.0)), (0.05, 0.05, 0.05), duration=9.0, object="Thing")
    env.reset(env_ids=[1])
    session = gate._session
    assert session.checker.held("right").tolist() == [True, False, True]
    assert session.payloads.holding()[:, 1].tolist() == [True, False, True]
    active = session.checker._world.region_active[:, 0]
    assert active.tolist() == [1, 0, 1]
    gate.detach("right", env_ids=[0])
    assert session.checker.held("right").tolist() == [False, False, True]
