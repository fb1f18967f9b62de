"""The fleet's tables: what the page in docs/ carries is what the command prints, of the geometry that is committed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simulo.cli import app
from simulo.description import load_description
from simulo.evaluation.fleet import STALE, FleetError, fleet_tables, keep, kind_of

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks" / "results" / "fleet"

FIGURES = {
    "robot": "gantry", "digest": "", "poses": 20_000, "contacts": 90, "missed": 0, "false_stops": 10, "unjudged": 0,
    "refused": 50, "slop_only": 5, "rest": {"clear": True, "min_distance_mm": 1.25, "pair": ["a", "b"]},
    "links": 4, "pieces": 5, "pairs_checked": 3, "pairs_exempt": 2, "seed": 1, "truth": "mesh", "one_hull": False,
    "outside": {"vertices": 100, "vertices_outside": 0, "triangles": 60, "triangles_outside": 1},
}  # fmt: skip


def test_rows_are_what_was_kept(tmp_path) -> None:
    kept = FIGURES | {"digest": load_description("gantry").digest}
    keep(kept, tmp_path)
    keep(kept | {"one_hull": True, "refused": 80, "slop_only": 40, "false_stops": 110}, tmp_path)
    keep(kept | {"truth": "hull", "poses": 100_000}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "gantry-hull.json", "gantry-mesh.json", "gantry-mesh-one_hull.json",
    }  # fmt: skip
    rows = [line for line in fleet_tables(tmp_path).splitlines() if "gantry" in line]
    assert rows == [
        "| gantry | 4 | 5 | 3 / 2 | 0 of 100 | 1 of 60 | clear, 1.2 mm |",
        "| gantry | 100 000 | 50 | 90 | 0 | 0 | 10 | 0.3 |  |",
        "| gantry | 20 000 | 90 | 0 | 50 | 5 (10.0 %) | 10 (10.0 %) | 20 000 | 80 | 40 (50.0 %) | 110 (55.0 %) |",
    ]


def test_geometry_that_has_changed_since_is_stale(tmp_path) -> None:
    now = load_description("gantry").digest
    keep(FIGURES | {"digest": now}, tmp_path)
    assert STALE not in fleet_tables(tmp_path)
    keep(FIGURES | {"digest": "0" * 64, "truth": "hull"}, tmp_path)
    geometry, hull, mesh = (line for line in fleet_tables(tmp_path).splitlines() if line.startswith("| gantry"))
    assert STALE in geometry and STALE in hull and STALE not in mesh


def test_what_is_no_sweep_is_refused(tmp_path) -> None:
    with pytest.raises(FleetError, match="no kept sweeps"):
        fleet_tables(tmp_path)
    (tmp_path / "gantry-mesh.json").write_text("{}")
    with pytest.raises(FleetError, match=r"gantry-mesh\.json"):
        fleet_tables(tmp_path)


def test_a_sweep_is_kept_as_it_is_written(tmp_path) -> None:
    file, kept = tmp_path / "figures.json", tmp_path / "kept"
    command = ["sweep", "gantry", "--poses", "200", "--truth", "mesh", "--one-hull", "--json", str(file)]
    result = CliRunner().invoke(app, [*command, "--keep", str(kept)])
    assert result.exit_code == 0, result.output
    assert json.loads((kept / "gantry-mesh-one_hull.json").read_text()) == json.loads(file.read_text())


def test_the_page_carries_what_the_command_prints() -> None:
    """So a row of geometry that has been lowered or edited since its sweep is not to be seen without saying so."""
    result = CliRunner().invoke(app, ["fleet", str(KEPT)])
    assert result.exit_code == 0, result.output
    printed = [line for line in result.output.splitlines() if line.startswith("|")]
    page = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    assert printed and printed == [line for line in page.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem)
def test_nothing_was_missed_in_as_many_poses_as_are_asked_for(path: Path) -> None:
    row = json.loads(path.read_text(encoding="utf-8"))
    assert path.stem == f"{row['robot']}-{kind_of(row['truth'], row['one_hull'])}" and row["seed"] == 20260924
    least = {"hull": 100_000, "mesh": 20_000, "mesh-one_hull": 3_000, "exempt": 1_000}
    assert row["poses"] >= least[path.stem.partition("-")[2]]
    if row["truth"] == "exempt":
        return
    assert row["missed"] == row["unjudged"] == 0
    assert row["one_hull"] or row["rest"]["clear"], "of the geometry that is shipped"
    assert row["truth"] == "hull" or row["outside"]["vertices_outside"] == row["outside"]["triangles_outside"] == 0
