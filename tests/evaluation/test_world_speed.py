"""The world check beside coal's octree: the same cells, the same answers, and figures for all of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from simulo.collision import build_model
from simulo.description import load_description
from simulo.evaluation import batch_speed, world_speed
from simulo.evaluation.gate_speed import bench_gate
from simulo.evaluation.plain import plain
from simulo.evaluation.world_speed import bench_world, furnished


@pytest.fixture(scope="module")
def panda():
    description = load_description("franka_panda")
    return description, build_model(description)


@pytest.mark.parametrize(("cell", "count"), [(0.05, 1500), (0.02, 14_000)])
def test_furniture_is_hollow_and_leaves_the_robot_room(cell: float, count: int) -> None:
    cells = furnished(cell, count)
    assert cells.occupied.sum() == count == len(cells.centres)
    assert np.linalg.norm(cells.centres[:, :2], axis=1).min() >= world_speed.FREE
    assert np.abs(cells.centres - (0.0, 0.0, 1.0)).max() < 1.0
    inside = cells.occupied.copy()
    for axis in range(3):
        inside &= np.roll(cells.occupied, 1, axis) & np.roll(cells.occupied, -1, axis)
    assert inside.sum() < 0.05 * count
    grid = cells.grid()
    centre = grid.cell_centre(0, tuple(int(i) for i in np.argwhere(cells.occupied)[7]))
    np.testing.assert_allclose(centre, cells.centres[7], atol=1e-6)


def test_a_hundredth_of_the_verdicts_are_coals(panda, monkeypatch) -> None:
    pytest.importorskip("pinocchio")
    for name, value in {"VERDICTS": 100, "BATCH": 100, "PEER_POSES": 5, "ROUNDS": 2, "WORLDS": ((0.04, 4000),)}.items():
        monkeypatch.setattr(world_speed, name, value)
    (world,) = bench_world(*panda)
    assert 0.1 < world["hit"] < 0.9, "both verdicts must be in the sample"
    assert world["verdicts"]["poses"] == 100 and world["verdicts"]["beyond_10_um"] == 0
    assert world["verdicts"]["differ"] == world["verdicts"]["coal_missed"]
    assert set(world["ratio"]) == set(world["peers"]) == {"coal octree, pieces", "coal octree, one hull a link"}
    assert min(world["ratio"].values()) > 0 and world["us_per_configuration"]["p50"] > 0


def test_whole_checks_of_every_size_have_figures(panda, monkeypatch) -> None:
    monkeypatch.setattr(batch_speed, "SIZES", ((1, 1), (3, 4)))
    monkeypatch.setattr(batch_speed, "DENSITIES", (0.0, 0.05))
    found = batch_speed.bench_batches(*panda)
    assert [(row["envs"], row["horizon"]) for row in found["sizes"]] == [(1, 1), (3, 4)]
    assert [row["density"] for row in found["densities"]] == [0.0, 0.05]
    free, full = found["densities"]
    assert free["refused"] < full["refused"]
    assert all(row["seconds"] > 0 and row["cpu_us_per_configuration"]["p50"] > 0 for row in found["sizes"])


def test_a_robot_as_published_has_the_pairs_that_are_published(panda) -> None:
    """Panda: nine links without its fingers, 36 pairs less 8 of neighbours."""
    bare = plain(panda[0])
    model = build_model(bare)
    assert len(bare.geometry) == 9 and not bare.grippers and len(model.pairs) == 28
    assert all(len(shape.pieces) == 1 for shape in bare.geometry.values())
    assert {frozenset((p.link_a, p.link_b)) for p in model.exempt} >= {frozenset(("link7", "hand"))}
    figures = bench_gate("franka_panda", batches=(1, 2), worlds=False, as_published=True)
    assert figures["pairs"] == 28 and figures["share_of_step"] is None and figures["worlds"] == []


def test_the_committed_run_agreed_with_coal_but_for_contacts_that_coal_missed() -> None:
    run = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "gate_speed-openarm.json").read_text())
    assert [world["occupied"] for world in run["worlds"]] == [14_000, 100_000]
    assert [world["verdicts"]["poses"] for world in run["worlds"]] == [10_000, 10_000]
    for verdicts in (world["verdicts"] for world in run["worlds"]):
        assert verdicts["beyond_10_um"] == 0 and verdicts["differ"] == verdicts["coal_missed"] <= 1
