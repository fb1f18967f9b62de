"""`simulo robots`, and robots that are not lowered yet."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from simulo.description import list_robots
from tests.description.test_on_request import ON_REQUEST, robot  # noqa: F401 - a fixture


def test_the_command_line_offers_to_lower(
    robot: Path,  # noqa: F811
    simulo: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It asks a person; without one it refuses, naming the command."""
    run = simulo("check", str(robot), "--pose", "rest")
    assert run.code == 2
    assert f"run `simulo lower {robot}`" in run.err
    asked = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda question, **settings: asked.append(question) or False)
    assert simulo("check", str(robot), "--pose", "rest").code == 2
    monkeypatch.setattr("typer.confirm", lambda question, **settings: asked.append(question) or True)
    run = simulo("check", str(robot), "--pose", "rest")
    assert (run.code, asked) == (0, [f"Run `simulo lower {robot}` now?"] * 2)
    assert "clear of itself" in run.out


def test_robots_lists_everyone(simulo: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = simulo("robots", "--json", str(tmp_path / "robots.json"))
    assert run.code == 0
    rows = {row["name"]: row for row in json.loads((tmp_path / "robots.json").read_text())}
    fields = {"name", "source", "licence", "links", "joints", "mimic_joints", "pairs_checked", "rest_clear"}
    assert all(set(row) == fields for row in rows.values())
    fleet = {"openarm", "franka_panda", "ur5e", "so100", "so101", "h1", "g1", "robotiq_2f85", "ur5e_2f85"}
    assert set(rows) == set(list_robots()) >= fleet | ON_REQUEST | {"robotiq_2f85_urdf"}
    for name, row in rows.items():
        assert (row["rest_clear"], row["links"]) == (None, None) if name in ON_REQUEST else row["rest_clear"] is True
    two_files = rows["ur5e_2f85"]
    assert two_files["licence"] == "BSD-3-Clause AND BSD-2-Clause"
    assert "ur5e.xml" in two_files["source"] and "2f85.xml" in two_files["source"]
    assert (two_files["links"], two_files["joints"], two_files["mimic_joints"]) == (22, 7, 5)
