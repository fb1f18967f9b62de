"""The lift task behind a gate: what is told to it lets the fingers close, and nothing else touches anything."""

from __future__ import annotations

import pytest

import simulo
from simulo.evaluation.task_file import load_task_module
from simulo.grippers import preset
from tests.sdk.models import needs_model

module = load_task_module("tasks/lift.py")
FINGERS = {
    "openarm": {"openarm_right_ee_inner_finger", "openarm_right_ee_outer_finger"},
    "franka_hand": {"left_finger", "right_finger"},
    "robotiq_2f85": {
        f"gripper_{side}_{part}" for side in ("left", "right") for part in ("follower", "pad", "silicone_pad")
    },
    "so101": {"gripper_link", "moving_jaw_so101_v1_link"},  # one jaw moves, the other is the hand
}


class Silent(module.LiftTask):
    """Never tells the gate what it is about to grasp."""

    def _tell_gate(self, commands):
        pass


def play(task, envs=2, steps=320):
    """Reasons why the episodes ended, and whom the gate named in each stop."""
    needs_model(task.preset.robot)
    gate = simulo.CollisionGate(task.preset.robot, "terminate", world="primitives")
    env = simulo.LearningEnv(task, num_envs=envs, gate=gate)
    env.reset(seed=0)
    policy, ended, named = task.scripted_policy(), {}, set()
    for _ in range(steps):
        *_, info = env.step(policy(env))
        for i, reason in info["stop"].items():
            ended.setdefault(i, reason)
            if reason.startswith("gate"):
                named |= set(info["gate"].parties(i))
        if len(ended) == envs:
            break
    env.close()
    return ended, named


@pytest.mark.parametrize("gripper", FINGERS)
def test_a_declared_grasp_is_let_through_and_lifted(gripper):
    ended, _ = play(module.LiftTask(gripper))
    assert ended == {0: "lifted", 1: "lifted"}


@pytest.mark.parametrize("gripper", FINGERS)
def test_fingers_that_close_on_what_was_not_declared_are_stopped(gripper):
    ended, named = play(Silent(gripper), steps=150)
    assert all(reason.startswith("gate") for reason in ended.values())
    assert len(ended) == 2
    assert named - {"Cube"} <= FINGERS[gripper]
    assert "Cube" in named


def test_a_cube_that_is_let_go_is_an_obstacle_again_and_may_be_taken_again():
    task = module.LiftTask("franka_hand")
    needs_model(task.preset.robot)
    env = simulo.LearningEnv(task, gate=simulo.CollisionGate(task.preset.robot, "terminate", world="primitives"))
    env.reset(seed=0)
    policy = task.scripted_policy()
    actions = policy(env)
    while policy.phase[0] < policy.LIFT:
        env.step(actions)
        actions = policy(env)
    for command, closed in ((-1.0, False), (1.0, True)):  # on the table: open around the cube, then close again
        actions[:, -1] = command
        for _ in range(60):
            *_, info = env.step(actions)
            assert info["stop"] == {}
        assert task.gripper.held(task.cube).tolist() == [closed]
        assert task.told_held.tolist() == [closed]
    env.close()


def test_a_gripper_that_no_station_has_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'robotiq_2f85_urdf' is on no arm that has a station here; openarm"):
        module.LiftTask("robotiq_2f85_urdf")
    assert preset("robotiq_2f85_urdf").robot == "robotiq_2f85_urdf"
