"""Fingers and jaws of every hand stop a probe; the space between open jaws does not."""

import numpy as np
import pytest
import torch

import simulo
from simulo.collision import ConvexShape, Primitives
from simulo.description import load_description, reference_fk

PROBE = 0.004


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("franka_panda", 0.03),
        ("ur5e_2f85", 0.2),
        ("robotiq_2f85_urdf", 0.2),
        ("so101", 0.5),
        ("so100", 0.5),
        ("openarm", -0.4),
    ],
)
def test_a_probe_at_a_finger_trips_and_one_between_the_jaws_does_not(name: str, opening: float) -> None:
    """A ball of 4 mm on each pad, and on five places between the pads' middles, off them by a fifth of the way."""
    description = load_description(name)
    gripper = description.grippers[-1]
    q = np.array(description.rest_pose)
    q[description.joint_names.index(gripper.joint)] = opening
    poses = reference_fk(description, q)
    first, second = ((poses[pad.link] @ [*pad.position, 1.0])[:3] for pad in gripper.pad_points)
    gate = simulo.CollisionGate(name, world="primitives", world_margin=0.001)

    def verdict(place: np.ndarray):
        pose = torch.tensor([[[*place, 1.0, 0.0, 0.0, 0.0]]], dtype=torch.float32)
        gate.set_world(Primitives.of(["Probe"], [ConvexShape.sphere(PROBE)], pose))
        return gate.check(q)

    assert np.linalg.norm(first - second) > 10 * PROBE
    for share in np.linspace(0.2, 0.8, 5):
        between = verdict(first + share * (second - first))
        assert between.clear[0], (share, between.describe(0))
    fingers = {gripper.hand_link, *gripper.grasp_contact_links}
    for pad, place in zip(gripper.pad_points, (first, second), strict=True):
        touched = verdict(place)
        assert touched.kind_name(0) == "world", pad.link
        assert any(link in touched.describe(0) for link in fingers), touched.describe(0)
