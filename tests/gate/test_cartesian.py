"""Robots that follow poses: the residual of the joint solution widens the margins, where the robot says so."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.controllers import DifferentialIKController
from simulo.gate import CollisionGate
from tests.gate.arm import meshes, openarm, poses, rest
from tests.gate.tasks import JointTargets

HAND = "openarm_right_ee_base_link"


class Cartesian(JointTargets):
    """Actions are a position of the right hand's grasp frame, relative to where it starts [m]."""

    action_dim = 3

    def __init__(self, follows_pose: bool) -> None:
        super().__init__({})
        self.follows_pose = follows_pose

    def on_start(self, env: simulo.LearningEnv) -> None:
        super().on_start(env)
        self.ik = DifferentialIKController(
            self.robot,
            "gripper:right",
            "openarm_right_joint.*",
            command_type="position",
            follows_pose=self.follows_pose,
        )
        self.home, _ = self.ik.pose()

    def apply_actions(self, actions: torch.Tensor) -> None:
        self.residual = self.ik.move_to(self.home + actions)


def environment(follows_pose: bool) -> simulo.LearningEnv:
    env = simulo.LearningEnv(Cartesian(follows_pose), num_envs=2, gate=CollisionGate(openarm(), world="none"))
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("follows_pose", [False, True])
def test_a_pose_out_of_reach_is_held_only_where_the_robot_itself_goes_for_it(follows_pose):
    """Environment 0 is sent a metre too far down; its joints end clear of everything, somewhere else."""
    env = environment(follows_pose)
    goals = torch.tensor([[0.0, 0.0, -1.0], [0.0, 0.0, 0.01]])
    *_, info = env.step(goals)
    verdict = info["gate"]
    assert float(env.task.residual.position[0]) > 0.3 and float(env.task.residual.position[1]) < 1e-4
    assert env.gate.check(env.task.robot.commanded_positions()).clear.all()
    assert verdict.clear.tolist() == [not follows_pose, True]
    if follows_pose:
        expected = float(env.task.residual.reach(env.task.ik.lever)[0])
        assert float(verdict.widened[0]) == pytest.approx(expected)
        assert f"the margin is {1000 * expected:.1f} mm" in verdict.describe(0)
    *_, info = env.step(torch.zeros(2, 3))
    assert info["gate"].clear.all(), "and what one step left open is not held against the next"


def test_the_residuals_reach_bounds_the_hands_own_triangles():
    env = environment(True)
    gripper, lever = openarm().gripper("right"), env.task.ik.lever
    frame = np.linalg.inv(poses(rest())[HAND] @ gripper.grasp_frame.matrix)
    for opening in (gripper.open_position, gripper.closed_position):
        at = poses(rest(right_finger_joint1=opening))
        for link in (HAND, *gripper.grasp_contact_links):
            points = meshes()[link].vertices @ (frame @ at[link])[:3, :3].T + (frame @ at[link])[:3, 3]
            assert np.linalg.norm(points, axis=1).max() <= lever
    assert lever < 0.3
