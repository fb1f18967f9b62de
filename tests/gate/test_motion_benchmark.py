"""A twentieth of the committed run of `benchmarks/motion_check.py`: what that counted must hold here too."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tests.gate.arm import openarm

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("motion_check-*.json"))


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("motion_check", ROOT / "benchmarks" / "motion_check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BATCH = 500
    return module


@pytest.mark.parametrize(("step", "passing"), [(0.05, 0), (2.0, 5)])
def test_a_thousand_ways_miss_nothing_and_refuse_hardly_more(benchmark, step, passing):
    """Short ways as a policy steps them, and long ones, of which some pass through something."""
    counts = benchmark.count(openarm(), 1000, step, seed=1)
    assert counts["ways"] == 1000 and counts["missed"] == 0
    assert counts["extra"] <= 2 and counts["met"] >= passing
    assert counts["refused"] == counts["met"] + counts["extra"]


def test_the_committed_results_hold_what_is_promised():
    assert RESULTS
    for file in RESULTS:
        found = json.loads(file.read_text())
        assert found["missed"] == 0 and found["samples"] == 129 and found["ways"] >= 10_000
        assert found["extra_percent"] <= 0.2
