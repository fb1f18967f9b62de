"""The sentences of the published contract that are about physics (test_reference.py lists them), in MuJoCo."""

from pathlib import Path

import pytest
import torch

import simulo
from tests.actuators.contract.hand import FINGERS, HandTask, describe, models, run

__all__ = ["models"]  # a fixture


@pytest.mark.parametrize("pinched", [False, True], ids=["air", "block"])
def test_b07_jaws_that_meet_and_jaws_that_pinch_are_closed_and_only_these_hold(models: Path, pinched: bool):
    env = simulo.LearningEnv(HandTask(describe(models)), num_envs=2)
    env.reset(seed=0)
    if not pinched:
        env.task.block.park()
    assert run(env, 40, 1.0)[-1] == [1, 1]
    assert env.task.gripper.held(env.task.block).tolist() == [pinched, pinched]


def test_b07_jaws_that_rest_on_a_block_too_wide_for_them_are_neither_closed_nor_hold(models: Path):
    """Pressed down on it, both touch it and neither can travel."""
    env = simulo.LearningEnv(HandTask(describe(models), block=(0.05, 0.12, 0.06)), num_envs=1)
    env.reset(seed=0)
    env.task.robot.set_joint_positions([0.036, 0.04, 0.04])
    run(env, 25, -1.0, lift=0.005)
    assert run(env, 20, 1.0, lift=0.005)[-1] == [0]  # MuJoCo's friction creeps: 3 mm/s
    pressure, _ = env.task.robot.contact_forces("Block")
    assert (pressure[0, 2:] > 5.0).all()
    assert not env.task.gripper.held(env.task.block).any()


def test_air_an_obstacle_and_a_block_all_stop_the_fingers(models: Path):
    """Environment 0 closes on nothing, 1 on a post that no lift will move, 2 on the block; all three are CLOSED."""

    class WithPost(HandTask):
        def build(self, scene):
            super().build(scene)
            self.post = simulo.Prop.box(size=(0.02, 0.02, 0.1), fixed=True)
            scene.add(self.post, at="/World/Post")

        def reset_idx(self, env_ids):
            super().reset_idx(env_ids)
            self.block.park([0, 1])
            self.post.set_pose(simulo.Pose((0.0, 0.0, 0.24)), [1])
            self.post.set_pose(simulo.Pose((1.0, 0.0, 0.24)), [0, 2])

    env = simulo.LearningEnv(WithPost(describe(models)), num_envs=3)
    env.reset(seed=0)
    run(env, 40, 1.0)
    task = env.task
    assert [task.gripper.is_closed(i) for i in range(3)] == [True, True, True]
    assert task.gripper.held(task.block).tolist() == [False, False, True]
    height = task.block.state.pose[:, 2].clone()
    for step in range(50):
        run(env, 1, 0.0, lift=0.1 * (step + 1) / 50)
    assert (task.block.state.pose[2, 2] - height[2]).item() == pytest.approx(0.1, abs=0.01)
    assert task.gripper.state.tolist() == [1, 1, 1]  # CLOSED claims nothing, so that nothing has to be taken back


@pytest.mark.parametrize("kind", ["jaws", "cup"])
def test_one_task_lifts_with_jaws_and_with_a_cup(models: Path, kind: str):
    """One line differs, and where it stands: a cup is part of the scene, jaws are joints that the robot has."""

    class Lift(HandTask):
        def build(self, scene):
            super().build(scene)
            if kind == "cup":
                self.gripper = simulo.SurfaceGripperActuator(forward_axis="-z", max_grip_distance=0.02)
                self.robot.add_actuator(self.gripper, attach_to="hand")

        def on_start(self, env):
            if kind == "jaws":
                self.gripper = simulo.ParallelGripperActuator(robot=self.robot, finger_joints=FINGERS)

    env = simulo.LearningEnv(Lift(describe(models)), num_envs=3)
    env.reset(seed=0)
    task, told = env.task, []
    height = task.block.state.pose[:, 2].clone()
    told += run(env, 20, torch.tensor([1.0, 1.0, -1.0]))[-1:]
    for step in range(50):
        told += run(env, 1, 0.0, lift=0.1 * (step + 1) / 50)
    assert told == [[1, 1, -1]] * 51
    assert task.gripper.held(task.block).tolist() == [True, True, False]
    lifted = task.block.state.pose[:, 2] - height
    assert lifted.tolist() == pytest.approx([0.1, 0.1, 0.0], abs=0.01)
    task.gripper.reset([1])
    run(env, 10, 0.0, lift=0.1)
    assert task.gripper.state.tolist() == [1, -1, -1]
    assert task.gripper.held(task.block).tolist() == [True, False, False]


