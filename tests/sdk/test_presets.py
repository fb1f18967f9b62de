"""Gripper presets: what they hand to the actuator, and what each does to a robot whose readings the test dictates."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch

import simulo
from simulo.errors import DescriptionError
from simulo.grippers import list_presets, preset
from tests.sdk.fakes import attached

# hand values: what each hand's maker or model says of it
FACTS = {
    "franka_hand": ("franka_panda", "finger_joint1", ("finger_joint2",), "m", 0.04, 0.0),
    "openarm": ("openarm", "openarm_right_finger_joint1", ("openarm_right_finger_joint2",), "rad", -0.7854, 0.0),
    "openarm_left": ("openarm", "openarm_left_finger_joint1", ("openarm_left_finger_joint2",), "rad", 0.7854, 0.0),
    "robotiq_2f85": (
        "ur5e_2f85", "gripper_right_driver_joint", ("gripper_left_driver_joint",), "rad", 0.0, 0.8,
    ),
    "so101": ("so101", "gripper", (), "rad", 1.7453292, -0.174533),
}  # fmt: skip
known = pytest.mark.parametrize("name", FACTS)


@known
def test_a_preset_knows_its_hand(name):
    robot, joint, followers, unit, opened, closed = FACTS[name]
    chosen = preset(name)
    assert (chosen.robot, chosen.joint, chosen.followers, chosen.unit) == (robot, joint, followers, unit)
    assert (chosen.open_width, chosen.closed_width) == (opened, closed)
    with pytest.raises(dataclasses.FrozenInstanceError):
        chosen.open_width = 1.0


def test_tolerances_fit_the_unit():
    for name in FACTS:
        chosen = preset(name)
        assert (chosen.position_tolerance, chosen.velocity_tolerance) == (
            (0.002, 0.01) if chosen.unit == "m" else (0.02, 0.1)
        )


@known
def test_it_unpacks_into_exactly_what_the_actuator_takes(name):
    chosen = preset(name)
    taken = inspect.signature(simulo.ParallelGripperActuator).parameters
    assert set(chosen.keys()) <= set(taken)
    assert "robot" not in chosen.keys()
    assert dict(**chosen) == {key: getattr(chosen, key) for key in chosen.keys()}
    with pytest.raises(KeyError, match="'unit' is no argument"):
        chosen["unit"]


@known
def test_only_the_leader_is_driven_and_every_finger_is_read(name):
    chosen = preset(name)
    robot, articulation = attached(simulo.load_description(chosen.robot), 2)
    gripper = simulo.ParallelGripperActuator(robot=robot, **chosen)
    before = robot.joint_position_targets[:, : robot.num_actuated].clone()
    leader, *followers = robot.find_joints(chosen.finger_joints)
    for command, width in ((-1.0, chosen.open_width), (1.0, chosen.closed_width)):
        gripper.set_command(command)
        targets = robot.joint_position_targets[:, : robot.num_actuated]
        assert targets[:, leader].tolist() == pytest.approx([width, width])
        others = [column for column in range(robot.num_actuated) if column != leader]
        assert torch.equal(targets[:, others], before[:, others])
    middle = 0.5 * (chosen.open_width + chosen.closed_width)
    for moving in [leader, *followers]:  # one finger that still moves keeps the hand from being closed
        articulation.positions[:] = robot.coupling.extend(torch.full((2, robot.num_actuated), middle))
        articulation.velocities.zero_()
        articulation.velocities[0, moving] = 3.0 * chosen.velocity_tolerance
        gripper.reset()
        gripper.set_command(1.0)
        for _ in range(3):
            articulation.physics_tick += 1
            gripper.update(0.02)
        assert gripper.state.tolist() == [0, 1]


def test_an_unknown_preset_is_refused_listing_what_there_is():
    with pytest.raises(DescriptionError, match=r"did you mean 'franka_hand'\? there are franka_hand, openarm"):
        preset("franka_hnd")
    assert set(FACTS) <= set(list_presets())
