"""The gripper on real fingers in MuJoCo: what closes, what is held, and what a reset of one environment does."""

import pytest
import torch

import simulo
from tests.sdk.grasping import GraspTask, block_in_hand, run


@pytest.fixture
def holding() -> simulo.LearningEnv:
    env = simulo.LearningEnv(GraspTask(), num_envs=4)
    env.reset(seed=0)
    run(env, 60, 1.0)
    return env


def stays_in_hand(env: simulo.LearningEnv) -> torch.Tensor:
    """Lift by 10 cm in half a second: the block's pose in the hand tells who holds it, whatever the contacts say."""
    before = block_in_hand(env.task)
    run(env, 25, 0.0, lift=0.10)
    return (block_in_hand(env.task) - before).norm(dim=1) < 0.005


def test_a_pinch_is_closed_and_held(holding):
    task = holding.task
    assert task.gripper.state.tolist() == [1, 1, 1, 1]
    assert torch.allclose(task.gripper.aperture, torch.tensor(0.03), atol=0.002)
    held = task.gripper.held(task.block)
    assert held.all()
    assert torch.equal(stays_in_hand(holding), held)


def test_b05_resetting_one_gripper_drops_one_block(holding):
    task = holding.task
    run(holding, 25, 0.0, lift=0.05)
    targets = task.robot.joint_position_targets.clone()
    task.gripper.reset(env_ids=[2])
    task.gripper.reset([])
    assert task.gripper.state.tolist() == [1, 1, -1, 1]
    assert torch.equal(task.robot.joint_position_targets[[0, 1, 3]], targets[[0, 1, 3]])
    lifted = task.block.state.pose[:, 2].clone()
    for _ in range(50):
        holding.scene.flush()
        holding.backend.step(holding.physics_steps_per_action)
    assert task.gripper.held(task.block).tolist() == [True, True, False, True]
    fallen = lifted - task.block.state.pose[:, 2]
    assert fallen[[0, 1, 3]].abs().max() < 0.002
    assert fallen[2] > 0.03
    assert torch.equal(task.robot.joint_position_targets[[0, 1, 3]], targets[[0, 1, 3]])


def test_nothing_is_held_after_a_reset_until_physics_has_run(holding):
    holding.reset(env_ids=[1])
    held = holding.task.gripper.held(holding.task.block)
    assert held.tolist() == [True, False, True, True]


def test_closing_on_air_is_closed_but_not_held():
    env = simulo.LearningEnv(GraspTask(), num_envs=1)
    env.reset(seed=0)
    env.task.block.park()
    run(env, 90, 1.0)
    assert env.task.gripper.is_closed()
    assert env.task.gripper.aperture < 0.003
    assert not env.task.gripper.held(env.task.block).any()


def test_a_block_beside_the_jaws_is_not_held():
    env = simulo.LearningEnv(GraspTask(block=(0.03, 0.03, 0.06), offset=(0.0, 0.0, -0.06)), num_envs=1)
    env.reset(seed=0)
    run(env, 90, 1.0)
    assert env.task.gripper.is_closed()
    held = env.task.gripper.held(env.task.block)
    assert not held.any()
    assert torch.equal(stays_in_hand(env), held)


def test_both_hands_mirror_each_other():
    """The left hand's joints run the other way; polarity and state do not."""

    class TwoHands(GraspTask):
        def on_start(self, env):
            super().on_start(env)
            self.left = simulo.ParallelGripperActuator(
                self.robot,
                "openarm_left_finger_joint.*",
                open_width=0.7854,
                closed_width=0.0,
                position_tolerance=0.02,
                velocity_tolerance=0.1,
            )

        def get_observations(self):
            self.left.update(self.env.dt)
            return super().get_observations()

    env = simulo.LearningEnv(TwoHands(), num_envs=1)
    env.reset(seed=0)
    env.task.block.park()
    env.task.left.set_command(simulo.GripperCommand.OPEN)
    run(env, 60, -1.0)
    assert torch.allclose(env.task.left.aperture, env.task.gripper.aperture, atol=0.01)
    assert env.task.left.aperture > 0.1
    env.task.left.set_command(simulo.GripperCommand.CLOSE)
    run(env, 90, 1.0)
    assert env.task.left.is_closed()
    assert env.task.left.aperture < 0.003
