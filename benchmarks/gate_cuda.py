"""What does the gate cost on a CUDA device, and does it say there what it says on the CPU? Needs a GPU.

Times: 4096 environments, one row, self check; and 16 rows, self and world (maps of 64^3 cells, 1 % of them occupied).
"kernels" is the recorded graph alone, "check" the whole call with its copies; both by CUDA events over many calls in a
row. Agreement: verdicts that differ, and how many of these by more than 10 um of the refused pair's distance below its
margin; exact least distances of the same pair that differ by more than 10 um.

    python benchmarks/gate_cuda.py [--robot openarm] [--device cuda:0] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from simulo.collision import CollisionChecker, CollisionModel, Kind, RawVerdict, build_clearance, build_model
from simulo.description import RobotDescription, load_description
from simulo.evaluation.batch_speed import chunks, maps
from simulo.files import write_json

ENVS, ROWS, CELLS, DENSITY = 4096, 16, 64, 0.01
WARM_UP, CALLS = 20, 200
WORLD_MARGIN = 0.005  # m
BAND = 10e-6  # m: as near as that to the margin, two devices may differ


def us_per_call(call: Callable[[], object]) -> float:
    """Time on the device, of calls that are queued one behind the other."""
    for _ in range(WARM_UP):
        call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(CALLS):
        call()
    end.record()
    torch.cuda.synchronize()
    return 1000.0 * start.elapsed_time(end) / CALLS


def times(description: RobotDescription, model: CollisionModel, device: str) -> dict[str, float]:
    """[us] of ENVS environments."""
    clearance = build_clearance(model)
    alone = CollisionChecker(model, ENVS, device=device, clearance=clearance)
    q = chunks(description, ENVS, 1).to(device)
    alone.check(q, world=False)
    found = {
        "self, 1 row, kernels": us_per_call(alone.self_check()[0]),
        "self, 1 row, check": us_per_call(lambda: alone.check(q, world=False)),
    }
    whole = CollisionChecker(model, ENVS, ROWS, device=device, clearance=clearance)
    whole.set_voxels(maps(ENVS, CELLS, DENSITY, device=device))
    rows = chunks(description, ENVS, ROWS).to(device)
    whole.check(rows)
    stages = whole.stages()
    found |= {f"self and world, {ROWS} rows, {name}": us_per_call(stage) for name, stage in stages.items()}
    found[f"self and world, {ROWS} rows, check"] = us_per_call(lambda: whole.check(rows))
    return found


def agreement(
    description: RobotDescription, model: CollisionModel, device: str, envs: int = ENVS, rows: int = ROWS
) -> dict[str, int]:
    """Verdicts and least distances of a device beside the CPU's, each row by itself."""
    q = chunks(description, envs, rows)
    checkers = [
        CollisionChecker(model, envs, world_margin=WORLD_MARGIN, device=where, clearance=build_clearance(model))
        for where in ("cpu", device)
    ]
    for checker in checkers:
        checker.set_voxels(maps(envs, CELLS, DENSITY, device=str(checker.device)))
    found = {
        "verdicts": 0,
        "refused": 0,
        "differ": 0,
        "differ_beyond_10_um": 0,
        "distances": 0,
        "distances_beyond_10_um": 0,
    }
    for row in range(rows):
        asked = q[:, row].contiguous()
        here, there = (RawVerdict.of(c.check(asked.to(c.device)).block.cpu()) for c in checkers)
        differ = here.kind != there.kind
        # Of a verdict that only one of them refuses, the refusal says how far below its margin that pair is.
        kind = torch.where(here.clear, there.kind, here.kind)
        below = torch.where(kind == Kind.SELF, 0.0, WORLD_MARGIN) - torch.where(
            here.clear, there.distance, here.distance
        )
        least, theirs = (RawVerdict.of(c.check(asked.to(c.device), distances=True).block.cpu()) for c in checkers)
        both = ~least.bound & ~theirs.bound & (least.block[2:4] == theirs.block[2:4]).all(0)
        apart = (least.distance - theirs.distance).abs() > BAND
        for name, flags in (
            ("verdicts", torch.ones_like(differ)), ("refused", ~here.clear), ("differ", differ),
            ("differ_beyond_10_um", differ & ~(below.abs() <= BAND)), ("distances", both),
            ("distances_beyond_10_um", both & apart),
        ):  # fmt: skip
            found[name] += int(flags.sum())
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--robot", default="openarm")
    options.add_argument("--device", default="cuda:0")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit(
            "no CUDA device: torch sees none here (a GPU, its driver and a CUDA build of torch are needed)"
        )
    description = load_description(given.robot)
    model = build_model(description)
    found: dict[str, Any] = {
        "robot": given.robot,
        "device": torch.cuda.get_device_name(given.device),
        "us": times(description, model, given.device),
        "agreement": agreement(description, model, given.device),
        "versions": {name: version(name) for name in ("simulo-sdk", "warp-lang", "torch")},
    }
    print(json.dumps(found, indent=2))
    if given.json:
        write_json(given.json, found)


if __name__ == "__main__":
    main()
