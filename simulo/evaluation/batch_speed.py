"""What a whole check costs, robot and world, by environments, by rows and by how much of the world is occupied.

Chunks start at configurations uniform within the joints' limits, every joint moving by up to 0.02 (rad or m) a row. The
map of each environment is a cube of 1.28 m before the robot, its cells occupied at random. Wall time of `check`, on as
many threads as it takes by itself, and the CPU time of all its threads.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch

from simulo.collision import CollisionChecker, CollisionModel, VoxelGrid, build_clearance
from simulo.description import RobotDescription
from simulo.evaluation.configuration import uniform
from simulo.evaluation.kernel_speed import spread

SIZES = ((1, 1), (16, 1), (256, 1), (4096, 1), (65536, 1), (1, 16), (16, 16), (256, 16), (4096, 4), (4096, 16))
"""(environments, rows)"""
DENSITIES = (0.0, 0.001, 0.01, 0.05)
DENSITY = 0.01
"""Of the checks of other sizes."""
FINE, COARSE = 64, 32  # cells along the cube's edge, coarse where 65,536 maps are to be held
EDGE = 1.28  # m
STEP = 0.02
ROUNDS = 5

Report = Callable[[str, int, int], None]


def bench_batches(
    description: RobotDescription, model: CollisionModel, report: Report = lambda label, done, total: None
) -> dict[str, Any]:
    """{"sizes": [...], "densities": [...]}: rows of {"envs", "horizon", "cells", "density", "refused", "seconds",
    "cpu_us_per_configuration"}; refused: share of the environments. seconds: median of the wall time of one check."""
    cases = [(envs, rows, DENSITY) for envs, rows in SIZES] + [(256, 1, density) for density in DENSITIES]
    found = []
    for done, case in enumerate(cases):
        found.append(_check(description, model, *case))
        report("whole checks", done + 1, len(cases))
    return {"sizes": found[: len(SIZES)], "densities": found[len(SIZES) :]}


def chunks(description: RobotDescription, envs: int, rows: int, seed: int = 0) -> torch.Tensor:
    """Configurations [rad or m], shape (envs, rows, dof)."""
    rng = np.random.default_rng(seed)
    dof = len(description.joints)
    start = uniform(description, rng.random((envs, dof)))
    steps = rng.uniform(-STEP, STEP, (envs, 1, dof)) * np.arange(rows)[None, :, None]
    return torch.from_numpy((start[:, None] + steps).astype(np.float32))


def maps(envs: int, cells: int, density: float, seed: int = 0, device: str = "cpu") -> VoxelGrid:
    """Cubes of cells, of which a share is occupied; sixteen different ones in turn."""
    different = torch.from_numpy(np.random.default_rng(seed).random((16, cells, cells, cells)) < density)
    corner = torch.tensor([[0.05, -0.5 * EDGE, 0.0]]).repeat(16, 1)
    some = VoxelGrid.from_cells(different, EDGE / cells, corner, torch.tensor([[1.0, 0, 0, 0]]).repeat(16, 1))
    which = torch.arange(envs) % 16
    poses = (some.position[which].to(device), some.orientation_wxyz[which].to(device))
    return VoxelGrid(some.bricks[which].to(device), some.cell, *poses, some.unknown.to(device))


def _check(
    description: RobotDescription, model: CollisionModel, envs: int, rows: int, density: float
) -> dict[str, Any]:
    cells = COARSE if envs > 4096 else FINE
    checker = CollisionChecker(model, envs, rows, clearance=build_clearance(model))
    checker.set_voxels(maps(envs, cells, density))
    q = chunks(description, envs, rows)
    verdict = checker.check(q)
    repeats = max(1, 512 // (envs * rows))
    wall, cpu = [], []
    for _ in range(ROUNDS):
        started, used = perf_counter(), process_time()
        for _ in range(repeats):
            checker.check(q)
        wall.append((perf_counter() - started) / repeats)
        cpu.append((process_time() - used) / (repeats * envs * rows))
    return {
        "envs": envs,
        "horizon": rows,
        "cells": cells**3,
        "density": density,
        "refused": float((~verdict.clear).float().mean()),
        "seconds": float(np.median(wall)),
        "cpu_us_per_configuration": spread(cpu),
    }
