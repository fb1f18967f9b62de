"""The published contract's sentences about construction, attributes, the time before attach, and each method.

test_reference.py lists them.
"""

import inspect

import pytest
import torch

import simulo
from simulo.actuators import GripperCommand, GripperState, ParallelGripperActuator
from simulo.robot import Robot
from tests.actuators.contract.rigs import Jaws
from tests.sdk.fakes import attached, two_finger_description

CLOSE, OPEN, IDLE = GripperCommand.CLOSE, GripperCommand.OPEN, GripperCommand.IDLE


# --- what it is made of -----------------------------------------------------------------------------------------------


def test_the_constructor_is_the_published_one():
    """In its order; what is ours comes behind."""
    empty = inspect.Parameter.empty
    parameters = [(name, p.default) for name, p in inspect.signature(ParallelGripperActuator).parameters.items()]
    assert parameters[:10] == [
        ("robot", empty),
        ("finger_joints", empty),
        ("open_width", 0.04),
        ("closed_width", 0.0),
        ("open_threshold", -0.3),
        ("close_threshold", 0.3),
        ("position_tolerance", 0.002),
        ("velocity_tolerance", 0.01),
        ("path", None),
        ("enabled", True),
    ]
    assert all(default is not empty for _, default in parameters[10:])


def test_arguments_are_attributes():
    robot, _ = attached(two_finger_description(coupled=False), 1)
    given = {
        "robot": robot,
        "finger_joints": "finger.",
        "open_width": 0.03,
        "closed_width": 0.01,
        "open_threshold": -0.2,
        "close_threshold": 0.4,
        "position_tolerance": 0.003,
        "velocity_tolerance": 0.02,
        "path": "/World/Gripper",
        "enabled": False,
    }
    made = ParallelGripperActuator(*given.values())
    assert {name: getattr(made, name) for name in given} == given


def test_it_is_refused_by_a_scene_and_by_a_robot():
    robot = Robot(two_finger_description(coupled=False))
    gripper = ParallelGripperActuator(robot, "finger.")
    with pytest.raises(TypeError, match="on_start"):
        simulo.Scene().add(gripper, at="/World/Gripper")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_start"):
        robot.add_actuator(gripper, attach_to="hand")  # type: ignore[arg-type]


def test_another_writer_has_the_last_word_until_the_next_command():
    made = Jaws()
    made.gripper.set_command(CLOSE)
    made.robot.set_joint_position_target([0.01, 0.01], joint_ids=[1, 2])
    made.gripper.set_command(IDLE)
    made.sample(0.02, 0.0)
    assert made.targets == [[0.01, 0.01]]
    made.gripper.set_command(CLOSE)
    assert made.targets == [[0.0, 0.0]]


# --- assigned later ---------------------------------------------------------------------------------------------------


def test_assigned_values_count_from_the_next_use():
    made = Jaws()
    made.gripper.open_width, made.gripper.closed_width = 0.035, 0.005
    made.gripper.set_command(OPEN)
    assert made.targets == [[0.035, 0.035]]
    made.gripper.set_command(CLOSE)
    assert made.targets == [[0.005, 0.005]]
    made.gripper.open_threshold, made.gripper.close_threshold = -0.8, 0.8
    made.gripper.set_command(-0.7)
    assert made.targets == [[0.005, 0.005]]
    assert [made.sample(0.02, 0.015)[0] for _ in range(2)] == [0, 0]
    made.gripper.velocity_tolerance = 0.02
    assert made.sample(0.02, 0.015) == [0]
    made.gripper.position_tolerance = 0.016  # the fingers have come 15 mm
    assert made.sample(0.02, 0.015) == [0]
    made.gripper.position_tolerance = 0.002
    assert [made.sample(0.02, 0.015)[0] for _ in range(2)] == [0, 1]


def test_assigned_values_are_not_checked_again():
    made = Jaws()
    made.gripper.closed_width = made.gripper.open_width
    made.gripper.open_threshold, made.gripper.close_threshold = 0.5, -0.5
    made.gripper.velocity_tolerance = -1.0
    made.gripper.set_command(IDLE)
    assert made.sample(0.02, 0.0)[0] in (0, -1)


