"""Contact sweeps: a sound model misses nothing, a broken one is found out, and a killed sweep loses nothing."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace

import pytest
import trimesh
from typer.testing import CliRunner

from simulo.cli import app
from simulo.description import RobotDescription, load_description
from simulo.evaluation import contact_truth
from simulo.evaluation import sweep as module
from simulo.evaluation.contact_truth import Separation
from simulo.evaluation.judges import judge_by_hulls
from simulo.evaluation.sweep import SweepError, sweep
from simulo.evaluation.sweep_report import robot_page
from tests.collision.robots import box_piece, link, pincer

KEYS = {
    "robot", "poses", "seed", "truth", "contacts", "missed", "false_stops", "refused", "slop_only", "rest",
    "pairs_checked", "pairs_exempt", "seconds", "unjudged", "digest",
}  # fmt: skip


def given(monkeypatch, description: RobotDescription) -> None:
    monkeypatch.setattr(module, "load_description", lambda name: description)


def test_openarm_misses_nothing_on_hulls_and_on_meshes() -> None:
    """The mesh of a link lies in its hull: every real contact is one of the hulls, and some of theirs are none."""
    hull, mesh = sweep("openarm", 1500).figures, sweep("openarm", 1500, truth="mesh").figures
    assert set(hull) >= KEYS and hull["rest"]["clear"] and set(hull["rest"]) == {"clear", "min_distance_mm", "pair"}
    assert hull["missed"] == mesh["missed"] == 0
    assert hull["false_stops"] <= 1 and hull["slop_only"] <= 1, "a wrist within microns of contact, if any"
    assert hull["refused"] == mesh["refused"] > 50
    stops = hull["contacts"] + hull["false_stops"]
    assert mesh["contacts"] + mesh["false_stops"] == stops, "each stop is one or the other"
    assert mesh["contacts"] > 200


def test_geometry_that_is_too_small_misses_contacts(monkeypatch) -> None:
    """Truth on the real hulls, the checker on shrunken ones: the sweep must say what slips through."""
    real = pincer()
    small = link("left_jaw", box_piece((0.002, 0.002, 0.002), (0.04, 0.005, 0.0)))
    broken = replace(real, geometry={**real.geometry, "left_jaw": small}, digest="tests:broken")
    given(monkeypatch, broken)
    monkeypatch.setitem(module.JUDGES, "hull", lambda description, model: judge_by_hulls(real, model))
    found = sweep("pincer", 3000)
    assert found.counts.missed > 0 and all("left_jaw" in pair for pair in found.counts.missed_by_pair)


def test_geometry_that_is_too_large_stops_for_nothing(monkeypatch) -> None:
    real = pincer()
    large = link("left_jaw", box_piece((0.2, 0.1, 0.1), (0.1, 0.005, 0.0)))
    bloated = replace(real, geometry={**real.geometry, "left_jaw": large}, digest="tests:bloated")
    given(monkeypatch, bloated)
    monkeypatch.setitem(module.JUDGES, "hull", lambda description, model: judge_by_hulls(real, model))
    found = sweep("pincer", 3000)
    assert found.counts.false_stops > 0 and all("left_jaw" in pair for pair in found.counts.false_by_pair)
    assert 0 < found.counts.slop_only <= found.counts.refused
    assert found.counts.missed == 0


def test_a_dispute_without_an_answer_is_no_verdict(monkeypatch) -> None:
    """Stops for nothing, and a linear program that fails: they are neither contacts nor false stops."""
    real = pincer()
    large = link("left_jaw", box_piece((0.2, 0.1, 0.1), (0.1, 0.005, 0.0)))
    given(monkeypatch, replace(real, geometry={**real.geometry, "left_jaw": large}, digest="tests:bloated"))
    monkeypatch.setitem(module.JUDGES, "hull", lambda description, model: judge_by_hulls(real, model))
    sound = sweep("pincer", 2000).counts
    monkeypatch.setattr(contact_truth, "separation", lambda a, b: Separation.UNJUDGED)
    failed = sweep("pincer", 2000).counts
    assert failed.unjudged == sound.disputed > 0 and failed.false_stops == 0
    assert failed.contacts == sound.contacts and failed.slop_only < sound.slop_only
    result = CliRunner().invoke(app, ["sweep", "pincer", "--poses", "2000"])
    assert result.exit_code == 1 and str(failed.unjudged) in result.output, result.output


def test_two_processes_count_as_one_does(monkeypatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 512)
    one, two = sweep("so101", 1500), sweep("so101", 1500, jobs=2)
    assert vars(replace(one.counts, seconds=0.0)) == vars(replace(two.counts, seconds=0.0))
    assert one.counts.contacts > 100


def test_one_hull_a_link_stops_for_more_than_its_pieces() -> None:
    """UR5e's bent arms: the hulls of links overlap in bends that the pieces leave free. What touches is the same."""
    pieces, hulls = sweep("ur5e", 300, truth="mesh"), sweep("ur5e", 300, truth="mesh", one_hull=True)
    assert hulls.counts.contacts == pieces.counts.contacts > 50
    assert hulls.counts.missed == pieces.counts.missed == 0
    assert hulls.counts.false_stops > 10 * max(1, pieces.counts.false_stops)


