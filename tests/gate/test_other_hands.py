"""What is promised of the OpenArm's hands holds for hands of other makes: each finger is there, and may touch what is
held."""

from __future__ import annotations

import coal
import numpy as np
import pytest
import torch

from simulo.collision import ConvexShape
from simulo.description import RobotDescription, load_description, reference_fk
from simulo.evaluation.meshes import true_meshes
from simulo.gate import CollisionGate
from simulo.pose import Pose
from tests.gate.arm import mesh_gap, single_cell

ROBOTS = ("franka_panda", "robotiq_2f85", "ur5e_2f85")  # those that are committed lowered
CELL = 0.005


def opened(description: RobotDescription) -> np.ndarray:
    """The rest pose with every hand half open."""
    q = np.array(description.rest_pose)
    for hand in description.grippers:
        q[description.joint_names.index(hand.joint)] = 0.5 * (hand.open_position + hand.closed_position)
    return q


@pytest.mark.parametrize("robot", ROBOTS)
def test_b13_a_cube_at_either_finger_is_hit_and_the_finger_named(robot: str) -> None:
    """A cell 2 mm deep in a finger, from the side away from the other one, which is clear of it."""
    description = load_description(robot)
    q, meshes = opened(description), true_meshes(description)
    poses = reference_fk(description, q)
    gate = CollisionGate(description, device="cpu", max_age=float("inf"))
    hand = description.grippers[0]
    sides = (hand.jaw_links, hand.follower_links)
    assert all(any(link in meshes for link in side) for side in sides)
    for mine, other in (sides, sides[::-1]):
        placed = {
            link: meshes[link].copy().apply_transform(poses[link]) for side in sides for link in side if link in meshes
        }
        here, there = (
            np.concatenate([placed[link].vertices for link in side if link in placed]) for side in (mine, other)
        )
        away = here.mean(0) - there.mean(0)
        away /= np.linalg.norm(away)
        centre = here[np.argmax(here @ away)] + (0.5 * CELL - 0.002) * away
        where = np.eye(4)
        where[:3, 3] = centre
        cube = coal.Box(CELL, CELL, CELL)
        gaps = {link: mesh_gap(mesh, cube, where) for link, mesh in placed.items()}
        assert min(gaps[link] for link in mine if link in gaps) <= 0.0
        assert min(gaps[link] for link in other if link in gaps) > 0.01
        gate.set_world(single_cell(centre, CELL))
        verdict = gate.check(q, links=f"gripper:{hand.name}")
        assert verdict.kind_name(0) == "world" and verdict.parties(0)[0] in mine, verdict.describe(0)


@pytest.mark.parametrize("robot", ROBOTS)
def test_b29_what_is_held_may_touch_both_fingers_and_nothing_past_the_hand(robot: str) -> None:
    description = load_description(robot)
    q = opened(description)
    poses = reference_fk(description, q)
    hand = description.grippers[0]
    pads = [(poses[p.link] @ [*p.position, 1.0])[:3] for p in hand.pad_points]
    where = np.eye(4)
    where[:3, 3] = np.mean(pads, axis=0)
    edge = float(np.linalg.norm(pads[0] - pads[1])) + 0.01
    grip = Pose.from_matrix(np.linalg.inv(poses[hand.hand_link]) @ where)
    gate = CollisionGate(description, world="none", device="cpu")
    assert gate.check(q).clear[0]
    gate.attach(hand.name, ConvexShape.sphere(0.5 * edge), grip)
    assert gate.check(q).clear[0], "as wide as the pads are apart, and 5 mm into each"
    gate.attach(hand.name, ConvexShape.sphere(0.4), grip)
    verdict = gate.check(torch.tensor(q))
    past = set(description.geometry) - {*hand.grasp_contact_links, hand.hand_link}
    found = verdict.kind_name(0) == "payload" and verdict.parties(0)[1] in past
    assert found or (robot == "robotiq_2f85" and verdict.clear[0]), "a hand alone has nothing past it"
