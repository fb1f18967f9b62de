"""`simulo demo` and `simulo bench stop-count`: a small run end to end, and its exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from simulo.cli.stop_count import _conclude
from simulo.errors import SimuloError
from simulo.evaluation.stop_count import StopCount, StopCountOptions

KEYS = {
    "benchmark", "robot", "task", "backend", "device", "seed", "episodes", "hazards", "neighbours", "cell_m", "world",
    "margin_m", "mode", "versions", "results",
}  # fmt: skip
COUNTS = {
    "policy_steps", "stops", "true_stops", "within_resolution", "false_stops", "map_stops", "unjudged", "invalid",
    "real_contacts", "missed_contacts", "proxy_contacts", "dynamic", "episodes_completed", "success_rate",
    "success_wilson95", "stops_by_pair", "false_stop_clearance_mm",
}  # fmt: skip


def test_a_small_run_its_page_and_its_replay(simulo: Callable, tmp_path: Path) -> None:
    folder, first, again = tmp_path / "run", tmp_path / "first.json", tmp_path / "again.json"
    size = ("--episodes", "2", "--hazards", "0.5", "--success-episodes", "0")
    run = simulo("bench", "stop-count", *size, "--report", str(folder), "--json", str(first))
    assert run.code == 0, run.err
    figures = json.loads(first.read_text())
    assert set(figures) >= KEYS
    for row in figures["results"]:
        assert set(row) >= COUNTS | {"finger_model", "clean", "hazard"}
        assert set(row["clean"]) >= COUNTS
        assert row["success_rate"] is None  # no second run was asked for
        assert row["clean"]["episodes_completed"] == row["hazard"]["episodes_completed"] == 1
        assert row["real_contacts"] >= 1
        assert row["missed_contacts"] == 0
    page = (folder / "index.html").read_text()
    assert "http://" not in page and "https://" not in page  # offline: nothing is fetched

    replay = simulo("bench", "stop-count", "--replay", str(folder), "--json", str(again))
    assert replay.code == 0, replay.err
    assert json.loads(again.read_text()) == figures

    occupied = simulo("bench", "stop-count", *size, "--report", str(folder))
    assert occupied.code == 2
    assert "holds a run already" in occupied.err


@pytest.mark.parametrize("missed", [0, 1])
def test_a_missed_contact_is_exit_code_1_and_the_figures_are_written_all_the_same(tmp_path: Path, missed: int) -> None:
    part = dict.fromkeys(COUNTS, 0)
    row = {"finger_model": "mimic", "success_episodes": 0, **part, "success_rate": None, "clean": part, "hazard": part}
    row["missed_contacts"] = missed
    figures = {"robot": "openarm", "task": "t.py", "world": "voxels", "cell_m": 0.01, "results": [row]}
    result = StopCount(StopCountOptions(), (figures,), {}, tmp_path)
    if missed:
        with pytest.raises(typer.Exit) as stopped:
            _conclude(result, None, tmp_path / "figures.json")
        assert stopped.value.exit_code == 1
    else:
        _conclude(result, None, tmp_path / "figures.json")
    assert json.loads((tmp_path / "figures.json").read_text())["results"][0]["missed_contacts"] == missed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--finger-model", "mimic,blob"), "'blob' is none of mimic, swept"),
        (("--world", "octomap"), "'octomap' is none of voxels, primitives"),
        (("--cell", "ten"), "could not convert string to float"),
        (("--cell", "10"), "not between 0.001 and 0.2 m"),
        (("--hazards", "1.5"), "--hazards"),
        (("--resume",), "needs --report DIR"),
        (("--replay", "nowhere"), "nowhere holds no recorded run"),
        (("--task", "juggle.py"), "no task file 'juggle.py'"),
        (("--robot", "openram"), "unknown robot 'openram'"),
    ],
)
def test_wrong_use(simulo: Callable, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    run = simulo("bench", "stop-count", *arguments, "--json", str(tmp_path / "figures.json"))
    assert run.code == 2
    assert message in " ".join(run.err.split())
    assert "Traceback" not in run.err
    assert not list(tmp_path.iterdir())


def test_the_demo_takes_the_size_of_both_its_runs(simulo: Callable, tmp_path: Path, monkeypatch) -> None:
    asked = []

    def bench(options, folder, progress):
        asked.append(options)
        raise SimuloError("that will do")

    monkeypatch.setattr("simulo.evaluation.stop_count.bench_stop_count", bench)
    for arguments in ((), ("--episodes", "4", "--success-episodes", "0", "--seed", "3", "--envs", "2")):
        assert simulo("demo", "--report", str(tmp_path), *arguments).code == 2
    assert [(o.episodes, o.success_episodes, o.seed, o.envs) for o in asked] == [(40, 20, 0, 8), (4, 0, 3, 2)]
    assert all(o.worlds == ("voxels", "primitives") and set(o.finger_models) == {"swept", "mimic"} for o in asked)
