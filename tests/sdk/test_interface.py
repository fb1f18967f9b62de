"""The published example, run as it is written, and the autoreset of an environment that holds something (B40)."""

import pytest
import torch

import simulo
from tests.sdk.grasping import GraspTask


class LiftTask(simulo.Task):
    observation_dim, action_dim, episode_length_s = 24, 8, 10.0

    def build(self, scene):
        self.robot = simulo.Robot(asset="openarm", initial_pose=simulo.Pose.identity())
        scene.add(self.robot, at="/World/Robot")
        table = simulo.Prop.box(size=(0.6, 1.0, 0.25), fixed=True, pose=simulo.Pose(position=(0.45, 0.0, 0.125)))
        scene.add(table, at="/World/Table")
        self.cube = simulo.Prop.box(size=(0.04, 0.04, 0.04), mass=0.1, pose=simulo.Pose(position=(0.30, -0.20, 0.27)))
        scene.add(self.cube, at="/World/Cube")

    def on_start(self, env):
        self.arm = self.robot.find_joints("openarm_right_joint.*")
        self.gripper = simulo.ParallelGripperActuator(
            robot=self.robot,
            finger_joints="openarm_right_finger_joint.*",
            open_width=-0.7854,
            closed_width=0.0,
            position_tolerance=0.02,
            velocity_tolerance=0.1,
        )

    def apply_actions(self, actions):
        self.robot.set_joint_position_target(actions[:, :7], joint_ids=self.arm)
        self.gripper.set_commands(actions[:, -1])

    def get_observations(self):
        state = self.robot.state
        columns = [*self.arm, *self.robot.find_joints("openarm_right_finger_joint1")]
        return torch.cat(
            [state.joint_positions[:, columns], state.joint_velocities[:, columns], self.cube.state.pose, self._open()],
            1,
        )

    def _open(self):
        return self.gripper.state[:, None].float()

    def get_rewards(self):
        self.gripper.update(self.env.dt)
        return self.cube.state.pose[:, 2]

    def get_dones(self):
        return {"dropped": self.cube.state.pose[:, 2] < 0.1}, torch.zeros(self.env.num_envs, dtype=torch.bool)

    def reset_idx(self, env_ids):
        self.gripper.reset(env_ids)


def test_the_published_example():
    env = simulo.LearningEnv(LiftTask(), num_envs=16, backend="mujoco", physics_dt=0.002, physics_steps_per_action=10)
    observations, _ = env.reset(seed=0)
    assert observations.shape == (16, 24)
    actions = torch.zeros(16, 8)
    actions[::2, -1] = 1.0
    for _ in range(50):
        observations, rewards, terminated, truncated, info = env.step(actions)
        assert torch.isfinite(observations).all()
        assert rewards.shape == terminated.shape == truncated.shape == (16,)
        assert info["stop"] == {}
    assert torch.allclose(rewards, torch.tensor(0.27), atol=1e-3)
    assert env.task.gripper.state.tolist() == [1, -1] * 8


class Dropping(GraspTask):
    """Ends one environment when it is told to."""

    ends = -1

    def get_dones(self):
        dones = torch.zeros(self.env.num_envs, dtype=torch.bool)
        if self.ends >= 0:
            dones[self.ends] = True
        return {"told_to": dones}, torch.zeros(self.env.num_envs, dtype=torch.bool)


def test_b40_only_the_ended_environments_gripper_opens():
    env = simulo.LearningEnv(Dropping(), num_envs=3)
    env.reset(seed=0)
    close = torch.tensor([[1.0, 0.0]] * 3)
    for _ in range(60):
        env.step(close)
    task, idle = env.task, torch.zeros(3, 2)
    assert task.gripper.state.tolist() == [1, 1, 1]
    for step in range(4, 8):
        task.ends = 1 if step == 5 else -1
        before = task.robot.state.joint_positions
        observations, _, terminated, _, info = env.step(idle)
        assert terminated.tolist() == [False, step == 5, False]
        assert task.gripper.state.tolist() == [1, 1 if step < 5 else -1, 1]
        if step == 5:
            assert info["stop"] == {1: "told_to"}
            assert torch.allclose(info["final_obs"], before, atol=1e-3)  # the hand as it held, not as it was reset
            assert observations[1, task.robot.find_joints("openarm_right_finger_joint1")] == pytest.approx(-0.7854)
    assert task.gripper.held(task.block).tolist() == [True, False, True]
