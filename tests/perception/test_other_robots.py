"""Case B25 on hands of other makes: the robot is not in its own map, balls beside and between its fingers are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.description import load_description, reference_fk
from simulo.perception import DeploySimPerception, GridSpec
from simulo.sensors import DepthCamera, look_at
from tests.perception.test_deploy_sim import CELL, ball, occupied

RADIUS = 0.012


class Still(simulo.Task):
    """A robot, balls, and two cameras that look at a point. Actions are joint targets."""

    def __init__(self, robot: str, balls: list[np.ndarray], middle: np.ndarray) -> None:
        self.asset, self.balls, self.middle = robot, balls, middle
        self.observation_dim = self.action_dim = len(load_description(robot).joints)

    def build(self, scene: simulo.Scene) -> None:
        self.robot = simulo.Robot(asset=self.asset)
        scene.add(self.robot, at="/World/Robot")
        for k, centre in enumerate(self.balls):
            scene.add(ball(centre, RADIUS), at=f"/World/Ball{k}")
        for k, away in enumerate(([0.6, 0.1, 0.15], [0.1, -0.6, 0.05])):
            scene.add(DepthCamera(look_at(tuple(self.middle + away), self.middle)), at=f"/World/Camera{k}")

    def apply_actions(self, actions: torch.Tensor) -> None:
        self.robot.set_joint_position_target(actions)

    def get_observations(self) -> torch.Tensor:
        return self.robot.state.joint_positions[:, : self.observation_dim]


@pytest.mark.parametrize("robot", ["franka_panda", "ur5e_2f85"])
def test_b25_balls_beside_and_between_its_fingers_are_in_the_map_and_nothing_else(robot: str) -> None:
    description = load_description(robot)
    hand, q = description.grippers[0], np.array(description.rest_pose)
    q[description.joint_names.index(hand.joint)] = hand.open_position
    poses = reference_fk(description, q)
    between = np.mean([(poses[p.link] @ [*p.position, 1.0])[:3] for p in hand.pad_points], axis=0)
    ahead = between - poses[hand.hand_link][:3, 3]
    balls = [between + 0.07 * ahead / np.linalg.norm(ahead), between]
    env = simulo.LearningEnv(Still(robot, balls, between), num_envs=1)
    target = torch.tensor(q, dtype=torch.float32)
    env.task.robot._initial[:] = target
    perception = DeploySimPerception(env, GridSpec.around(tuple(between - 0.3), tuple(between + 0.3), CELL))
    env.reset(seed=0)
    perception.look()
    for _ in range(15):
        env.step(target[None])
        perception.refresh()
    cells = occupied(perception)
    off = np.abs([np.linalg.norm(cells - centre, axis=1) - RADIUS for centre in balls])
    assert (off.min(axis=0) <= np.sqrt(3) / 2 * CELL + 1e-4).all(), "a cell of no ball: the robot's own"
    assert ((off < CELL).sum(axis=1) >= 3).all()
    env.close()
