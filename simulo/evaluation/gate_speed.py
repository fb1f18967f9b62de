"""What the gate costs: its share of a policy step on a real task, and where its time goes.

The share is measured on the task as it runs, with the map that its cameras make; the time that perception itself takes
is left out. The stages are then timed one by one on the same motion and the last map, with a box in every hand, so that
each has work; of a robot without a task on configurations drawn within its limits and on cells drawn before it. Times
are wall clock on this machine: compare the ratios of one run, not two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simulo.collision import (
    CollisionChecker,
    CollisionModel,
    ConvexShape,
    Payload,
    VoxelGrid,
    build_clearance,
    build_model,
)
from simulo.description import RobotDescription, load_description
from simulo.device import resolve_device
from simulo.env import LearningEnv
from simulo.evaluation.batch_speed import DENSITY, FINE, bench_batches, maps
from simulo.evaluation.configuration import uniform
from simulo.evaluation.kernel_speed import BATCHES, bench_kernel
from simulo.evaluation.plain import plain
from simulo.evaluation.task_file import load_task_class
from simulo.evaluation.world_speed import bench_world
from simulo.gate import CollisionGate
from simulo.perception import DeploySimPerception, GridSpec
from simulo.props import Box

TASKS = {"openarm": "tasks/pick_place.py"}
"""The task whose motion a robot is measured on."""

WARM_UP = 20
HELD = Box((0.03, 0.03, 0.10))

Report = Callable[[str, int, int], None]


class _Stopwatch:
    """Stands in for a callable and keeps how long each call took [s], less what another one took inside it."""

    def __init__(self, call: Callable[..., Any], inside: _Stopwatch | None = None):
        self._call, self._inside = call, inside
        self.seconds: list[float] = []

    def __call__(self, *arguments: Any) -> Any:
        calls_before = len(self._inside.seconds) if self._inside else 0
        start = perf_counter()
        result = self._call(*arguments)
        elapsed = perf_counter() - start
        self.seconds.append(elapsed - sum(self._inside.seconds[calls_before:] if self._inside else ()))
        return result


@dataclass(frozen=True)
class Motion:
    """What was run. commanded [rad or m]: shape (steps, num_envs, num_joints). gate (perception left out),
    physics [s]: shape (steps,)."""

    commanded: Tensor
    gate: np.ndarray
    physics: np.ndarray


def bench_gate(
    robot: str = "openarm",
    envs: int = 16,
    horizon: int = 1,
    device: str = "cpu",
    steps: int = 200,
    batches: Sequence[int] = BATCHES,
    report: Report = lambda label, done, total: None,
    worlds: bool = True,
    as_published: bool = False,
) -> dict[str, Any]:
    """The JSON of `simulo bench gate`. Raises SimuloError for a robot that there is not.

    `share_of_step` is the gate's median time over the median time of physics in the same policy steps, and null for a
    robot that there is no task for. `total` is a whole check, Python included; the stages are their kernels alone. What
    `batches`, `peers` and `ratio` are, `kernel_speed.bench_kernel` says: they are for one core.
    `worlds`: see `world_speed.bench_world`; `checks`: see `batch_speed.bench_batches`; both empty without `worlds`.
    as_published: of the robot as `plain.plain` has it, and so with no task.
    """
    description = load_description(robot)
    if as_published:
        description = plain(description)
    model = build_model(description)
    if robot in TASKS and not as_published:
        on_task = _on_task(robot, envs, horizon, device, steps, report)
    else:
        on_task = _off_task(description, model, envs, horizon, device, steps, report)
    kernel = bench_kernel(description, model, batches, report)
    more: dict[str, Any] = {"worlds": [], "checks": {"sizes": [], "densities": []}}
    if worlds:
        more = {"worlds": bench_world(description, model, report), "checks": bench_batches(description, model, report)}
    return {"robot": robot, "envs": envs, "horizon": horizon, "device": device, **on_task, **kernel, **more}


def _on_task(robot: str, envs: int, horizon: int, device: str, steps: int, report: Report) -> dict[str, Any]:
    """The share of a policy step, and the stages, on a task as it runs."""
    gate = CollisionGate(robot, on_stop="report", horizon=horizon, device=device)
    task = load_task_class(TASKS[robot])()
    env = LearningEnv(task, num_envs=envs, gate=gate, device=device)
    perception = DeploySimPerception(env, GridSpec.around(*task.map_box))  # type: ignore[attr-defined]
    gate.set_world(perception)
    env.reset(seed=0)
    motion = _run(env, gate, perception, steps, report)
    checker = _checker(gate.description, gate.model, perception.mapper.voxel_grid(), envs, horizon, gate.device)
    stages = _stages(gate.check, checker, motion.commanded, report)
    env.close()
    return {
        "device": str(env.device),
        "share_of_step": float(np.median(motion.gate) / np.median(motion.physics)),
        "gate_us": _percentiles(motion.gate),
        "physics_us": _percentiles(motion.physics),
        "stages": stages,
    }


def _run(env: LearningEnv, gate: CollisionGate, perception: DeploySimPerception, steps: int, report: Report) -> Motion:
    """Play the task's scripted policy, with stopwatches on the gate, on the perception within it, and on physics."""
    policy = env.task.scripted_policy()  # type: ignore[attr-defined]
    robot = next(iter(env.scene.robots.values()))
    seeing, physics = _Stopwatch(perception.refresh), _Stopwatch(env.backend.step)
    judging = _Stopwatch(gate.filter, inside=seeing)
    gate.filter, perception.refresh, env.backend.step = judging, seeing, physics  # type: ignore[method-assign]
    commanded = []
    for step in range(WARM_UP + steps):
        env.step(policy(env))
        commanded.append(robot.commanded_positions().clone())
        report("task with gate", step + 1, WARM_UP + steps)
    del gate.filter, perception.refresh, env.backend.step
    gate_times, physics_times = (np.array(watch.seconds[WARM_UP:]) for watch in (judging, physics))
    return Motion(torch.stack(commanded[WARM_UP:]), gate_times, physics_times)


