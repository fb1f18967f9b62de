"""Running a task with a policy: how often it succeeds, and how often the gate stopped it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from simulo.description import RobotDescription, reference_fk
from simulo.env import LearningEnv
from simulo.errors import SimuloError
from simulo.evaluation.counting import wilson95
from simulo.evaluation.policies import SCRIPTED, Policy, policy_maker
from simulo.evaluation.task_file import load_task_class
from simulo.gate import CollisionGate, Verdict
from simulo.perception import DeploySimPerception, GridSpec
from simulo.robot import Robot
from simulo.scene import Scene
from simulo.task import Task

Report = Callable[[str, int, int], None]
World = Literal["voxels", "primitives", "none"]


@dataclass(frozen=True)
class RunSettings:
    """What `simulo run` was asked for.

    task: path of its file. episodes: how many; episode k has seed `seed + k`, whatever else runs beside it. steps: stop
    after so many environment steps, 0 for no limit. robot, gripper: given to a task that asks for one. gated: None
    gates a robot that has collision geometry. on_stop: of the gate. world: None is the task's own `gate_world`, else a
    map from its cameras. cell [m]: of that map. policy: "scripted", or FILE.py:NAME (see `policy_maker`).
    """

    task: str
    envs: int = 8
    episodes: int = 64
    steps: int = 0
    seed: int = 0
    backend: str = "mujoco"
    robot: str | None = None
    gripper: str | None = None
    gated: bool | None = None
    on_stop: Literal["terminate", "hold", "report"] = "terminate"
    world: World | None = None
    cell: float = 0.01
    device: str = "cpu"
    policy: str = SCRIPTED


def run_task(settings: RunSettings, report: Report = lambda label, done, total: None) -> dict[str, Any]:
    """The JSON of `simulo run`. Raises SimuloError for a task without the policy asked for or, with voxels, a map_box.

    A task may say more of itself: `succeeded(reason)`, its preset's `gripper_name`, the `gate_world` it is made for.
    """
    started = perf_counter()
    task = make_task(settings)
    make_policy = policy_maker(settings.policy, task)
    robot = _declared_robot(make_task(settings))
    env, gate = _environment(task, robot.description, settings)
    try:
        tally = _play(env, make_policy(env), settings, report)
    finally:
        env.close()
    ended = len(tally.reasons)
    judged = ended > 0 and hasattr(task, "succeeded")
    successes = sum(task.succeeded(reason) for reason in tally.reasons) if judged else 0  # type: ignore[attr-defined]
    return {
        "task": settings.task,
        "robot": robot.description.name,
        "gripper": settings.gripper or getattr(task, "gripper_name", None),  # None: the robot's own hands
        "backend": settings.backend,
        "envs": env.num_envs,
        "episodes": ended,
        "success_rate": successes / ended if judged else None,
        "success_wilson95": wilson95(successes, ended) if judged else None,
        "policy_steps": tally.policy_steps,
        "stops": None if gate is None else tally.stops,
        "max_tracking_error_mm": 1000.0 * tally.tracking_error,
        "seconds": perf_counter() - started,
    }


def make_task(settings: RunSettings) -> Task:
    """A fresh task, with the robot and gripper asked for. Raises SimuloError where it takes none."""
    task_class = load_task_class(settings.task)
    asked = {name: value for name in ("robot", "gripper") if (value := getattr(settings, name)) is not None}
    taken = inspect.signature(task_class).parameters
    for name, value in asked.items():
        if name not in taken:
            raise SimuloError(f"{settings.task} takes no {name}; leave out --{name} {value}")
    try:
        return task_class(**asked)
    except ValueError as error:
        raise SimuloError(f"{settings.task}: {error}") from error


def _declared_robot(task: Task) -> Robot:
    """The one robot that a task declares. Raises SimuloError when there is none, or several."""
    scene = Scene()
    task.build(scene)
    if len(scene.robots) != 1:
        raise SimuloError(f"{type(task).__name__} declares {len(scene.robots)} robots; a run needs exactly one")
    return next(iter(scene.robots.values()))


def _environment(
    task: Task, description: RobotDescription, settings: RunSettings
) -> tuple[LearningEnv, CollisionGate | None]:
    """The environment and its gate, which sees through the task's own cameras where its world is voxels."""
    num_envs = min(settings.envs, settings.episodes)
    if settings.gated is False or (settings.gated is None and not description.geometry):
        return LearningEnv(task, num_envs, settings.backend, device=settings.device), None
    world: World = settings.world or getattr(task, "gate_world", "voxels")
    if world == "voxels" and not hasattr(task, "map_box"):
        raise SimuloError(f"{settings.task} has no map_box, the box to map; use --world primitives or --world none")
    gate = CollisionGate(description, settings.on_stop, world=world, device=settings.device)
    env = LearningEnv(task, num_envs, settings.backend, gate=gate, device=settings.device)
    if world == "voxels":
        low, high = task.map_box  # type: ignore[attr-defined]
        gate.set_world(DeploySimPerception(env, GridSpec.around(low, high, settings.cell)))
    return env, gate


