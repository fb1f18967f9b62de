"""The scripted loop: a script closes a real hand on a block, waits for the grasp to land, and lifts."""

from __future__ import annotations

import pytest
import torch

import simulo
from simulo.grippers import preset

DOWN = (0.0, 0.70710678, 0.70710678, 0.0)  # the grasp frame's approach axis points down
PLACE = (0.30, -0.20)


class PickUp:
    """Opens above a block; once `closes`, closes, and lifts by 10 cm as soon as the fingers have stopped."""

    simulation: simulo.Simulation
    closes = False

    def build(self, scene):
        elbow = {"openarm_right_joint1": 0.3, "openarm_right_joint3": -0.5, "openarm_right_joint4": 1.5}
        self.robot = simulo.Robot("openarm", initial_joint_positions=elbow)
        scene.add(self.robot, at="/World/Robot")
        self.block = simulo.Prop.box((0.03, 0.03, 0.10), mass=0.1, pose=simulo.Pose((*PLACE, 0.37)))
        scene.add(self.block, at="/World/Block")
        stand = simulo.Prop.box((0.06, 0.06, 0.05), fixed=True, pose=simulo.Pose((*PLACE, 0.295)))
        scene.add(stand, at="/World/Stand")

    def on_start(self):
        self.gripper = simulo.ParallelGripperActuator(robot=self.robot, **preset("openarm"))
        self.arm = simulo.DifferentialIKController(self.robot, "gripper:right", "openarm_right_joint.*", iterations=100)
        self.arm.move_to((*PLACE, 0.40), DOWN)
        start = self.robot.joint_position_targets[0, : self.robot.num_actuated].clone()
        start[self.robot.find_joints("openarm_right_finger_joint1")] = self.gripper.open_width
        self.robot.set_joint_positions(start)
        self.gripper.set_command(simulo.GripperCommand.OPEN)
        self.height, self.closed_at = 0.40, None

    def on_step(self):
        if self.closes:
            self.gripper.set_command(simulo.GripperCommand.CLOSE)
        self.gripper.update(self.simulation.dt)
        if self.gripper.is_closed():
            self.closed_at = self.closed_at or self.simulation.time
            self.height = min(self.height + 0.2 * self.simulation.dt, 0.50)
            self.arm.move_to((*PLACE, self.height), DOWN)


@pytest.fixture
def simulation():
    simulation = simulo.Simulation(PickUp())
    yield simulation
    simulation.close()


def test_on_step_sees_the_grasp_land_and_lifts(simulation):
    script = simulation.script
    simulation.run(0.1)
    assert script.gripper.get_state() == [simulo.GripperState.OPEN]
    script.closes = True
    simulation.run(1.5)
    assert 0.2 < script.closed_at < 1.0, "not before the fingers reach the block, and without waiting for the end"
    assert float(script.block.state.pose[0, 2]) == pytest.approx(0.37 + 0.10, abs=0.004)
    assert script.gripper.held(script.block).tolist() == [True]


def test_waiting_for_a_settled_hand_takes_no_longer_than_it_does(simulation):
    script = simulation.script
    script.closes = True
    waited = simulation.run_until(script.gripper.is_closed, timeout=2.0)
    assert script.gripper.is_closed()
    assert waited == pytest.approx(simulation.time)
    assert script.closed_at is not None
    assert simulation.time - script.closed_at <= simulation.dt + 1e-9
    assert simulation.run_until(script.gripper.is_closed, timeout=2.0) == 0.0, "what holds already is not waited for"


def test_waiting_for_what_never_happens_ends_in_time(simulation):
    with pytest.raises(TimeoutError, match=r"0\.05 s"):
        simulation.run_until(simulation.script.gripper.is_closed, timeout=0.05)
    assert simulation.step_count == 25


def test_failed_physics_names_its_environments(simulation):
    simulation.script.block.set_pose(torch.tensor([0.0, 0.0, 1e12, 1.0, 0.0, 0.0, 0.0]))
    with pytest.raises(RuntimeError, match=r"physics failed in environments \[0\]"):
        simulation.run(0.01)