def test_the_published_task_runs(models: Path):
    description = describe(models)

    class LiftTask(simulo.Task):
        observation_dim, action_dim = 3, 2

        def build(self, scene: simulo.Scene) -> None:
            self.robot = simulo.Robot(asset=description, initial_pose=simulo.Pose.identity())
            scene.add(self.robot, at="/World/Robot")

        def on_start(self, env: simulo.LearningEnv) -> None:
            self.gripper = simulo.ParallelGripperActuator(
                robot=self.robot, finger_joints="panda_finger_joint.*", open_width=0.04, closed_width=0.0
            )

        def apply_actions(self, actions: torch.Tensor) -> None:
            self.gripper.set_commands(actions[:, -1])

        def get_observations(self):
            return self.robot.state.joint_positions

        def get_rewards(self) -> torch.Tensor:
            self.gripper.update(self.env.dt)
            return torch.tensor([float(state == simulo.GripperState.CLOSED) for state in self.gripper.get_state()])

    env = simulo.LearningEnv(LiftTask(), num_envs=3)
    env.reset(seed=0)
    actions = torch.zeros(3, 2)
    actions[:, -1] = torch.tensor([0.8, -0.8, 0.1])
    for _ in range(40):
        _, rewards, *_ = env.step(actions)
    assert rewards.tolist() == [1.0, 0.0, 0.0]


def test_it_adds_nothing_to_the_simulation(models: Path):
    class Bare(HandTask):
        def on_start(self, env): ...

        def apply_actions(self, actions): ...

        def get_observations(self):
            return self.robot.state.joint_positions

        def reset_idx(self, env_ids): ...

    with_gripper = simulo.LearningEnv(HandTask(describe(models)), num_envs=1).backend.model
    without = simulo.LearningEnv(Bare(describe(models)), num_envs=1).backend.model
    for count in ("nu", "nbody", "njnt", "neq", "ntendon", "nsite", "nsensor"):
        assert getattr(with_gripper, count) == getattr(without, count)


def test_commands_wait_for_the_flush(models: Path):
    env = simulo.LearningEnv(HandTask(describe(models)), num_envs=1)
    env.reset(seed=0)
    run(env, 1, -1.0)
    controls = env.backend.data[0].ctrl
    before = controls.copy()
    env.task.gripper.set_command(simulo.GripperCommand.CLOSE)
    assert controls.tolist() == before.tolist()
    run(env, 1, 0.0)  # the step itself commands nothing
    assert before[1:].tolist() == pytest.approx([0.04, 0.04])
    assert controls[1:].tolist() == [0.0, 0.0]


def test_the_published_script_lifts_the_block(models: Path):
    class CloseAndLift:
        simulation: simulo.Simulation
        lift = 0.0

        def build(self, scene: simulo.Scene) -> None:
            self.task = HandTask(describe(models))
            self.task.build(scene)
            self.robot = self.task.robot

        def on_start(self) -> None:
            self.gripper = simulo.ParallelGripperActuator(
                robot=self.robot, finger_joints=FINGERS, open_width=0.04, closed_width=0.0
            )
            self.gripper.set_command(simulo.GripperCommand.OPEN)

        def on_step(self) -> None:
            self.gripper.set_command(simulo.GripperCommand.CLOSE)
            self.gripper.update(self.simulation.dt)
            if self.gripper.is_closed():
                self.lift = min(self.lift + 0.2 * self.simulation.dt, 0.1)
                self.robot.set_joint_position_target([self.lift], joint_ids=[0])

    script = CloseAndLift()
    simulation = simulo.Simulation(script)
    height = float(script.task.block.state.pose[0, 2])
    simulation.run(1.5)
    assert float(script.task.block.state.pose[0, 2]) - height == pytest.approx(0.1, abs=0.01)


def test_resetting_the_scene_does_not_reach_it(models: Path):
    env = simulo.LearningEnv(HandTask(describe(models)), num_envs=1)
    env.reset(seed=0)
    run(env, 30, 1.0)
    assert env.task.gripper.is_closed()
    env.scene.reset()
    env.task.gripper.update(env.dt)
    assert env.task.gripper.is_closed()
    env.task.gripper.reset()
    assert env.task.gripper.is_open()


@pytest.mark.slow
def test_one_reset_among_2048_held_blocks_drops_one(models: Path):
    """And one without ids, as a task may write it by mistake, drops all of them."""
    env = simulo.LearningEnv(HandTask(describe(models)), num_envs=2048, physics_dt=0.004, physics_steps_per_action=5)
    env.reset(seed=0)
    task = env.task
    run(env, 20, 1.0)
    for lift in (0.005, 0.01, 0.015, 0.02):
        run(env, 2, 0.0, lift=lift)
    assert bool(task.gripper.held(task.block).all())
    assert task.gripper.state.tolist() == [1] * 2048
    task.gripper.reset(torch.tensor([1066]))
    run(env, 8, 0.0, lift=0.02)
    assert task.gripper.held(task.block).logical_not().nonzero().flatten().tolist() == [1066]
    assert (task.block_below_hand > 0.055).nonzero().flatten().tolist() == [1066]  # it fell, and no other slid
    assert task.gripper.state.tolist() == [1] * 1066 + [-1] + [1] * 981
    task.gripper.reset()
    run(env, 8, 0.0, lift=0.02)
    assert not task.gripper.held(task.block).any()
