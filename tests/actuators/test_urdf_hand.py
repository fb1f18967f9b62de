"""A 2F-85 from a URDF: five joints of its file follow one. It holds what its pads close on, in physics."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import simulo
from simulo.actuators.fingers import sides
from simulo.description import load_description
from simulo.grippers import preset
from tests.sdk.models import needs_model

CUBE = 0.04
HEIGHT = 0.30  # m, of the hand's foot, which hangs from there pointing down
GRASP = HEIGHT - 0.143


class Hanging(simulo.Task):
    """action: gripper command. A cube stands between the open pads, beside them in odd environments."""

    observation_dim, action_dim = 1, 1

    def build(self, scene):
        down = simulo.Pose((0.0, 0.0, HEIGHT), (0.0, 1.0, 0.0, 0.0))
        self.robot = simulo.Robot("robotiq_2f85_urdf", initial_pose=down)
        scene.add(self.robot, at="/World/Hand")
        self.stand = simulo.Prop.box(
            (0.2, 0.2, 0.02), fixed=True, pose=simulo.Pose((0.0, 0.0, GRASP - CUBE / 2 - 0.01))
        )
        scene.add(self.stand, at="/World/Stand")
        self.cube = simulo.Prop.box((CUBE,) * 3, mass=0.04)
        scene.add(self.cube, at="/World/Cube")

    def on_start(self, env):
        self.gripper = simulo.ParallelGripperActuator(
            robot=self.robot, **{**preset("robotiq_2f85_urdf"), "finger_joints": ".*"}
        )

    def apply_actions(self, actions):
        self.gripper.set_commands(actions[:, 0])

    def on_post_physics_step(self):
        self.gripper.update(self.env.dt)

    def get_observations(self):
        return self.gripper.aperture[:, None]

    def reset_idx(self, env_ids):
        self.gripper.reset(env_ids)
        for env in env_ids.tolist():
            self.cube.set_pose(simulo.Pose((0.06 * (env % 2), 0.0, GRASP)), [env])


@pytest.fixture
def env():
    needs_model("robotiq_2f85_urdf")
    environment = simulo.LearningEnv(Hanging(), num_envs=2)
    environment.reset(seed=0)
    yield environment
    environment.close()


def play(env, command: float, steps: int) -> None:
    for _ in range(steps):
        env.step(torch.full((env.num_envs, 1), command))


def test_one_actuator_drives_six_fingers(env):
    robot, model = env.task.robot, env.backend.model
    assert model.nu == 1
    assert len(robot.find_joints(".*")) == 6
    env.task.cube.park()
    play(env, 1.0, 60)
    leader = robot.state.joint_positions[0, 0].item()
    assert leader > 0.95 * 0.8, "the pads meet a little before"
    for joint, value in zip(robot.joint_names[1:], robot.state.joint_positions[0, 1:].tolist(), strict=True):
        multiplier = -1.0 if "inner_finger" in joint else 1.0  # the URDF's own words
        assert value == pytest.approx(multiplier * leader, abs=0.02), joint
    assert env.task.gripper.get_state() == [simulo.GripperState.CLOSED] * 2


def test_it_holds_the_cube_between_its_pads_and_not_the_one_beside_them(env):
    task = env.task
    play(env, -1.0, 10)
    assert task.gripper.aperture[0].item() == pytest.approx(0.085, abs=0.003)
    play(env, 1.0, 60)
    assert task.gripper.get_state() == [simulo.GripperState.CLOSED] * 2
    assert task.gripper.held(task.cube).tolist() == [True, False]
    before = task.cube.state.pose[:, :3].clone()
    task.stand.park()
    play(env, 0.0, 25)  # half a second without the stand: the hand keeps still, and so does what it holds
    moved = (task.cube.state.pose[:, :3] - before).norm(dim=1)
    assert moved[0] < 0.005
    assert moved[1] > 0.1


def test_followers_alone_are_refused_naming_their_leader(env):
    task = env.task
    gripper = simulo.ParallelGripperActuator(
        robot=task.robot, **{**preset("robotiq_2f85_urdf"), "finger_joints": "right_.*_joint"}
    )
    with pytest.raises(ValueError, match="only follows 'finger_joint'"):
        gripper.set_command(1.0)


@pytest.mark.parametrize(("robot", "hand"), [("robotiq_2f85_urdf", "hand"), ("ur5e_2f85", "hand")])
def test_every_link_of_a_linkage_is_on_the_side_it_is_on(robot, hand):
    """Left and right are in the links' names."""
    description = load_description(robot)
    gripper = description.gripper(hand)
    found = sides(description, gripper)
    assert sorted(found[0] + found[1]) == sorted(gripper.grasp_contact_links)
    for side in found:
        words = {"left" if "left" in link else "right" for link in side}
        assert len(words) == 1, side
        assert len(side) == len(gripper.grasp_contact_links) // 2
    assert not np.intersect1d(*found).size