def test_a_killed_sweep_goes_on_to_the_same_counts(monkeypatch, tmp_path) -> None:
    given(monkeypatch, pincer())
    monkeypatch.setattr(module, "BLOCK", 256)
    whole = sweep("pincer", 1000)
    state = tmp_path / "state.json"

    def killed(label: str, done: int, total: int) -> None:
        if done >= 512:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep("pincer", 1000, state=state, progress=killed)
    assert json.loads(state.read_text())["counts"]["poses"] < 1000
    again = sweep("pincer", 1000, state=state)
    for name in ("contacts", "missed", "false_stops", "refused", "slop_only", "contacts_by_pair", "poses"):
        assert getattr(again.counts, name) == getattr(whole.counts, name), name


def test_a_state_of_another_sweep_is_refused(monkeypatch, tmp_path) -> None:
    given(monkeypatch, pincer())
    state = tmp_path / "state.json"
    sweep("pincer", 200, state=state)
    with pytest.raises(SweepError, match="another sweep"):
        sweep("pincer", 400, seed=1, state=state)
    with pytest.raises(SweepError, match="more than"):
        sweep("pincer", 100, state=state)
    state.write_text("{")
    with pytest.raises(SweepError, match=r"state\.json"):
        sweep("pincer", 400, state=state)


def test_a_sweep_of_no_poses_is_refused() -> None:
    with pytest.raises(SweepError, match="at least one pose"):
        sweep("openarm", 0)


def test_the_command_writes_figures_and_pages(tmp_path) -> None:
    figures, folder = tmp_path / "sweep.json", tmp_path / "pages"
    result = CliRunner().invoke(
        app, ["sweep", "openarm", "--poses", "300", "--json", str(figures), "--report", str(folder)]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(figures.read_text())["poses"] == 300
    page = (folder / "index.html").read_text()
    assert "openarm.html" in page and "http" not in page
    assert CliRunner().invoke(app, ["sweep", "nobody"]).exit_code != 0
    assert CliRunner().invoke(app, ["sweep", "openarm", "--resume"]).exit_code == 2


def test_the_robot_page_holds_every_link_and_every_piece_of_it() -> None:
    description = load_description("gantry")
    page = robot_page(description)
    data = re.search(r'base64_data="([^"]+)"', page)
    assert data is not None
    scene = trimesh.load_scene(io.BytesIO(base64.b64decode(data[1])), file_type="glb")
    pieces = {
        f"{link} piece {k}" for link, geometry in description.geometry.items() for k in range(len(geometry.pieces))
    }
    assert f"{len(pieces)} convex pieces" in page and "gantry: meshes and checked geometry" in page
    assert set(scene.graph.nodes_geometry) == pieces | {f"{link} mesh" for link in description.geometry}
