"""A gantry's cup above a block on a stand: what the surface gripper's tests hold, pull and drop."""

import numpy as np
import torch

import simulo
from simulo.description import load_description, reference_fk
from simulo.rotations import conjugate, rotate

STAND_TOP = 0.30
BLOCK = (0.06, 0.06, 0.05)
HEIGHT = float(reference_fk(load_description("gantry"), np.zeros((1, 5)))["cup"][0, 2, 3])  # of the lip at rest, m


class Cell(simulo.Task):
    """action: height of the lip above the block's top as it stood [m], and the gripper's command.

    gap: the same when an episode starts. aside: how far the block stands from under the cup [m].
    """

    observation_dim, action_dim = 1, 2

    def __init__(self, gap=0.005, aside=0.0, mass=0.5, shape=None, fixed=False, **options):
        self.gap, self.aside, self.options = gap, aside, options
        body = {"fixed": True} if fixed else {"mass": mass}
        self.block = simulo.Prop.box(BLOCK, **body) if shape is None else simulo.Prop(shape, **body)

    def build(self, scene):
        self.robot = simulo.Robot("gantry")
        scene.add(self.robot, at="/World/Robot")
        self.gripper = simulo.SurfaceGripperActuator(**{"forward_axis": "-z", **self.options})
        scene.add(self.gripper, at="/World/Robot/cup/Suction")
        scene.add(self.block, at="/World/Block")
        self.stand = simulo.Prop.box((0.2, 0.2, 0.02), fixed=True, pose=simulo.Pose((0.025, 0.0, STAND_TOP - 0.01)))
        scene.add(self.stand, at="/World/Stand")

    def joints(self, heights):
        """Joint targets, shape (N, 5), that put the lip at heights above where the block's top stood."""
        out = torch.zeros(len(heights), 5)
        out[:, 2] = STAND_TOP + BLOCK[2] + heights - HEIGHT
        return out

    def apply_actions(self, actions):
        self.robot.set_joint_position_target(self.joints(actions[:, 0]))
        self.gripper.set_commands(actions[:, 1])

    def on_post_physics_step(self):
        self.gripper.update(self.env.dt)

    def get_observations(self):
        return self.block.state.pose[:, 2:3]

    def reset_idx(self, env_ids):
        self.block.set_pose(simulo.Pose((0.025 + self.aside, 0.0, STAND_TOP + BLOCK[2] / 2)), env_ids)
        self.robot.set_joint_positions(self.joints(torch.full((len(env_ids),), self.gap)), env_ids)

    @property
    def block_in_cup(self):
        """Position of the block in the cup's frame [m], shape (num_envs, 3)."""
        cup = self.robot.state.link_poses[:, self.robot.link_names.index("cup")]
        return rotate(conjugate(cup[:, 3:]), self.block.state.pose[:, :3] - cup[:, :3])


def started(num_envs=1, gate=None, validate_actions=True, **options) -> simulo.LearningEnv:
    env = simulo.LearningEnv(Cell(**options), num_envs=num_envs, gate=gate, validate_actions=validate_actions)
    env.reset(seed=0)
    return env


def run(env, steps, command, begin, end=None) -> list[list[int]]:
    """Step with one command, or one per environment, while the lip goes from one height to another [m].

    Returns the states after each step.
    """
    end, states = begin if end is None else end, []
    for step in range(steps):
        actions = torch.zeros(env.num_envs, 2)
        actions[:, 0] = begin + (end - begin) * (step + 1) / steps
        actions[:, 1] = torch.as_tensor(command)
        env.step(actions)
        states.append(env.task.gripper.state.tolist())
    return states


def holding(num_envs=1, gap=0.005, **options) -> simulo.LearningEnv:
    """An environment whose cup has the block, which still stands."""
    env = started(num_envs, gap=gap, **options)
    run(env, 2, 1.0, gap)
    assert env.task.gripper.state.tolist() == [1] * num_envs
    return env
