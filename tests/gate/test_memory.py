"""A check allocates its answer and nothing else, and a gate does not grow: the run of `benchmarks/gate_memory.py`."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import warp as wp

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULT = BENCHMARKS / "results" / "gate_memory.json"


@pytest.fixture(scope="module")
def memory():
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("gate_memory")
    sys.path.remove(str(BENCHMARKS))


def test_what_is_allocated_is_counted(memory) -> None:
    with memory.counted() as found:
        kept = torch.zeros(1000), wp.zeros(7, device="cpu"), np.zeros(100_000)
    assert found.torch == 4000 and found.warp == 1 and 800_000 <= found.python < 900_000
    del kept


@pytest.mark.parametrize(("envs", "rows"), [(1, 1), (7, 1), (64, 4)])
def test_a_check_allocates_its_answer_and_nothing_else(memory, envs: int, rows: int) -> None:
    found = memory.allocations("openarm", envs, rows)
    assert found["torch"] == found["answer_bytes"]
    assert found["warp"] == 0
    assert found["python"] < 16_000, "a few objects of the call itself"


def test_ten_thousand_steps_take_no_more_memory(memory) -> None:
    found = memory.growth("openarm", 10_000)
    assert 0 < found["clear"] < found["steps"]
    assert found["growth_bytes"] < 1 << 20
    assert found["objects_more"] < 1000


def test_the_committed_run_stays_within_what_is_promised() -> None:
    run = json.loads(RESULT.read_text())
    own = run["own"]
    assert (own["envs"], own["rows"], own["cells"]) == (4096, 16, 64**3)
    assert own["own_bytes"] <= 1 << 30
    assert all(a["torch"] == a["answer_bytes"] and a["warp"] == 0 for a in run["allocations"])
    assert run["growth"]["steps"] == 1_000_000 and run["growth"]["growth_bytes"] < 1 << 20
