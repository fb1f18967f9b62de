"""A hundredth of the committed run of `benchmarks/support_tables.py`, and that its counting sees a hole."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulo.collision import build_model
from simulo.collision.kernels.shapes import TABLE

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULT = BENCHMARKS / "results" / "support_tables.json"


@pytest.fixture(scope="module")
def tables():
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("support_tables")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("robot", ["openarm", "franka_panda"])
def test_no_table_lacks_an_extreme_vertex(tables, robot):
    found = tables.check_robot(robot, 1000, seed=1)
    assert found["hulls"] > 10 and found["lost"] == 0
    assert found["worst_rounding_um"] < 0.1


def test_a_table_that_lacks_a_vertex_is_seen(tables, openarm):
    """The entries of a hull's most common vertex replaced by another one."""
    model = build_model(openarm)
    shape = int(np.flatnonzero(model.shapes.header[:, 0] == int(TABLE))[0])
    first = int(model.shapes.header[shape][2])
    later = model.shapes.header[shape + 1 :, 2]
    last = int(later[later > first].min())
    entries = model.shapes.entries.copy()
    own = entries[first:last]
    own[own == np.bincount(own).argmax()] = np.bincount(own).argmin()
    broken = replace(model, shapes=replace(model.shapes, entries=entries))
    directions = tables.draw_directions(2000, np.random.default_rng(0))
    assert tables.check_shape(broken, broken.shapes.upload("cpu"), shape, directions)["lost"] > 0
    assert tables.check_shape(model, model.shapes.upload("cpu"), shape, directions)["lost"] == 0


def test_directions_lie_on_borders_and_corners_of_cells(tables):
    d = tables.draw_directions(3000, np.random.default_rng(0)).astype(np.float64)
    on_cube = np.sort(np.abs(d / np.abs(d).max(1, keepdims=True)), axis=1)[:, :2] * 128.0
    near = np.abs(on_cube - np.round(on_cube)) < 1e-4
    assert near.any(1).mean() > 0.6 and near.all(1).mean() > 0.25


def test_the_committed_run_lost_nothing():
    run = json.loads(RESULT.read_text())
    assert run["directions_per_hull"] == 100_000 and run["hulls"] > 200
    assert run["lost"] == 0 == sum(row["lost"] for row in run["robots"])