@dataclass
class _Tally:
    """What has happened so far. reasons: why each finished episode ended. tracking_error [m]."""

    reasons: list[str]
    policy_steps: int = 0
    stops: int = 0
    tracking_error: float = 0.0


def _play(env: LearningEnv, policy: Policy, settings: RunSettings, report: Report) -> _Tally:
    """Play the episodes in batches of one per environment, so that an episode is the same in any run."""
    tally = _Tally([])
    for first in range(0, settings.episodes, env.num_envs):
        running = torch.zeros(env.num_envs, dtype=torch.bool)
        running[: settings.episodes - first] = True
        last_pair = torch.full((env.num_envs, 2), -1)
        observations, _ = env.reset(seed=settings.seed + first)
        while running.any():
            if settings.steps and tally.policy_steps >= settings.steps * env.num_envs:
                return tally
            observations, *_, info = env.step(policy(observations))
            tally.policy_steps += int(running.sum())
            if "gate" in info:
                pair = _refused_pair(info["gate"])
                tally.stops += int((running & (pair != last_pair).any(dim=1) & (pair >= 0).any(dim=1)).sum())
                last_pair = pair
            going = running.clone()
            going[list(info["stop"])] = False
            tally.tracking_error = max(tally.tracking_error, _tracking_error(env, going))
            tally.reasons += [reason for i, reason in info["stop"].items() if running[i]]
            running = going
            report("episodes", len(tally.reasons), settings.episodes)
    return tally


def _refused_pair(verdict: Verdict) -> Tensor:
    """Who stopped each environment, shape (num_envs, 2): the parties' codes, moved away from -1, which is clear."""
    kind = verdict.kind.to(torch.int64).cpu()
    links = verdict.party_a.to(torch.int64).cpu()
    other = verdict.party_b.to(torch.int64).cpu().clamp_min(-2)  # one party for all cells of the map
    pair = torch.stack([links, other], dim=1) + 2 + 1000 * kind[:, None]
    return torch.where(verdict.clear.cpu()[:, None], -1, pair)


def _tracking_error(env: LearningEnv, going: Tensor) -> float:
    """The largest distance [m] of a link's origin from where it was commanded, in the environments still going."""
    if not going.any():
        return 0.0
    robot = next(iter(env.scene.robots.values()))
    q = robot.commanded_positions()[going].cpu().numpy().astype(np.float64)
    places = reference_fk(robot.description, q)
    commanded = np.stack([places[link][:, :3, 3] for link in robot.link_names], axis=1)
    measured = robot.state.link_poses[going][..., :3].cpu().numpy()
    return float(np.linalg.norm(robot.initial_pose.apply(commanded) - measured, axis=-1).max())
