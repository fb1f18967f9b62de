"""The parallel gripper's contract on a robot whose readings the test dictates."""

import itertools

import pytest
import torch

from simulo.actuators import GripperCommand, GripperState, ParallelGripperActuator
from simulo.robot import Robot
from tests.sdk.fakes import FakeArticulation, attached, two_finger_description


class Rig:
    """A gripper and hands on its readings: one `sample` is one physics step and one update."""

    def __init__(self, num_envs: int = 1, coupled: bool = False, **options):
        self.robot, self.articulation = attached(two_finger_description(coupled), num_envs)
        self.gripper = ParallelGripperActuator(self.robot, "finger.", **options)

    def sample(self, positions, speeds) -> list[int]:
        self.articulation.positions[:, 1:] = torch.as_tensor(positions, dtype=torch.float32)
        self.articulation.velocities[:, 1:] = torch.as_tensor(speeds, dtype=torch.float32)
        self.articulation.physics_tick += 1
        self.gripper.update(0.02)
        return self.gripper.state.tolist()


def test_b04_a_stall_is_two_quiet_samples_in_a_row():
    rig = Rig()
    rig.gripper.set_command(GripperCommand.CLOSE)
    states = [rig.sample(0.02, speed)[0] for speed in (0.05, 0.004, -0.03, 0.006, 0.02, 0.008, 0.009)]
    assert states == [0, 0, 0, 0, 0, 0, 1]


def test_b04_steady_chatter():
    rig = Rig()
    rig.gripper.set_command(1.0)
    assert {rig.sample(0.02, 0.012 * (-1) ** k)[0] for k in range(1000)} == {0}
    wider = Rig(velocity_tolerance=0.02)
    wider.gripper.set_command(1.0)
    assert [wider.sample(0.02, 0.012)[0] for _ in range(3)] == [0, 1, 1]


def test_every_finger_must_leave_open_and_stop_not_their_average():
    rig = Rig()
    rig.gripper.set_command(1.0)
    assert [rig.sample([0.04, 0.00], 0.0)[0] for _ in range(5)] == [0] * 5
    assert [rig.sample([0.02, 0.00], [0.0, 0.05])[0] for _ in range(5)] == [0] * 5
    assert [rig.sample([0.02, 0.00], 0.0)[0] for _ in range(2)] == [0, 1]


def test_travel_of_just_the_tolerance_is_not_enough():
    rig = Rig(open_width=0.0, closed_width=0.04, position_tolerance=0.015625)  # exact in float32
    rig.gripper.set_command(1.0)
    assert [rig.sample(0.015625, 0.0)[0] for _ in range(3)] == [0, 0, 0]
    assert [rig.sample(0.016, 0.0)[0] for _ in range(2)] == [0, 1]


def test_closed_sticks_through_wobble_and_idle_until_opened_or_reset():
    rig = Rig()
    rig.gripper.set_command(1.0)
    states = [rig.sample(0.02, 0.0)[0] for _ in range(2)]
    for k in range(100):
        rig.gripper.set_command(GripperCommand.IDLE if k % 2 else 1.0)
        states.append(rig.sample(0.02, 0.1 if k % 4 < 2 else 0.0)[0])
    flips = sum(a != b for a, b in itertools.pairwise(states))
    assert flips == 1
    rig.gripper.set_command(-1.0)
    assert rig.gripper.is_open()  # at once, with the fingers still where they were
    assert rig.sample(0.02, 0.0) == [GripperState.OPEN]
    rig.gripper.set_command(1.0)
    assert [rig.sample(0.02, 0.0)[0] for _ in range(2)] == [0, 1]
    rig.gripper.reset()
    assert rig.gripper.get_state() == [GripperState.OPEN]
    assert torch.allclose(rig.robot.joint_position_targets[:, 1:], torch.tensor(0.04))


def test_updates_at_one_physics_time_are_one_sample():
    rig = Rig()
    rig.gripper.set_command(1.0)
    rig.sample(0.02, 0.0)
    for _ in range(5):
        rig.gripper.update(0.02)
    assert rig.gripper.get_state() == [GripperState.CLOSING]
    assert rig.sample(0.02, 0.0) == [GripperState.CLOSED]


def test_readings_that_are_not_finite_never_close():
    rig = Rig()
    rig.gripper.set_command(1.0)
    assert [rig.sample(float("nan"), 0.0)[0] for _ in range(3)] == [0, 0, 0]
    assert [rig.sample(0.02, float("nan"))[0] for _ in range(3)] == [0, 0, 0]


