"""The contacts that coal's yes-or-no question misses (`benchmarks/coal_misses.py`): simulo reports each of them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from simulo.collision import CollisionChecker, build_model
from simulo.description import load_description
from simulo.evaluation.plain import plain

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "coal_misses.py"
RESULT = json.loads((BENCHMARK.parent / "results" / "coal_misses.json").read_text())
ROBOTS = {row["robot"]: row for row in RESULT["robots"]}


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coal_misses", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("robot", ROBOTS)
def test_simulo_reports_every_contact_that_coal_denies(robot: str) -> None:
    kept = ROBOTS[robot]
    description = plain(load_description(robot))
    assert kept["digest"] == description.digest, "the poses are of other hulls: run the script again"
    checker = CollisionChecker(build_model(description), num_envs=len(kept["poses"]))
    for pair in {tuple(row["pair"]) for row in kept["poses"]}:
        q = torch.tensor([row["q"] for row in kept["poses"] if tuple(row["pair"]) == pair])
        verdict = checker.check(q.unsqueeze(1), env_ids=range(len(q)), links=pair, world=False)
        assert not verdict.clear.any(), pair


def test_the_kept_poses_are_contacts(benchmark: ModuleType) -> None:
    """A ball in both hulls, found again; the deepest and the shallowest of each robot, and a few between."""
    for robot, kept in ROBOTS.items():
        description = plain(load_description(robot))
        rows = sorted(kept["poses"], key=lambda row: row["ball_mm"])
        for row in [rows[0], *rows[:: len(rows) // 10], rows[-1]]:
            radius = benchmark.shared_ball(description, np.array(row["q"], np.float32), tuple(row["pair"]))
            assert radius > 0.0 and 1000.0 * radius == pytest.approx(row["ball_mm"], rel=1e-3, abs=1e-6)


def test_enough_was_asked() -> None:
    assert sum(row["contacts"] for row in ROBOTS.values()) > 400_000
    assert all(sum(row["missed"].values()) >= len(row["poses"]) > 0 for row in ROBOTS.values())


def test_a_small_part_of_it(benchmark: ModuleType) -> None:
    """The Panda's first 2000 poses: every pose that coal denies there is one of those kept."""
    found = benchmark.misses("franka_panda", 2000)
    assert found["contacts"] > 300
    kept = [row["q"] for row in ROBOTS["franka_panda"]["poses"]]
    assert all(row["q"] in kept for row in found["poses"])
