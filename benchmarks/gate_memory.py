"""What memory does the gate take, does a check allocate any, and does it grow over a million steps?

"own": what the process grows by when a checker of 4096 environments and 16 rows is made, takes maps of 64^3 cells and
has checked once; the maps as they were given, and the questions, are not in it. "allocations": of one check after
construction, as counted by torch's profiler, by Warp's allocator and by tracemalloc (NumPy's and Python's). "growth":
of the process over the steps of a gate with a map and something in the hand, by the last tenth of them against the
first.

    python benchmarks/gate_memory.py [--steps 1000000] [--robot openarm] [--json FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import warp as wp
from rich.progress import track
from torch.profiler import ProfilerActivity, profile

from simulo.collision import CollisionChecker, ConvexShape, build_clearance, build_model
from simulo.description import load_description
from simulo.evaluation.batch_speed import chunks, maps
from simulo.files import write_json
from simulo.gate import CollisionGate
from simulo.pose import Pose

ENVS, ROWS, CELLS = 4096, 16, 64
DIFFERENT = 4096  # configurations that the steps go through, again and again
LOOKS = 20  # at the process, over all steps


@dataclass
class Allocations:
    """Bytes, and for Warp the number, of what a call allocated; python: what it had kept at most at one time."""

    torch: int = 0
    warp: int = 0
    python: int = 0


@contextmanager
def counted() -> Iterator[Allocations]:
    """Count what the block allocates on the CPU."""
    found = Allocations()
    allocator = type(wp.get_device("cpu").default_allocator)
    original = allocator.allocate

    def allocate(self: Any, size: int) -> Any:
        found.warp += 1
        return original(self, size)

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        with patch.object(allocator, "allocate", allocate):
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            try:
                yield found
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
    found.python = peak - before
    found.torch = sum(max(0, e.self_cpu_memory_usage) for e in profiled.events() if e.name != "[memory]")


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def own_memory(robot: str, envs: int, rows: int) -> dict[str, Any]:
    description = load_description(robot)
    model = build_model(description)
    CollisionChecker(model, 1).check(chunks(description, 1, 1))  # kernels and libraries, which are not the gate's own
    q, grid = chunks(description, envs, rows), maps(envs, CELLS, 0.01)
    before = resident()
    checker = CollisionChecker(model, envs, rows, clearance=build_clearance(model))
    checker.set_voxels(grid)
    refused = int((~checker.check(q).clear).sum())
    after = resident()
    return {
        "robot": robot,
        "envs": envs,
        "rows": rows,
        "cells": CELLS**3,
        "own_bytes": after - before,
        "refused": refused,
    }


def steps_of(robot: str) -> Callable[[int], bool]:
    """A step of a gate with a map and a ball in each hand; says whether it was clear."""
    gate = CollisionGate(robot, device="cpu", max_age=float("inf"))
    gate.set_world(maps(1, CELLS, 0.01))
    gate.set_configuration(gate.description.rest_pose)
    for hand in gate.description.grippers:
        gate.attach(hand.name, ConvexShape.sphere(0.02), Pose(hand.grasp_frame.position))
    ways = chunks(gate.description, DIFFERENT // 16, 16).reshape(DIFFERENT, -1)
    return lambda step: bool(gate.check(ways[step % DIFFERENT]).clear[0])


def growth(robot: str, steps: int) -> dict[str, Any]:
    step, clear, seen = steps_of(robot), 0, []
    objects = 0
    for first in track(range(0, steps, max(1, steps // LOOKS)), "steps"):
        for number in range(first, min(steps, first + max(1, steps // LOOKS))):
            clear += step(number)
        seen.append(resident())
        objects = objects or len(gc.get_objects())
    tenth = max(1, len(seen) // 10)
    return {
        "steps": steps,
        "clear": clear,
        "growth_bytes": int(np.median(seen[-tenth:]) - np.median(seen[:tenth])),
        "objects_more": len(gc.get_objects()) - objects,
        "resident_bytes": seen[-1],
    }


def allocations(robot: str, envs: int, rows: int) -> dict[str, int]:
    """Of the second check of a checker, beside the bytes of its answer."""
    description = load_description(robot)
    model = build_model(description)
    checker = CollisionChecker(model, envs, rows, clearance=build_clearance(model))
    checker.set_voxels(maps(envs, 16, 0.01))
    q = chunks(description, envs, rows)
    answer = checker.check(q)
    with counted() as found:
        checker.check(q)
    return {"envs": envs, "rows": rows, "answer_bytes": answer.block.nbytes, **vars(found)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--robot", default="openarm")
    options.add_argument("--steps", type=int, default=1_000_000)
    options.add_argument("--json", type=Path, default=Path("benchmarks/results/gate_memory.json"))
    given = options.parse_args()
    torch.manual_seed(0)
    found = {
        "own": own_memory(given.robot, ENVS, ROWS),
        "allocations": [allocations(given.robot, *size) for size in ((1, 1), (16, 1), (256, 4))],
        "growth": growth(given.robot, given.steps),
        "versions": {name: version(name) for name in ("simulo-sdk", "warp-lang", "torch", "numpy")},
    }
    write_json(given.json, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