def test_idle_never_rewrites_targets_also_when_others_are_commanded():
    rig = Rig(num_envs=3)
    rig.robot.set_joint_position_target([0.011, 0.012], joint_ids=[1, 2])
    before = rig.robot.joint_position_targets.clone()
    rig.gripper.set_command(GripperCommand.IDLE)
    assert torch.equal(rig.robot.joint_position_targets, before)
    rig.gripper.set_commands([0.0, 1.0, -1.0])
    assert torch.equal(rig.robot.joint_position_targets[0], before[0])
    assert torch.equal(rig.robot.joint_position_targets[:, 0], before[:, 0])
    assert torch.allclose(rig.robot.joint_position_targets[1:, 1:], torch.tensor([[0.0, 0.0], [0.04, 0.04]]))


def test_before_attach_commands_are_dropped_and_the_state_is_one_open():
    robot = Robot(two_finger_description(coupled=False))
    gripper = ParallelGripperActuator(robot, "finger.")
    gripper.set_command(1.0)
    gripper.set_commands([1.0])
    with pytest.raises(ValueError, match="not attached yet"):
        gripper.set_commands([1.0, 1.0])
    gripper.update(0.02)
    gripper.reset()
    assert gripper.get_state() == [GripperState.OPEN]
    assert gripper.is_open()
    assert not gripper.is_closed()
    articulation = FakeArticulation(robot, 3)
    robot.attach(articulation, control_dt=0.02)
    robot.reset()
    assert torch.allclose(robot.joint_position_targets, torch.zeros(3, 3))  # nothing was replayed
    assert gripper.get_state() == [GripperState.OPEN]  # one placeholder until the first update
    assert gripper.state.tolist() == [-1, -1, -1]
    gripper.set_command(1.0)
    assert gripper.get_state() == [GripperState.OPEN]
    gripper.update(0.02)
    assert gripper.get_state() == [GripperState.CLOSING] * 3
    assert gripper.state.dtype == torch.int8


def test_a_bad_pattern_raises_at_first_use_and_a_new_one_is_resolved_again():
    robot, _ = attached(two_finger_description(coupled=False), 2)
    gripper = ParallelGripperActuator(robot, "thumb")
    with pytest.raises(ValueError, match="finger1"):
        gripper.set_command(1.0)
    with pytest.raises(ValueError, match="finger1"):
        gripper.update(0.02)
    gripper.finger_joints = "finger2"
    gripper.set_command(-1.0)
    assert torch.allclose(robot.joint_position_targets, torch.tensor([0.0, 0.0, 0.04]))
    gripper.finger_joints = "finger1"
    gripper.open_width = 0.03
    gripper.set_command(-1.0)
    assert torch.allclose(robot.joint_position_targets, torch.tensor([0.0, 0.03, 0.04]))


def test_coupled_fingers_are_driven_through_their_leader_and_all_are_read():
    rig = Rig(coupled=True)
    rig.gripper.set_command(1.0)
    assert [rig.sample([0.02, 0.02], [0.0, 0.5])[0] for _ in range(3)] == [0, 0, 0]
    assert [rig.sample([0.02, 0.02], 0.0)[0] for _ in range(2)] == [0, 1]
    robot, _ = attached(two_finger_description(coupled=True), 1)
    with pytest.raises(ValueError, match="'finger2', which only follows 'finger1'"):
        ParallelGripperActuator(robot, "finger2").set_command(1.0)
    ParallelGripperActuator(robot, "finger1").set_command(-1.0)
    assert torch.allclose(robot.joint_position_targets, torch.tensor([0.0, 0.04, 0.04]))


def test_widths_per_finger():
    rig = Rig(open_width={"finger1": 0.04, "finger2": 0.03}, closed_width={"finger1": 0.01, "finger2": 0.0})
    rig.gripper.set_command(-1.0)
    assert torch.allclose(rig.robot.joint_position_targets[:, 1:], torch.tensor([0.04, 0.03]))
    rig.gripper.set_command(1.0)
    assert torch.allclose(rig.robot.joint_position_targets[:, 1:], torch.tensor([0.01, 0.0]))
    with pytest.raises(ValueError, match="finger2"):
        Rig(open_width={"finger1": 0.04}).gripper.set_command(1.0)
    with pytest.raises(ValueError, match="thumb"):
        Rig(open_width={"finger1": 0.04, "finger2": 0.04, "thumb": 0.04}).gripper.set_command(1.0)
    with pytest.raises(ValueError, match=r"its leader makes it 0\.04"):
        Rig(coupled=True, open_width={"finger1": 0.04, "finger2": 0.02}).gripper.set_command(1.0)
    Rig(coupled=True, open_width={"finger1": 0.04, "finger2": 0.04}).gripper.set_command(1.0)


