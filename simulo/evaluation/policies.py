"""Policies by name: the script of the task itself, or a function in a Python file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from torch import Tensor

from simulo.env import LearningEnv
from simulo.errors import SimuloError
from simulo.evaluation.task_file import load_task_module
from simulo.task import Task

SCRIPTED = "scripted"
Policy = Callable[[Tensor], Tensor]
"""Observations, shape (num_envs, observation_dim), to actions, shape (num_envs, action_dim)."""


def policy_maker(asked: str, task: Task) -> Callable[[LearningEnv], Policy]:
    """What makes the policy that was asked for, once there is an environment for it to play in.

    asked: "scripted", the task's own, or FILE.py:NAME, a function that takes the environment and returns the policy
    (NAME is `make_policy` when left out). Raises SimuloError where there is none.
    """
    if asked == SCRIPTED:
        if not hasattr(task, "scripted_policy"):
            raise SimuloError(
                f"{type(task).__name__} has no scripted_policy() to run it with; give one by --policy FILE.py:NAME"
            )
        return _scripted
    path, _, name = asked.partition(":")
    name = name or "make_policy"
    file = Path(path).expanduser()
    if file.suffix != ".py" or not file.is_file():
        raise SimuloError(f"--policy {asked}: there is no Python file {path!r}; give {SCRIPTED!r} or FILE.py:NAME")
    make = getattr(load_task_module(file), name, None)
    if not callable(make):
        raise SimuloError(f"--policy {asked}: {path} defines no function {name!r} to make a policy with")

    def made(env: LearningEnv) -> Policy:
        policy = make(env)
        if not callable(policy):
            raise SimuloError(
                f"--policy {asked}: {name}(env) returned {type(policy).__name__}, not a function of the observations"
            )
        return cast(Policy, policy)

    return made


def _scripted(env: LearningEnv) -> Policy:
    play = env.task.scripted_policy()  # type: ignore[attr-defined]
    return lambda observations: play(env)
