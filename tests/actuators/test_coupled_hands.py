"""Hands whose fingers are coupled in the model file: driven once, by the file's own actuators, as far as alone."""

from __future__ import annotations

import mujoco
import pytest
import torch

import simulo
from simulo.description import load_description
from simulo.description.schema import Source
from simulo.description.sources import resolve_model
from simulo.grippers import preset
from tests.sdk.models import needs_model

COUPLED = ["openarm", "franka_hand", "robotiq_2f85"]


class OnlyHand(simulo.Task):
    """A robot that keeps still; action: its gripper's command."""

    observation_dim, action_dim = 1, 1

    def __init__(self, chosen, **options):
        self.chosen, self.options = chosen, options

    def build(self, scene):
        posture = (
            {"openarm_right_joint4": 1.5} if self.chosen.robot == "openarm" else {}
        )  # else it opens into its chest
        self.robot = simulo.Robot(self.chosen.robot, initial_joint_positions=posture)
        scene.add(self.robot, at="/World/Robot")

    def on_start(self, env):
        self.gripper = simulo.ParallelGripperActuator(robot=self.robot, **{**self.chosen, **self.options})

    def apply_actions(self, actions):
        self.gripper.set_commands(actions[:, 0])

    def on_post_physics_step(self):
        self.gripper.update(self.env.dt)

    def get_observations(self):
        return self.gripper.aperture[:, None]


def play(env, command: float, steps: int) -> torch.Tensor:
    """The driven joint after `steps` under one command, shape (num_envs,)."""
    for _ in range(steps):
        env.step(torch.full((env.num_envs, 1), command))
    task = env.task
    return task.robot.state.joint_positions[:, task.robot.find_joints(task.chosen.joint)[0]]


@pytest.fixture(params=COUPLED)
def env(request):
    chosen = preset(request.param)
    needs_model(chosen.robot)
    environment = simulo.LearningEnv(OnlyHand(chosen))
    environment.reset(seed=0)
    yield environment
    environment.close()


def files_of(source: Source) -> list[str]:
    """The model files that a robot is made of."""
    return [str(resolve_model(source)), *(file for part in source.attached for file in files_of(part.source))]


def test_nothing_is_added_to_what_drives_the_model(env):
    source = env.task.robot.description.source
    own = [mujoco.MjModel.from_xml_path(file) for file in files_of(source)]
    model = env.backend.model
    assert model.nu == sum(file.nu for file in own)
    assert model.neq == sum(file.neq for file in own)
    assert model.ntendon == sum(file.ntendon for file in own)


def test_every_coupled_finger_follows_and_is_read(env):
    task = env.task
    play(env, -1.0, 60)
    assert play(env, -1.0, 1).item() == pytest.approx(task.chosen.open_width, abs=task.chosen.position_tolerance)
    play(env, 1.0, 100)
    joints = task.robot.state.joint_positions[0]
    columns = task.robot.find_joints(task.chosen.finger_joints)
    assert len(columns) == 2
    assert joints[columns[0]].item() == pytest.approx(
        joints[columns[1]].item(), abs=0.5 * task.chosen.position_tolerance
    )
    assert task.gripper.get_state() == [simulo.GripperState.CLOSED]
    assert task.gripper.aperture.item() < 0.003


def test_the_2f85_closes_as_far_as_by_its_tendon_alone():
    chosen = preset("robotiq_2f85")
    needs_model(chosen.robot)
    hand = files_of(load_description(chosen.robot).source)[1]
    model = mujoco.MjModel.from_xml_path(hand)
    data = mujoco.MjData(model)
    data.ctrl[:] = model.actuator_ctrlrange[0, 1]  # the one actuator, on the tendon
    mujoco.mj_step(model, data, 1000)
    alone = data.joint("right_driver_joint").qpos[0]
    env = simulo.LearningEnv(OnlyHand(chosen))
    env.reset(seed=0)
    opened = play(env, -1.0, 50).item()
    closed = play(env, 1.0, 100).item()
    assert alone > 0.7
    assert closed - opened >= 0.95 * alone
    assert closed - opened <= 1.05 * alone


def test_widths_in_between_are_reached_linearly():
    """A hand told to close to half its stroke stops there: control is mapped from the joint's own position."""
    for name, tolerance in (("franka_hand", 0.0005), ("robotiq_2f85", 0.02)):
        chosen = preset(name)
        needs_model(chosen.robot)
        half = 0.5 * (chosen.open_width + chosen.closed_width)
        env = simulo.LearningEnv(OnlyHand(chosen, closed_width=half))
        env.reset(seed=0)
        assert play(env, 1.0, 100).item() == pytest.approx(half, abs=tolerance), name


@pytest.mark.parametrize(
    ("name", "follower", "leader"),
    [
        ("franka_hand", "finger_joint2", "finger_joint1"),
        ("robotiq_2f85", "gripper_left_driver_joint", "gripper_right_driver_joint"),
        ("robotiq_2f85", ".*_follower_joint", "gripper_right_driver_joint"),
    ],
)
def test_followers_alone_are_refused_naming_their_leader(name, follower, leader):
    needs_model(preset(name).robot)
    env = simulo.LearningEnv(OnlyHand(preset(name), finger_joints=follower))
    with pytest.raises(ValueError, match=f"only follows '{leader}'"):
        env.reset(seed=0)
        play(env, 1.0, 1)
