"""The committed run of `benchmarks/whole_configurations.py`, and a small part of it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from simulo.description import load_description

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "whole_configurations.py"
RESULT = BENCHMARK.parent / "results" / "whole_configurations.json"


def test_the_committed_run_missed_nothing_on_the_robots_as_they_are():
    run = json.loads(RESULT.read_text())
    rows = run["robots"]
    assert len(rows) >= 4 and sum(row["poses"] for row in rows) >= 1_000_000
    assert [row["missed"] for row in rows] == [0] * len(rows) == [row["unjudged"] for row in rows]
    assert min(row["contacts"] for row in rows) > 1000, "robots that never touch themselves show nothing"
    assert {row["robot"]: row["digest"] for row in rows} == {
        row["robot"]: load_description(row["robot"]).digest for row in rows
    }


def test_a_small_part_of_it(tmp_path: Path):
    spec = importlib.util.spec_from_file_location("whole_configurations", BENCHMARK)
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    found = benchmark.measure(["so101"], 2500, 1, tmp_path / "run.json")
    assert found["poses"] == 2500 and found["contacts"] > 500 and found["missed"] == 0