def test_what_raises_because_of_an_assigned_pattern_changes_nothing():
    made = Jaws(2)
    made.gripper.set_commands([CLOSE, OPEN])
    for _ in range(2):
        made.sample(0.02, 0.0)
    targets = made.targets
    made.gripper.finger_joints = "thumb"
    for call in (
        lambda: made.gripper.set_commands([OPEN, CLOSE]),
        made.gripper.reset,
        lambda: made.gripper.update(0.02),
    ):
        with pytest.raises(ValueError, match=r"'thumb' matches no joint.*'finger1', 'finger2'"):
            call()
    assert made.gripper.state.tolist() == [1, -1]
    made.gripper.finger_joints = "finger."
    assert made.sample(0.02, 0.0) == [1, -1]
    assert made.targets == targets


# --- before attach and before the first update ------------------------------------------------------------------------


def test_before_attach_the_robots_state_raises():
    robot = Robot(two_finger_description(coupled=False))
    gripper = ParallelGripperActuator(robot, "finger.")
    assert gripper.get_state() == [GripperState.OPEN]
    with pytest.raises(RuntimeError, match="not attached"):
        _ = robot.state


def test_one_open_stands_for_all_until_the_first_update():
    made = Jaws(4)
    assert made.gripper.get_state() == [GripperState.OPEN]
    made.gripper.set_command(CLOSE)
    assert made.gripper.get_state() == [GripperState.OPEN]
    made.gripper.update(0.02)
    assert made.gripper.get_state() == [GripperState.CLOSING] * 4


# --- methods ----------------------------------------------------------------------------------------------------------


def test_is_open_and_is_closed_ask_one_environment():
    made = Jaws(2)
    made.gripper.set_commands([OPEN, CLOSE])
    for _ in range(2):
        made.sample(0.02, 0.0)
    assert (made.gripper.is_open(), made.gripper.is_closed()) == (True, False)
    assert (made.gripper.is_open(instance=1), made.gripper.is_closed(instance=1)) == (False, True)


@pytest.mark.parametrize("dt", [0.0, 1e-9, 1000.0, -1.0])
def test_the_time_step_changes_nothing(dt):
    made = Jaws()
    made.gripper.set_command(CLOSE)
    assert [made.sample(0.02, speed, dt)[0] for speed in (0.05, 0.0, 0.0)] == [0, 0, 1]


def test_reset_opens_the_fingers_and_forgets():
    made = Jaws()
    made.gripper.set_command(CLOSE)
    made.sample(0.02, 0.0)
    made.gripper.reset()  # one settled sample behind it, which must not count for the next close
    assert made.targets == [[0.04, 0.04]]
    assert made.gripper.get_state() == [GripperState.OPEN]
    made.gripper.set_command(CLOSE)
    assert [made.sample(0.02, 0.0)[0] for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("ids", [torch.tensor([1, 3]), [1, 3], None])
def test_reset_takes_a_tensor_a_list_or_none(ids):
    made = Jaws(4)
    made.gripper.set_command(CLOSE)
    for _ in range(2):
        made.sample(0.02, 0.0)
    made.gripper.reset(env_ids=ids)
    opened = [0, 1, 2, 3] if ids is None else [1, 3]
    assert [i for i, state in enumerate(made.gripper.get_state()) if state is GripperState.OPEN] == opened
    assert [i for i, target in enumerate(made.targets) if target == [0.04, 0.04]] == opened


def test_a_reset_that_a_gate_refuses_is_taken_back_with_its_targets():
    """It opens fingers as a command does: told as open, a hand whose targets are closed again would be a lie."""
    made = Jaws(2)
    everyone = torch.ones(2, dtype=torch.bool)
    made.gripper.set_command(CLOSE)
    made.robot.accept_commands(everyone)
    for _ in range(2):
        made.sample(0.02, 0.0)
    made.gripper.reset([0, 1])
    made.robot.restore_commands(torch.tensor([True, False]))
    made.robot.accept_commands(torch.tensor([False, True]))
    assert made.gripper.state.tolist() == [1, -1]
    assert made.targets == [[0.0, 0.0], [0.04, 0.04]]


def test_a_new_episode_has_no_grasp_to_go_back_to():
    made = Jaws(2)
    made.gripper.set_command(CLOSE)
    made.robot.accept_commands(torch.ones(2, dtype=torch.bool))
    for _ in range(2):
        made.sample(0.02, 0.0)
    made.robot.reset([0])
    made.gripper.reset([0])
    made.robot.restore_commands(torch.tensor([True, True]))
    assert made.gripper.state.tolist() == [-1, 1]