def test_a_width_that_the_finger_cannot_reach_is_refused_rather_than_clamped():
    with pytest.raises(ValueError, match=r"'finger1' at -0.04, outside \[0, 0.04\]"):
        Rig(open_width=-0.04).gripper.set_command(-1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"open_width": 0.001, "closed_width": 0.0},
        {"open_width": float("nan")},
        {"closed_width": float("inf")},
        {"open_width": {"finger1": 0.04, "finger2": 0.001}},
        {"open_width": {}},
        {"open_threshold": 0.3},
        {"open_threshold": float("nan")},
        {"position_tolerance": -0.001},
        {"velocity_tolerance": float("nan")},
        {"settle_updates": 0},
        {"settle_updates": 1.5},
        {"settle_updates": float("nan")},
        {"settle_updates": True},
    ],
)
def test_the_constructor_guards(options):
    with pytest.raises(ValueError):
        Rig(**options)
    with pytest.raises(ValueError, match="finger_joints"):
        ParallelGripperActuator(Robot(two_finger_description(coupled=False)), "")


def test_a_disabled_gripper_drops_commands_and_still_reports():
    rig = Rig()
    rig.gripper.set_command(1.0)
    rig.sample(0.02, 0.0)
    rig.gripper.enabled = False
    rig.gripper.set_command(-1.0)
    assert torch.allclose(rig.robot.joint_position_targets[:, 1:], torch.tensor(0.0))
    assert rig.sample(0.02, 0.0) == [GripperState.CLOSED]


def test_settle_updates_serves_slow_loops():
    rig = Rig(settle_updates=1)
    rig.gripper.set_command(1.0)
    assert rig.sample(0.02, 0.0) == [GripperState.CLOSED]


def test_is_open_and_is_closed_name_bad_instances():
    rig = Rig(num_envs=2)
    rig.gripper.set_commands([1.0, -1.0])
    rig.sample(0.02, 0.0)
    rig.sample(0.02, 0.0)
    assert (rig.gripper.is_closed(0), rig.gripper.is_open(1)) == (True, True)
    for instance in (2, -1):
        with pytest.raises(IndexError, match=r"\[0, 2\)"):
            rig.gripper.is_open(instance)
        with pytest.raises(IndexError, match=r"\[0, 2\)"):
            rig.gripper.is_closed(instance)


def test_b05_one_reset_among_2048_opens_one_gripper():
    rig = Rig(num_envs=2048)
    rig.gripper.set_command(1.0)
    rig.sample(0.02, 0.0)
    rig.sample(0.02, 0.0)
    before = rig.robot.joint_position_targets.clone()
    rig.gripper.reset(torch.tensor([77]))
    rig.gripper.reset([])
    assert rig.gripper.state.tolist() == [1] * 77 + [-1] + [1] * 1970
    changed = (rig.robot.joint_position_targets != before).any(dim=1).nonzero().flatten().tolist()
    assert changed == [77]


def test_a_refused_command_is_as_if_it_was_never_given():
    rig = Rig(num_envs=2)
    everyone = torch.ones(2, dtype=torch.bool)
    first = torch.tensor([True, False])
    rig.gripper.set_command(1.0)
    rig.robot.accept_commands(everyone)
    rig.sample(0.02, 0.0)
    rig.sample(0.02, 0.0)
    rig.gripper.set_command(-1.0)
    rig.robot.restore_commands(first)
    rig.robot.accept_commands(~first)
    assert rig.gripper.state.tolist() == [1, -1]  # CLOSED again, although it closed after the command was accepted
    assert torch.allclose(rig.robot.joint_position_targets[:, 1], torch.tensor([0.0, 0.04]))
    rig.gripper.set_command(0.0)
    rig.robot.restore_commands(everyone)
    assert rig.gripper.state.tolist() == [1, -1]


def test_a_first_command_that_is_refused_leaves_the_gripper_open():
    rig = Rig()
    rig.articulation.positions[:, 1:] = 0.035
    rig.gripper.set_command(1.0)
    rig.robot.restore_commands(torch.tensor([True]))
    assert rig.sample(0.035, 0.0) == [GripperState.OPEN]
    assert torch.allclose(rig.robot.joint_position_targets[:, 1:], torch.tensor(0.035))
