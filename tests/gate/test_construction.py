"""What a gate refuses to be made of, each by name: a model that could not be checked completely calls nothing clear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulo.collision import ConvexShape
from simulo.controllers.chain import chain_to
from simulo.description import DisabledPair, RobotDescription
from simulo.errors import CollisionModelError, GateError
from simulo.gate import CollisionGate, Region
from simulo.gate.primitives import as_convex
from simulo.pose import Pose
from tests.collision.robots import box_piece, link, pincer, sliders
from tests.gate.arm import openarm, rest

CUBE = box_piece((0.1, 0.1, 0.1))


def mimic(**changes) -> RobotDescription:
    first, *others = pincer().mimic_joints
    return replace(pincer(), mimic_joints=(replace(first, **changes), *others))


def gripper(**changes) -> RobotDescription:
    first, *others = pincer().grippers
    return replace(pincer(), grippers=(replace(first, **changes), *others))


def joint(**changes) -> RobotDescription:
    first, *others = pincer().joints
    return replace(pincer(), joints=(replace(first, **changes), *others))


def piece(**changes) -> RobotDescription:
    robot, broken = sliders(), replace(CUBE, **changes)
    return replace(robot, geometry={**robot.geometry, "box0": replace(link("box0", CUBE), pieces=(broken,))})


REFUSED = {
    "a mimic of no column": (mimic(mimics="left_elbow2"), "'left_finger2' follows 'left_elbow2', which has no command"),
    "a mimic of a mimic": (mimic(mimics="right_finger2"), "which has no command column"),
    "a mimic of itself": (mimic(mimics="left_finger2"), "which has no command column"),
    "a relation of zero": (mimic(multiplier=0.0), "multiplier 0.0"),
    "a relation that is no number": (mimic(multiplier=float("nan")), "multiplier nan"),
    "a relation that is infinite": (mimic(multiplier=float("-inf")), "multiplier -inf"),
    "an offset that is no number": (mimic(offset=float("inf")), "offset inf"),
    "a mimic of an unknown kind": (mimic(type="planar"), "unknown type 'planar'"),
    "a joint of an unknown kind": (joint(type="ball"), "unknown type 'ball'"),
    "a fixed joint among the moving": (joint(type="fixed"), "unknown type 'fixed'"),
    "an axis of two numbers": (joint(axis=(1.0, 0.0)), "unit axis"),
    "an axis that is no number": (joint(axis=(0.0, float("nan"), 1.0)), "unit axis"),
    "a joint to nowhere": (joint(child="left_thumb"), "left_thumb|left_upper"),
    "a gripper without a joint": (gripper(joint="left_thumb"), "names joint 'left_thumb', which has no column"),
    "a gripper without a hand": (gripper(hand_link="left_wrist"), "left_wrist"),
    "a gripper without jaws": (gripper(jaw_links=()), "no jaw"),
    "a follower that is no link": (gripper(follower_links=("left_thumb",)), "left_thumb"),
    "a touch link that is none": (replace(pincer(), touch_links=("left_sleeve",)), "left_sleeve"),
    "a pair without a reason": (
        replace(pincer(), disabled_pairs=(*pincer().disabled_pairs, DisabledPair("left_jaw", "right_jaw", ""))),
        "gives no reason",
    ),
    "vertices in the wrong shape": (piece(vertices=np.zeros((8, 4))), r"shape \(8, 4\)"),
    "three vertices": (piece(vertices=CUBE.vertices[:3]), "V >= 4"),
    "infinite vertices": (piece(vertices=np.where(CUBE.vertices > 0, np.inf, 0.0)), "not finite"),
    "a box without depth": (piece(box_half=(0.05, 0.05, 0.0)), "box half edges"),
    "a box of two edges": (piece(box_half=(0.05, 0.05)), "box half edges"),
    "a rest pose of another robot": (replace(pincer(), rest_pose=np.zeros(7)), "rest_pose"),
    "links without a way to them": (replace(pincer(), fixed_attachments=()), "reached by no edge"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_gate_is_not_made_of(case: str) -> None:
    robot, said = REFUSED[case]
    with pytest.raises(CollisionModelError, match=said) as caught:
        CollisionGate(robot, world="none", device="cpu")
    assert robot.name in str(caught.value), "the message names the robot"


def test_an_end_effector_that_hangs_on_a_mimic_joint_is_refused() -> None:
    robot = pincer()
    follower = robot.mimic_joints[0]
    with pytest.raises(ValueError, match=rf"{follower.child!r} hangs on the mimic joint {follower.name!r}"):
        chain_to(robot, follower.child, Pose(), "cpu")


def test_shapes_that_no_routine_is_for_are_refused() -> None:
    class Torus:
        pass

    with pytest.raises(TypeError, match="no convex form of a Torus"):
        as_convex(Torus())
    gate = CollisionGate(openarm(), world="none", device="cpu")
    cloud = np.random.default_rng(0).normal(size=(257, 3))
    with pytest.raises(CollisionModelError, match="257 vertices, at most 256 fit"):
        gate.attach("right", ConvexShape(cloud), Pose((0.0, 0.0, -0.2)))
    for broken in (np.zeros((0, 3)), np.zeros((4, 2)), np.full((4, 3), np.nan)):
        with pytest.raises(CollisionModelError, match="vertices"):
            ConvexShape(broken)
    with pytest.raises(CollisionModelError, match="ball radius"):
        ConvexShape(np.zeros((1, 3)), float("inf"))


@pytest.mark.parametrize("row", [[np.nan, 0, 0, 1, 0, 0, 0], [0, 0, 0, np.inf, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]])
def test_a_payload_or_region_at_no_pose_is_refused_and_nothing_is_held(row: list[float]) -> None:
    gate = CollisionGate(openarm(), world="none", device="cpu")
    pose = np.array(row, dtype=np.float64)
    with pytest.raises(GateError, match=r"attach\('right'\): pose holds a number that is not finite"):
        gate.attach("right", ConvexShape.sphere(0.02), pose)
    assert gate.check(rest()).clear[0] and not gate._session.payloads.present.any()
    with pytest.raises(GateError, match=r"support region: pose holds a number that is not finite"):
        gate.attach("right", ConvexShape.sphere(0.02), Pose((0.0, 0.0, -0.2)), support=Region(pose, (0.1, 0.1, 0.1)))
    assert not gate._session.checker.regions(0)["active"].any() and not gate._session.payloads.present.any()


def test_a_hand_that_the_robot_lacks_is_refused() -> None:
    gate = CollisionGate(openarm(), world="none", device="cpu")
    for call in (
        lambda: gate.attach("middle", ConvexShape.sphere(0.02), Pose()),
        lambda: gate.detach("middle"),
        lambda: gate.declare_grasp("middle", Pose(), (0.05, 0.05, 0.05), 1.0),
        lambda: gate.check(rest(), links="gripper:middle"),
    ):
        with pytest.raises(CollisionModelError, match=r"no gripper 'middle'; it has: left, right"):
            call()
    with pytest.raises(CollisionModelError, match="names no part of robot"):
        gate.check(rest(), links="openarm_tail")
