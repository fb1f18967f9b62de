"""What does one check of a batch of OpenArm configurations cost, stage by stage? Prints JSON.

A table, a bin and clutter as 1 cm cells (about 10,000 occupied), one box in the right hand, configurations around the
rest pose that are clear. "total" is `CollisionChecker.check` with all its Python, the stages are their kernels alone;
both in microseconds of one thread's CPU time for the whole batch, so that a busy machine distorts them little.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from simulo.collision import CollisionChecker, ConvexShape, Payload, VoxelGrid, build_clearance, build_model
from simulo.description import RobotDescription, load_description

CELL = 0.01
CORNER = (-0.2, -0.8, 0.0)


def workplace(num_envs: int) -> VoxelGrid:
    """Shells of a table and a bin on it, and twenty bricks per environment, in 1.2 x 1.6 x 1.0 m."""
    cells = torch.zeros(num_envs, 120, 160, 100, dtype=torch.bool)
    cells[:, 35:95, 30:130, 20:25] = True
    cells[:, 36:94, 31:129, 20:24] = False
    cells[:, 50:70, 60:80, 25:37] = True
    cells[:, 51:69, 61:79, 26:37] = False
    rng = np.random.default_rng(0)
    for env in range(num_envs):
        for x, y in rng.integers((36, 31), (90, 125), (20, 2)):
            cells[env, x : x + 4, y : y + 4, 25:29] = True
    position = torch.tensor([CORNER]).repeat(num_envs, 1)
    return VoxelGrid.from_cells(cells, CELL, position, torch.tensor([[1.0, 0, 0, 0]]).repeat(num_envs, 1))


def clear_batch(checker: CollisionChecker, robot: RobotDescription, spread: float = 0.9) -> torch.Tensor:
    """Configurations (num_envs, dof) [rad or m] within `spread` of the rest pose that the checker calls clear."""
    generator = torch.Generator().manual_seed(0)
    rest = torch.tensor(robot.rest_pose, dtype=torch.float32)
    lower = torch.tensor([j.lower for j in robot.joints])
    upper = torch.tensor([j.upper for j in robot.joints])
    num_envs = checker.sizes.num_envs
    chosen = rest.repeat(num_envs, 1)
    waiting = torch.ones(num_envs, dtype=torch.bool)
    while waiting.any():
        drawn = (rest + spread * torch.randn(num_envs, len(rest), generator=generator)).clamp(lower, upper)
        take = waiting & checker.check(drawn).clear
        chosen[take], waiting[take] = drawn[take], False
    return chosen


def cpu_time_us(call: Callable[[], object], rounds: int = 300) -> dict[str, float]:
    """Median and 95th percentile of this thread's CPU time per call."""
    for _ in range(20):
        call()
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        call()
        times.append(1e6 * (time.thread_time() - start))
    return {"p50": round(float(np.percentile(times, 50)), 1), "p95": round(float(np.percentile(times, 95)), 1)}


def main(num_envs: int = 16) -> None:
    robot = load_description("openarm")
    model = build_model(robot)
    checker = CollisionChecker(model, num_envs, split_at=sys.maxsize, clearance=build_clearance(model))
    grid = workplace(num_envs)
    checker.set_voxels(grid)
    frame = robot.gripper("right").grasp_frame
    held = torch.tensor([[*frame.position, *frame.orientation_wxyz]]).repeat(num_envs, 1)
    checker.attach(Payload("right", ConvexShape.box((0.03, 0.03, 0.1)), held))
    q = clear_batch(checker, robot)
    result = {
        "robot": robot.name,
        "envs": num_envs,
        "pairs": len(model.pairs),
        "cell_m": CELL,
        "occupied_cells": int((torch.bitwise_and(grid.bricks[0, ..., None] >> torch.arange(64), 1)).sum()),
        "cpu_us": {"total": cpu_time_us(lambda: checker.check(q))},
    }
    checker.check(q)
    result["cpu_us"] |= {name: cpu_time_us(stage) for name, stage in checker.stages().items()}
    result["cpu_us"]["least distances"] = cpu_time_us(lambda: checker.check(q, distances=True), 20)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
