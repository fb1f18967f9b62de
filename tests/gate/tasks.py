"""A task that commands joint targets as they come, for the gate's tests in an environment."""

from __future__ import annotations

from collections.abc import Mapping

import torch

import simulo
from simulo.sensors import DepthCamera


class JointTargets(simulo.Task):
    """Actions are the OpenArm's 16 joint targets. props: by name, fixed or not. blocked: added on reset where true."""

    observation_dim, action_dim, episode_length_s = 1, 16, 1000.0

    def __init__(self, props: Mapping[str, simulo.Prop], cameras: Mapping[str, DepthCamera] | None = None) -> None:
        self.props, self.cameras = props, cameras or {}
        self.parked: set[str] = set()

    def build(self, scene: simulo.Scene) -> None:
        self.robot = simulo.Robot(asset="openarm")
        scene.add(self.robot, at="/World/Robot")
        for name, prop in self.props.items():
            scene.add(prop, at=f"/World/{name}")
        for name, camera in self.cameras.items():
            scene.add(camera, at=f"/World/{name}")

    def on_start(self, env: simulo.LearningEnv) -> None:
        self.gripper = simulo.ParallelGripperActuator(
            robot=self.robot,
            finger_joints="openarm_right_finger_joint.*",
            open_width=-0.7854,
            closed_width=0.0,
            position_tolerance=0.02,
            velocity_tolerance=0.1,
        )
        self.gripper_commands: torch.Tensor = torch.zeros(env.num_envs)

    def apply_actions(self, actions: torch.Tensor) -> None:
        self.robot.set_joint_position_target(actions)
        self.gripper.set_commands(self.gripper_commands)

    def get_observations(self) -> torch.Tensor:
        return torch.zeros(self.env.num_envs, 1)

    def get_rewards(self) -> torch.Tensor:
        self.gripper.update(self.env.dt)
        return torch.zeros(self.env.num_envs)

    def get_dones(self) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        return {}, torch.zeros(self.env.num_envs, dtype=torch.bool)

    def reset_idx(self, env_ids: torch.Tensor) -> None:
        self.gripper.reset(env_ids)
        for name in self.parked:
            self.props[name].park(env_ids)
