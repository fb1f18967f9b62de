"""What holds of every packaged task: its spaces, its episodes, and that its scripted policy does what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import simulo
from simulo.evaluation.task_file import load_task_class
from simulo.grippers import preset
from simulo.paths import data_path
from tests.sdk.models import needs_model

TASKS = [
    ("pick_place", {}),
    ("lift", {"gripper": "openarm"}),
    ("lift", {"gripper": "franka_hand"}),
    ("lift", {"gripper": "robotiq_2f85"}),
    ("lift", {"gripper": "so101"}),
    ("suction_pick", {}),
]
ENVS = 3


def name_of(case) -> str:
    return "-".join([case[0], *case[1].values()])


@pytest.fixture(scope="module", params=TASKS, ids=name_of)
def env(request):
    name, options = request.param
    if "gripper" in options:
        needs_model(preset(options["gripper"]).robot)
    environment = simulo.LearningEnv(load_task_class(f"tasks/{name}.py")(**options), num_envs=ENVS)
    environment.reset(seed=0)
    environment.options = request.param  # type: ignore[attr-defined]
    yield environment
    environment.close()


def test_every_packaged_task_is_here():
    files = {Path(file).stem for file in data_path("tasks").glob("*.py")}
    assert files == {name for name, _ in TASKS}


def test_the_scripted_policy_succeeds_in_every_environment(env):
    env.reset(seed=0)
    policy, ended = env.task.scripted_policy(), {}
    limit = round(env.task.episode_length_s / env.dt)
    for _ in range(limit):
        observations, rewards, *_, info = env.step(policy(env))
        assert torch.isfinite(observations).all()
        assert torch.isfinite(rewards).all()
        for i, reason in info["stop"].items():
            ended.setdefault(i, reason)
        if len(ended) == env.num_envs:
            break
    assert [env.task.succeeded(ended[i]) for i in range(ENVS)] == [True] * ENVS, ended


def test_spaces_are_kept(env):
    observations, _ = env.reset(seed=3)
    assert observations.shape == (ENVS, env.observation_dim)
    action = env.task.scripted_policy()(env)
    assert action.shape == (ENVS, env.action_dim)
    given = action.clone()
    observations, rewards, terminated, truncated, _ = env.step(action)
    assert torch.equal(action, given), "the caller's actions are never written to"
    assert observations.shape == (ENVS, env.observation_dim)
    assert rewards.shape == terminated.shape == truncated.shape == (ENVS,)


def test_an_episode_is_the_same_alone_and_in_a_batch(env):
    observations, _ = env.reset(seed=5)
    policy = env.task.scripted_policy()
    for _ in range(40):
        observations, *_ = env.step(policy(env))
    name, options = env.options
    alone = simulo.LearningEnv(load_task_class(f"tasks/{name}.py")(**options), num_envs=1)
    single, _ = alone.reset(seed=5 + 1)
    policy = alone.task.scripted_policy()
    for _ in range(40):
        single, *_ = alone.step(policy(alone))
    alone.close()
    assert torch.equal(single[0], observations[1])
