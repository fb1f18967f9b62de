"""The suction task: what its gate lets through and what not, judged by where boxes end and by the gate's own words."""

from __future__ import annotations

import pytest
import torch

import simulo
from simulo.evaluation.task_file import load_task_module

module = load_task_module("tasks/suction_pick.py")
ENVS = 4


@pytest.fixture(scope="module")
def env():
    gate = simulo.CollisionGate("gantry", on_stop="terminate", world="primitives")
    environment = simulo.LearningEnv(module.SuctionPickTask(), num_envs=ENVS, gate=gate)
    yield environment
    environment.close()


def until(env, reached, limit=900) -> dict[int, str]:
    """Step the scripted policy until `reached()` holds in environment 0 or all have ended. Returns why each ended."""
    policy, ended = env.task.scripted_policy(), {}
    for _ in range(limit):
        *_, info = env.step(policy(env))
        for i, reason in info["stop"].items():
            ended.setdefault(i, reason)
        if len(ended) == env.num_envs or reached():
            return ended
    raise AssertionError("neither reached nor ended")


def carrying(env) -> None:
    """From the start of an episode to where a box hangs on the cup, well above the first tray."""
    env.reset(seed=0)
    task = env.task
    assert until(env, lambda: bool(task.told_held[0] >= 0) and float(task.lip[0, 2]) > module.CARRY - 0.02) == {}


def drive(env, goal, steps=120) -> str:
    """Take environment 0's lip in a straight line to a place [m], its cup on. Returns why the episode ended, or ""."""
    begin = env.task.lip[0].clone()
    for step in range(steps):
        action = torch.zeros(ENVS, 5)
        action[:, :3] = env.task.lip
        action[:, 4] = 1.0
        action[0, :3] = begin + (torch.tensor(goal) - begin) * (step + 1) / steps
        *_, info = env.step(action)
        if 0 in info["stop"]:
            return info["stop"][0]
    return ""


def test_every_box_is_moved_without_one_stop(env):
    env.reset(seed=10)
    lying = torch.stack([box.state.pose for box in env.task.boxes.values()])
    assert (lying[..., 0] < 0).all()
    assert until(env, lambda: False) == dict.fromkeys(range(ENVS), "moved")


def test_a_held_box_is_kept_from_the_tray_and_the_bare_cup_may_go_there(env):
    carrying(env)
    held = module.BOXES[env.task.gripper.gripped()[0]][0]
    wall = module.TO - (module.TRAY_INSIDE[0] + module.TRAY_WALL) / 2
    assert drive(env, (wall, 0.0, module.CARRY)) == ""
    touching = module.TABLE_TOP + module.TRAY_RIM + held[2]  # height of the lip with the box on the rim
    stop = drive(env, (wall, 0.0, touching))
    assert "payload" in stop
    assert "ToWest" in stop
    env.reset(seed=0)
    assert drive(env, (wall, 0.0, module.CARRY)) == ""
    assert drive(env, (wall, 0.0, touching)) == "", "so it was the box that was refused"


def test_the_cup_is_kept_from_the_table(env):
    env.reset(seed=0)
    stop = drive(env, (0.0, 0.0, module.TABLE_TOP))
    assert stop.startswith("gate")
    assert "cup" in stop
    assert "Table" in stop


def test_a_bond_that_is_too_weak_for_a_box_is_broken_and_the_gate_is_told(env):
    task = env.task
    task.gripper.coaxial_force_limit = 1.0  # N, half the weight of the lightest box
    try:
        env.reset(seed=0)
        policy = task.scripted_policy()
        states = []
        for _ in range(300):
            env.step(policy(env))
            states.append(task.gripper.state.clone())
        assert (task.told_held == task._held()).all()
        assert (task.box_poses[..., 0] < 0).all(), "no box ever left its tray"
        assert (torch.stack(states) == simulo.GripperState.CLOSING).any(dim=0).all()
    finally:
        task.gripper.coaxial_force_limit = 25.0


def test_the_lip_is_where_the_simulator_has_the_cup(env):
    carrying(env)
    cup = env.task.robot.state.link_poses[:, env.task.robot.link_names.index("cup"), :3]
    assert torch.allclose(env.task.lip, cup, atol=1e-5)


def test_waypoints_keep_to_the_gantrys_limits(env):
    low, high = env.task.robot.joint_limits[:4].T
    env.reset(seed=20)
    for episode in env.task.episodes:
        targets = torch.cat([episode.actions[:, :3] - env.task.lip_at_rest, episode.actions[:, 3:4]], dim=1)
        assert (targets >= low).all()
        assert (targets <= high).all()
