"""What the pairs that are left out would show, against figures that are known beforehand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from simulo.cli import app
from simulo.description import DisabledPair, load_description
from simulo.evaluation import exempt
from simulo.evaluation.exempt import STRUCTURAL, review_exempt, rule_of


def test_neighbours_and_rigid_links_are_not_reviewed() -> None:
    """The gantry has seven links on six edges, and nothing else is left out; nor is anything that OpenArm's joints
    join: two rows are a hand's own fingers."""
    assert (review_exempt("gantry", 50)["structural"], review_exempt("gantry", 50)["rows"]) == (6, [])
    reviewed = [row for row in load_description("openarm").disabled_pairs if rule_of(row) not in STRUCTURAL]
    assert sorted(rule_of(row) for row in reviewed) == ["jaws"] * 2


def test_a_row_that_hides_contact_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """SO-100's sweep finds these pairs touching at times with nothing left out but neighbours. Left out by hand, each
    row is reported as hiding contact, and no contact as one that the pieces would not trip on."""
    robot = load_description("so100")
    pairs = [("base", "gripper"), ("base", "jaw")]
    left_out = tuple(DisabledPair(*pair, "by hand") for pair in pairs)
    monkeypatch.setattr(exempt, "load_description", lambda name: replace(robot, disabled_pairs=left_out))
    found = review_exempt("so100", 200)
    assert [row["rule"] for row in found["rows"]] == ["declared", "declared"]
    for row in found["rows"]:
        assert 0 < row["touching"] <= row["tripped"] < 200, row
        assert row["says"] == "hides"


def test_the_command_keeps_what_it_found(tmp_path) -> None:
    file, kept = tmp_path / "figures.json", tmp_path / "kept"
    result = CliRunner().invoke(app, ["exempt", "h1", "--poses", "20", "--json", str(file), "--keep", str(kept)])
    assert result.exit_code == 0, result.output
    figures = json.loads((kept / "h1-exempt.json").read_text())
    assert figures == json.loads(file.read_text())
    says = {tuple(row["links"]): row["says"] for row in figures["rows"]}
    assert says["left_hip_yaw_link", "torso_link"] == "needed"  # one turns in the other's shell
    assert says["torso_link", "left_shoulder_roll_link"] == "hides"  # the capsule of its file: docs/fleet.md


def test_a_robot_with_nothing_to_review_says_so_instead_of_an_empty_table() -> None:
    result = CliRunner().invoke(app, ["exempt", "so101", "--poses", "1"])
    assert result.exit_code == 0 and "so101: no pairs left out but 6 of neighbours" in result.stdout
    assert "touch" not in result.stdout
