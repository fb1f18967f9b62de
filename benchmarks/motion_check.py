"""What does it cost to certify the way between two configurations, and what does it get wrong? Prints JSON.

Ways from a configuration drawn uniformly within the joint limits to one where every joint has moved by up to 0.05 (rad,
or m of a slide), as far as both ends are clear of self-collision. "missed": ways called clear of which one of 129
configurations spaced along them is refused. "extra": refused ways of which none is. Times are microseconds of one
thread's CPU time per way, medians of several rounds: of the check of the ends alone, and of what the ways add.

    python benchmarks/motion_check.py [--robot openarm] [--ways 100000] [--step 0.05] [--seed 0] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from simulo.collision import CollisionChecker, CollisionModel, build_clearance, build_model, build_motion_bounds
from simulo.description import RobotDescription, load_description
from simulo.files import write_json

SAMPLES = 129
BATCH = 4096


def clear_ways(
    robot: RobotDescription, model: CollisionModel, step: float, seed: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of (from, to), shape (BATCH, dof) each, clear at both ends; endless."""
    rng = np.random.default_rng(seed)
    reach = np.array([(max(j.lower, -np.pi), min(j.upper, np.pi)) for j in robot.joints]).T
    checker = CollisionChecker(model, BATCH)
    kept = torch.zeros(2, 0, len(robot.joints))
    while True:
        start = rng.uniform(*reach, (BATCH, len(robot.joints)))
        end = np.clip(start + rng.uniform(-step, step, start.shape), *reach)
        ends = torch.tensor(np.stack([start, end]), dtype=torch.float32)
        clear = checker.check(ends[0]).clear & checker.check(ends[1]).clear
        kept = torch.cat([kept, ends[:, clear]], dim=1)
        if kept.shape[1] >= BATCH:
            yield kept[0, :BATCH].clone(), kept[1, :BATCH].clone()
            kept = kept[:, BATCH:]


def met_on_the_way(checker: CollisionChecker, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """Where one of SAMPLES configurations is refused, bool, shape (ways,)."""
    met = torch.zeros(len(start), dtype=torch.bool)
    for share in torch.linspace(0.0, 1.0, SAMPLES):
        met |= ~checker.check(start + share * (end - start)).clear
    return met


def count(robot: RobotDescription, ways: int, step: float, seed: int) -> dict[str, int]:
    """Ways, refused, extra, missed, and how many pass through something."""
    model = build_model(robot)
    moving = CollisionChecker(model, BATCH, motion=build_motion_bounds(model), clearance=build_clearance(model))
    plain = CollisionChecker(model, BATCH)  # the truth does without maps
    out = {"ways": 0, "refused": 0, "met": 0, "extra": 0, "missed": 0}
    for start, end in clear_ways(robot, model, step, seed):
        clear, met = moving.check(end, start=start).clear, met_on_the_way(plain, start, end)
        taken = min(BATCH, ways - out["ways"])
        clear, met = clear[:taken], met[:taken]
        found = (torch.ones_like(clear), ~clear, met, ~clear & ~met, clear & met)
        out = {name: out[name] + int(flags.sum()) for name, flags in zip(out, found, strict=True)}
        if out["ways"] >= ways:
            return out
    raise AssertionError("clear_ways is endless")


def cpu_us(call: Callable[[], object], rounds: int = 9) -> float:
    """Median of this thread's CPU time per way."""
    times = []
    for _ in range(rounds):
        begun = time.thread_time()
        call()
        times.append(time.thread_time() - begun)
    return 1e6 * float(np.median(times)) / BATCH


def cost(robot: RobotDescription, step: float, seed: int) -> dict[str, float]:
    model = build_model(robot)
    start, end = next(clear_ways(robot, model, step, seed))
    maps = build_clearance(model)
    plain = CollisionChecker(model, BATCH, split_at=sys.maxsize, clearance=maps)
    moving = CollisionChecker(model, BATCH, split_at=sys.maxsize, motion=build_motion_bounds(model), clearance=maps)
    without = cpu_us(lambda: plain.check(end))
    with_motion = cpu_us(lambda: moving.check(end, start=start))
    return {"ends": round(without, 2), "ways": round(with_motion - without, 2), "batch": BATCH}


def measure(name: str, ways: int, step: float, seed: int) -> dict[str, Any]:
    robot = load_description(name)
    counts = count(robot, ways, step, seed)
    return {
        "robot": name,
        "step": step,
        "seed": seed,
        "samples": SAMPLES,
        **counts,
        "extra_percent": round(100.0 * counts["extra"] / counts["ways"], 4),
        "cpu_us": cost(robot, step, seed),
        "versions": {package: version(package) for package in ("simulo-sdk", "warp-lang", "torch")},
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--robot", default="openarm")
    options.add_argument("--ways", type=int, default=100_000)
    options.add_argument("--step", type=float, default=0.05)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--json")
    given = options.parse_args()
    found = measure(given.robot, given.ways, given.step, given.seed)
    print(json.dumps(found, indent=2))
    if given.json:
        write_json(given.json, found)


if __name__ == "__main__":
    main()