def _off_task(
    description: RobotDescription,
    model: CollisionModel,
    envs: int,
    horizon: int,
    device: str,
    steps: int,
    report: Report,
) -> dict[str, Any]:
    """The stages on drawn configurations and cells; no share of a policy step."""
    checker = _checker(
        description, model, maps(envs, FINE, DENSITY, device=device), envs, horizon, resolve_device(device)
    )
    drawn = uniform(description, np.random.default_rng(0).random((steps * envs, model.num_joints)))
    commanded = torch.from_numpy(drawn).to(checker.device).view(steps, envs, model.num_joints)
    stages = _stages(checker.check, checker, commanded, report)
    return {"share_of_step": None, "gate_us": None, "physics_us": None, "stages": stages}


def _checker(
    description: RobotDescription,
    model: CollisionModel,
    grid: VoxelGrid,
    envs: int,
    horizon: int,
    device: torch.device,
) -> CollisionChecker:
    """One whose every stage has work."""
    checker = CollisionChecker(model, envs, horizon, device=device, clearance=build_clearance(model))
    checker.set_voxels(grid)
    for hand in description.grippers:
        pose = torch.tensor([*hand.grasp_frame.position, *hand.grasp_frame.orientation_wxyz], device=device)
        checker.attach(Payload(hand.name, ConvexShape.box(HELD.size), pose.expand(envs, 7)))
    return checker


def _stages(
    check: Callable[[Tensor], object], checker: CollisionChecker, commanded: Tensor, report: Report
) -> dict[str, Any]:
    """`check` as "total", and each of the checker's stages alone, per configuration. commanded [rad or m], shape
    (steps, num_envs, num_joints)."""
    steps, envs, _dof = commanded.shape
    horizon = checker.sizes.horizon
    watches = {name: _Stopwatch(_waited_for(launch, checker.device)) for name, launch in checker.stages().items()}
    whole = _Stopwatch(_waited_for(check, checker.device))
    for step in range(horizon, steps + 1):
        rows = commanded[step - horizon : step].transpose(0, 1).contiguous()
        whole(rows)
        checker.check(rows)
        for watch in watches.values():
            watch()
        report("stages", step, steps)
    per_configuration = 1.0 / (envs * horizon)
    return {
        name: {"us_per_configuration": _percentiles(per_configuration * np.array(watch.seconds))}
        for name, watch in {**watches, "total": whole}.items()
    }


def _waited_for(call: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """The call and, on a GPU, the work it started."""
    if device.type == "cpu":
        return call

    def waited(*arguments: Any) -> None:
        call(*arguments)
        torch.cuda.synchronize(device)

    return waited


def _percentiles(seconds: np.ndarray) -> dict[str, float]:
    return {"p50": float(1e6 * np.percentile(seconds, 50)), "p95": float(1e6 * np.percentile(seconds, 95))}
