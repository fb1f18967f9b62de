"""A task for grasp tests: OpenArm's right hand above a block on a stand, ready to close on it and lift."""

import torch

import simulo
from simulo.controllers import DifferentialIKController
from simulo.rotations import conjugate, rotate

BLOCK = (0.03, 0.03, 0.10)
HAND_HEIGHT = 0.40
DOWN = (0.0, 0.70710678, 0.70710678, 0.0)  # the grasp frame's approach axis points down


class GraspTask(simulo.Task):
    """action: gripper command, and how far to lift [m]. block: where the block stands relative to the grasp [m]."""

    observation_dim, action_dim = 18, 2

    def __init__(self, block=BLOCK, offset=(0.0, 0.0, -0.03)):
        self.block_size = block
        self.offset = offset

    def build(self, scene):
        elbow = {"openarm_right_joint1": 0.3, "openarm_right_joint3": -0.5, "openarm_right_joint4": 1.5}
        self.robot = simulo.Robot("openarm", initial_joint_positions=elbow)
        scene.add(self.robot, at="/World/Robot")
        self.block = simulo.Prop.box(size=self.block_size, mass=0.1)
        scene.add(self.block, at="/World/Block")
        self.stand = simulo.Prop.box(size=(0.06, 0.06, 0.05), fixed=True)
        scene.add(self.stand, at="/World/Stand")

    def on_start(self, env):
        self.gripper = simulo.ParallelGripperActuator(
            robot=self.robot,
            finger_joints="openarm_right_finger_joint.*",
            open_width=-0.7854,
            closed_width=0.0,
            position_tolerance=0.02,
            velocity_tolerance=0.1,
        )
        self.ik = DifferentialIKController(self.robot, "gripper:right", "openarm_right_joint.*", iterations=100)
        residual = self.ik.move_to((0.30, -0.20, HAND_HEIGHT), DOWN)
        assert residual.position.max() < 1e-4
        self.ready = self.robot.joint_position_targets[0, :16].clone()
        self.ready[self.robot.find_joints("openarm_right_finger_joint1")] = -0.7854

    def apply_actions(self, actions):
        goal = torch.tensor([[0.30, -0.20, HAND_HEIGHT]]).repeat(self.env.num_envs, 1)
        goal[:, 2] += actions[:, 1]
        self.ik.move_to(goal, DOWN)
        self.gripper.set_commands(actions[:, 0])

    def get_observations(self):
        self.gripper.update(self.env.dt)
        return self.robot.state.joint_positions

    def reset_idx(self, env_ids):
        self.robot.set_joint_positions(self.ready, env_ids)
        self.gripper.reset(env_ids)
        x, y, z = 0.30 + self.offset[0], -0.20 + self.offset[1], HAND_HEIGHT + self.offset[2]
        self.block.set_pose(simulo.Pose((x, y, z)), env_ids)
        self.stand.set_pose(simulo.Pose((0.30, -0.20, z - 0.5 * self.block_size[2] - 0.025)), env_ids)


def run(env, steps: int, command, lift: float = 0.0) -> None:
    """Step with one gripper command, or one per environment; lift: rise by this much [m] over these steps."""
    actions = torch.zeros(env.num_envs, 2)
    actions[:, 0] = torch.as_tensor(command)
    for step in range(steps):
        actions[:, 1] = lift * (step + 1) / steps
        env.step(actions)


def block_in_hand(task: GraspTask) -> torch.Tensor:
    """Position of the block in the hand's frame [m], shape (num_envs, 3)."""
    hand = task.robot.state.link_poses[:, task.robot.link_names.index("openarm_right_ee_base_link")]
    return rotate(conjugate(hand[:, 3:]), task.block.state.pose[:, :3] - hand[:, :3])
